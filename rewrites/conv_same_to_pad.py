"""conv1d, conv2d, conv3d with padding="same" and dilation -> numbers of cells in place of "same".

Math:   torch_onnx_compat.functional.conv.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.conv import convolve_same
from torch_onnx_compat.tracing import static_size

Sizes = int | tuple[int, ...]


# TorchScript writes auto_pad, which onnxruntime refuses together with dilation.
@rewrite((torch.conv1d, torch.conv2d, torch.conv3d), needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def conv_same_to_pad(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution that keeps the image's size, with gaps in its kernel.

    Declines: a kernel whose size varies.
    """
    gaps = dilation if isinstance(dilation, (tuple, list)) else (dilation,)
    if padding != "same" or all(gap == 1 for gap in gaps):
        return NotImplemented  # type: ignore[no-any-return]
    kernel = [static_size(weight, axis) for axis in range(2, weight.dim())]
    sizes = [size for size in kernel if size is not None]
    if len(sizes) < len(kernel):
        decline(f"the kernel's size must be fixed, got {kernel}")
    return convolve_same(input, weight, bias, sizes, dilation, groups)
