"""F.interpolate, nn.Upsample, mode "nearest-exact" -> each axis read by a table of its nearest cells.

Math:   torch_onnx_compat.functional.resize.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.resize import nearest_exact, resized_axes


@rewrite(nn.functional.interpolate, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def interpolate_nearest_exact(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes (N, C, L), (N, C, H, W) or (N, C, D, H, W); stock TorchScript has no symbolic for this mode."""
    if mode != "nearest-exact":
        return NotImplemented  # type: ignore[no-any-return]
    return nearest_exact(input, resized_axes(input, size, scale_factor, recompute_scale_factor))
