"""F.interpolate, nn.Upsample, with recompute_scale_factor -> to the size that the scale gives.

Math:   an axis of n cells is resized to floor(n * scale), and the scale forgotten.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.resize import errs_in_float32, resized_axes
from torch_onnx_compat.functional.resize_by_scale import resized_by_scale


@rewrite(nn.functional.interpolate, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def interpolate_recomputed_scale(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes by a scale; a trace freezes the size where it varies, dynamo has its floor in float32."""
    if not recompute_scale_factor or scale_factor is None or antialias or mode == "nearest-exact":
        return NotImplemented  # type: ignore[no-any-return]
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    if mode == "nearest" and errs_in_float32(input, scale_factor):
        return resized_by_scale(input, axes, mode, False)
    outputs = [axis.output for axis in axes]
    return nn.functional.interpolate(input, outputs, None, mode, align_corners)
