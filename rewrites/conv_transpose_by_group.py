"""conv_transpose1d, conv_transpose2d, conv_transpose3d with varying groups -> a product of matrices for each group.

Math:   torch_onnx_compat.functional.conv.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose2d.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional import conv

Sizes = int | tuple[int, ...]


# ONNX has the number of groups as an attribute; both exporters refuse.
@rewrite(
    (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
)
def conv_transpose_by_group(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Enlarges images by kernels of their own, folded into the groups, as StyleGAN2 does.

    Declines: a kernel whose size, or number of output channels, varies.
    """
    if not conv.groups_vary(input, groups):
        return NotImplemented  # type: ignore[no-any-return]
    return conv.conv_transpose_by_group(input, weight, bias, stride, padding, output_padding, groups, dilation)
