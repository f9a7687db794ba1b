"""torchvision's detectors: join images of several sizes by padding, not by writing them into zeros.

Math:   each image is padded at its lower and right end to the largest height and width among them, both rounded up to a
        multiple of a stride.
Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/transform.py
"""

from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite


@rewrite(
    "torchvision.models.detection.transform.GeneralizedRCNNTransform.batch_images",
    needed_on=("dynamo",),
    exactness=Exactness.BITWISE,
)
def batch_images_by_padding(self: Any, images: list[Tensor], size_divisible: int = 32) -> Tensor:
    """Makes one tensor (N, C, H, W) of images (C, h, w); torchvision's own way asks for every size as a number."""
    sym_max: Any = torch.sym_max
    largest = [reduce(sym_max, [image.shape[axis] for image in images]) for axis in (1, 2)]
    height, width = (-(-size // size_divisible) * size_divisible for size in largest)
    padded = [nn.functional.pad(i, (0, width - i.shape[2], 0, height - i.shape[1])) for i in images]
    return torch.stack(padded)
