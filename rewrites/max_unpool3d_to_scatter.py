"""F.max_unpool3d, nn.MaxUnpool3d -> values scattered over zeros.

Math:   torch_onnx_compat.functional.max_unpool.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxUnpool3d.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.max_unpool import max_unpool


@rewrite(nn.functional.max_unpool3d, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def max_unpool3d_to_scatter(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Unpools (N, C, D, H, W) or (C, D, H, W); torch itself fails in a TorchScript trace."""
    return max_unpool(input, indices, 3, kernel_size, stride, padding, output_size)
