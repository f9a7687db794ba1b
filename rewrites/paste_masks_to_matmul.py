"""torchvision's paste_masks_in_image -> every mask resized into its box by two matrices.

Math:   a mask of M x M cells, padded by a cell all round, lies in a box of integer corners (x0, y0, x1, y1), so many
        pixels wide and high: w = max(x1 - x0 + 1, 1), h likewise. Pixel p of the picture reads it at
        u = clamp((p - x0 + 1/2) M / w - 1/2, 0, M - 1), cell m with weight max(1 - |u - m|, 0); no pixel outside
        [x0, x1] reads anything. The picture of mask A is Wy A Wx^T.
Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/roi_heads.py
"""

from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite


@rewrite(
    "torchvision.models.detection.roi_heads.paste_masks_in_image",
    needed_on=("dynamo",),
    avoids=("Loop",),
    exactness=Exactness.ROUNDING,
)
def paste_masks_to_matmul(masks: Tensor, boxes: Tensor, img_shape: tuple[Any, Any], padding: int = 1) -> Tensor:
    """Masks (N, 1, M, M) in a picture (N, 1, H, W), without a loop over the boxes."""
    cells = masks.shape[-1] + 2 * padding
    padded = nn.functional.pad(masks, (padding,) * 4)
    corners = _expanded(boxes, cells / (cells - 2 * padding)).long()
    height, width = img_shape
    rows = _weights(corners[:, 1], corners[:, 3], height, cells, masks.dtype)
    columns = _weights(corners[:, 0], corners[:, 2], width, cells, masks.dtype)
    return rows @ padded @ columns.transpose(-1, -2)


def _expanded(boxes: Tensor, scale: float) -> Tensor:
    half = (boxes[:, 2:] - boxes[:, :2]) * 0.5
    centre = (boxes[:, 2:] + boxes[:, :2]) * 0.5
    return torch.cat((centre - half * scale, centre + half * scale), dim=1)


def _weights(first: Tensor, last: Tensor, length: Any, cells: int, dtype: torch.dtype) -> Tensor:
    """What each pixel takes of each cell: (N, 1, length, cells)."""
    first, last = first[:, None], last[:, None]
    pixel = torch.arange(length, device=first.device)
    size = (last - first + 1).clamp(min=1)
    place = (pixel - first + 0.5) * (cells / size) - 0.5
    place = place.clamp(0, cells - 1)[..., None]
    weight = (1 - (place - torch.arange(cells, device=first.device)).abs()).clamp(min=0)
    inside = (pixel >= first) & (pixel <= last)
    return (weight * inside[..., None]).to(dtype)[:, None]
