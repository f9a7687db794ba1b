"""F.fold, nn.Fold -> sums of the windows' cells, read by a table.

Math:   torch_onnx_compat.functional.fold.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Fold.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.fold import fold, windows_of


@rewrite(nn.functional.fold, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def fold_to_take(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Sums windows (N, C * kernels, L) into images (N, C, H, W); stock's Col2Im needs opset 18 and a fixed size."""
    if input.dim() == 2:
        return NotImplemented  # type: ignore[no-any-return]
    return fold(input, windows_of(output_size, kernel_size, dilation, padding, stride))
