"""torchvision's SSD.postprocess_detections -> all classes at once.

Math:   of each class the k best boxes above a threshold are those above it among the k best. The classes' rows of
        scores, best first, masked and read row by row, give the same boxes in the same order.
Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/ssd.py
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.detection import detected


@rewrite(
    "torchvision.models.detection.ssd.SSD.postprocess_detections",
    always=True,
    exactness=Exactness.ROUNDING,
)
def ssd_detections_at_once(
    self: Any, head_outputs: dict[str, Tensor], image_anchors: list[Tensor], image_shapes: list[tuple[Any, Any]]
) -> list[dict[str, Tensor]]:
    """Boxes (D, 4), scores (D) and labels (D) of each image; torchvision asks for the boxes of every class in turn."""
    scores = nn.functional.softmax(head_outputs["cls_logits"], dim=-1)
    found = zip(head_outputs["bbox_regression"], scores, image_anchors, image_shapes, strict=True)
    return [detected(self, *image) for image in found]
