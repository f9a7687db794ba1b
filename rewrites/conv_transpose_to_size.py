"""conv_transpose1d, 2d and 3d with an output_padding that is computed from sizes -> with the largest one, then cut.

Math:   output_padding adds cells at the end of an axis and changes none before them; that which output_size asks for
        is smaller than the stride, so the result with the largest one begins with the result wanted.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose2d.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.arithmetic import varies

_FUNCTIONS = {1: nn.functional.conv_transpose1d, 2: nn.functional.conv_transpose2d, 3: nn.functional.conv_transpose3d}


# ConvTranspose has output_padding as an attribute; nn.ConvTranspose2d(...)(x, output_size=...) computes it.
@rewrite(tuple(_FUNCTIONS.values()), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def conv_transpose_to_size(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Convolves (N, C, L), (N, C, H, W) or (N, C, D, H, W), without the batch too."""
    axes = weight.dim() - 2
    wanted = _each(output_padding, axes)
    if not any(map(varies, wanted)):
        return NotImplemented  # type: ignore[no-any-return]
    most = [step - 1 for step in _each(stride, axes)]
    given = [m if varies(w) else w for w, m in zip(wanted, most, strict=True)]
    x = _FUNCTIONS[axes](input, weight, bias, stride, padding, given, groups, dilation)
    for axis, (w, m) in enumerate(zip(wanted, most, strict=True), x.dim() - axes):
        if varies(w):
            x = x.narrow(axis, 0, x.shape[axis] - (m - w))
    return x


def _each(value: Any, axes: int) -> list[Any]:
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    return values * axes if len(values) == 1 else values
