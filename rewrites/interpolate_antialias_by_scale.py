"""F.interpolate, nn.Upsample, with antialias and a scale or align_corners -> products with matrices of weights.

Math:   torch_onnx_compat.functional.resize.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.resize import antialiased, resized_axes


@rewrite(nn.functional.interpolate, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def interpolate_antialias_by_scale(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes (N, C, H, W), bilinear or bicubic; stock dynamo drops align_corners, and the scale for the sizes' ratio.

    Declines: integers, which torch rounds in ways of its own.
    """
    if not antialias:
        return NotImplemented  # type: ignore[no-any-return]
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    if not align_corners and all(axis.is_ratio_of_sizes for axis in axes):
        return NotImplemented  # type: ignore[no-any-return]
    if not input.is_floating_point():
        decline(f"the image must be of floating-point type, got {input.dtype}; convert it first, e.g. x.float()")
    return antialiased(input, axes, mode, bool(align_corners))
