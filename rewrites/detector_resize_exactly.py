"""torchvision's detectors: resize an image by a scale that is computed in float64, as eager torch does.

Math:   an image (H, W) becomes floor(s H) x floor(s W) with s = min(a / min(H, W), b / max(H, W)), all in float64. What
        torchvision records for ONNX has float32, whose floor is one pixel less for about one picture size in seven.
Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/transform.py
"""

from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import as_size, constant, is_tracing, size_tensor


@rewrite(
    "torchvision.models.detection.transform._resize_image_and_masks",
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
)
def detector_resize_exactly(
    image: Tensor,
    self_min_size: int,
    self_max_size: int,
    target: Any = None,
    fixed_size: tuple[int, int] | None = None,
) -> tuple[Tensor, Any]:
    """Resizes an image (C, H, W) so that its shorter side is the smaller size, its longer one at most the larger."""
    is_fixed = not is_tracing() and all(type(size) is int for size in image.shape[-2:])
    if target is not None or fixed_size is not None or is_fixed:
        return NotImplemented  # type: ignore[no-any-return]
    sides = torch.stack((size_tensor(image, -2), size_tensor(image, -1))).double()
    # One-dimensional throughout: the TorchScript exporter makes float32 of a float64 without axes.
    shorter = constant([float(self_min_size)], like=sides) / sides.amin(0, keepdim=True)
    longer = constant([float(self_max_size)], like=sides) / sides.amax(0, keepdim=True)
    sizes = (sides * torch.minimum(shorter, longer)).floor().long()
    height, width = (as_size(sizes[axis], 1, self_max_size) for axis in (0, 1))
    resized = nn.functional.interpolate(image[None], (height, width), mode="bilinear", align_corners=False)
    return resized[0], None
