"""F.interpolate(mode="area") -> an ordinary pool, or products with pooling matrices.

Math:   area interpolation is adaptive average pooling; torch_onnx_compat.functional.adaptive_avg_pool.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html; torch/nn/functional.py
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.adaptive_avg_pool import adaptive_avg_pool, is_single_cell, windows_of
from torch_onnx_compat.functional.resize import resized_axes

_POOLS = {1: nn.functional.avg_pool1d, 2: nn.functional.avg_pool2d, 3: nn.functional.avg_pool3d}


@rewrite(nn.functional.interpolate, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def interpolate_area_to_pool(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes by averaging; stock TorchScript errs or refuses where the output does not divide the input.

    Stock dynamo errs at the sizes whose product with a scale such as 0.7 float32 takes for a whole number.
    """
    if mode != "area" or align_corners is not None or antialias or input.dim() not in (3, 4, 5):
        return NotImplemented  # type: ignore[no-any-return]
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    outputs = [axis.output for axis in axes]
    windows = windows_of(input, outputs)
    if windows is not None and input.is_floating_point() and input.itemsize <= 4:  # onnxruntime pools no float64
        return _POOLS[len(windows)](input, windows)
    if is_single_cell(outputs):
        return input.mean(tuple(range(2, input.dim())), keepdim=True)
    return adaptive_avg_pool(input, outputs)
