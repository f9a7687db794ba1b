"""F.interpolate, nn.Upsample, of axes that vary by a scale that float32 does not hold -> tables of cells and weights.

Math:   torch_onnx_compat.functional.resize_by_scale.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.resize import errs_in_float32, resized_axes
from torch_onnx_compat.functional.resize_by_scale import resized_by_scale


# Resize has its scales, and the floor of size times scale, in float32; eager torch in float64.
@rewrite(nn.functional.interpolate, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def interpolate_varying_scale(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes by a scale that the file computes, or such as 0.7, with which Resize is off at some sizes.

    Of 196 heights, a stock file is wrong at 167 for mode nearest and scale 0.3, at three for bilinear and 0.7
    (benchmarks/results/resize.md).

    Declines: integers, except by mode nearest.
    """
    if scale_factor is None or recompute_scale_factor or antialias or mode in ("nearest-exact", "area"):
        return NotImplemented  # type: ignore[no-any-return]
    if not errs_in_float32(input, scale_factor):
        return NotImplemented  # type: ignore[no-any-return]
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    if mode != "nearest" and not input.is_floating_point():
        decline(f"the image must be of floating-point type, got {input.dtype}; convert it first, e.g. x.float()")
    return resized_by_scale(input, axes, mode, bool(align_corners))
