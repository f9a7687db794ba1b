"""F.interpolate, nn.Upsample, mode "nearest-exact" by a scale, of a size that varies -> reading by computed tables.

Math:   torch_onnx_compat.functional.resize.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.resize import nearest_exact, resized_axes


@rewrite(nn.functional.interpolate, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def interpolate_nearest_exact_by_scale(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes (N, C, L), (N, C, H, W) or (N, C, D, H, W); stock dynamo rounds where cells begin in another way."""
    if mode != "nearest-exact" or scale_factor is None or recompute_scale_factor:
        return NotImplemented  # type: ignore[no-any-return]
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    if all(axis.is_fixed or axis.is_ratio_of_sizes for axis in axes):
        return NotImplemented  # type: ignore[no-any-return]
    return nearest_exact(input, axes)
