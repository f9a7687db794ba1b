"""torchvision's multi-scale RoI align: the scales of its feature maps are those of the example.

Math:   a map of height h of a picture of height H has the scale 2^round(log2(h / H)). Eager torch takes it from the
        first picture that the model ever sees, and keeps it.
Source: https://github.com/pytorch/vision/blob/main/torchvision/ops/poolers.py
"""

from typing import Any

from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.detection import scales_of
from torch_onnx_compat.tracing import example_size, untraced


@rewrite("torchvision.ops.poolers._setup_scales", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def roi_scales_of_example(
    features: list[Tensor], image_shapes: list[tuple[Any, Any]], canonical_scale: int, canonical_level: int
) -> tuple[list[float], Any]:
    """Scales and levels of a model that has never run; after that they are numbers, which both exporters keep."""
    with untraced():
        heights = [example_size(feature.shape[-2]) for feature in features]
        height = max(example_size(shape[0]) for shape in image_shapes)
    return scales_of(heights, height, canonical_scale, canonical_level)
