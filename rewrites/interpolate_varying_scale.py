"""F.interpolate, nn.Upsample, by a scale that is computed from sizes -> the exact size, and tables of weights.

Math:   torch_onnx_compat.functional.resize_by_scale; where the scale is forgotten once the size is known
        (recompute_scale_factor), a resize to that size.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.arithmetic import varies
from torch_onnx_compat.functional.resize import resized_axes
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
    """Resizes by a scale that the file computes; stock TorchScript takes no tensor for it.

    Declines: integers, except by mode nearest.
    """
    scales = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,)
    if not any(map(varies, scales)) or antialias or mode in ("nearest-exact", "area"):
        return NotImplemented  # type: ignore[no-any-return]
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    if recompute_scale_factor:
        return nn.functional.interpolate(input, [axis.output for axis in axes], None, mode, align_corners)
    if mode != "nearest" and not input.is_floating_point():
        decline(f"the image must be of floating-point type, got {input.dtype}; convert it first, e.g. x.float()")
    return resized_by_scale(input, axes, mode, bool(align_corners))
