"""conv1d, conv2d, conv3d with a number of groups that varies -> a product of matrices for each group.

Math:   torch_onnx_compat.functional.conv.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional import conv

Sizes = int | tuple[int, ...]


# ONNX has the number of groups as an attribute; both exporters refuse.
@rewrite((torch.conv1d, torch.conv2d, torch.conv3d), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def conv_by_group(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolves images with kernels of their own, folded into the groups, as StyleGAN2 and trackers do.

    Declines: a kernel whose size, or number of channels, varies.
    """
    if not conv.groups_vary(input, groups):
        return NotImplemented  # type: ignore[no-any-return]
    return conv.conv_by_group(input, weight, bias, stride, padding, dilation, groups)
