"""F.interpolate, nn.Upsample, with antialias -> products with a matrix of weights for each axis.

Math:   torch_onnx_compat.functional.resize.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.resize import antialiased, resized_axes


@rewrite(nn.functional.interpolate, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def interpolate_antialias_to_matmul(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes (N, C, H, W), bilinear or bicubic; stock TorchScript has no symbolic for it.

    Declines: integers, which torch rounds in ways of its own.
    """
    if not antialias:
        return NotImplemented  # type: ignore[no-any-return]
    if not input.is_floating_point():
        decline(f"the image must be of floating-point type, got {input.dtype}")
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    return antialiased(input, axes, mode, bool(align_corners))
