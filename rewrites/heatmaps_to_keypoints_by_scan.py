"""torchvision's heatmaps_to_keypoints -> one Scan over the boxes, each heatmap enlarged by two matrices.

Math:   a heatmap of M x M cells is resized to the whole pixels (w, h) of its box by bicubic interpolation,
        Wy A Wx^T, and its greatest value is the keypoint. Row p of W reads the four cells around
        u = (p + 1/2) M / w - 1/2, those beyond the edge as the one at the edge, with the weights of Keys' kernel,
        a = -0.75. Every matrix has as many rows as the largest box needs; what lies outside the own box is -inf.
Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/roi_heads.py; ATen/native/UpSample.h
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.rows import each_row
from torch_onnx_compat.tracing import as_size

CUBIC = -0.75
LARGEST = 2**16
"""Pixels of a side of a box; there is no larger picture."""


@rewrite(
    "torchvision.models.detection.roi_heads.heatmaps_to_keypoints",
    needed_on=("dynamo",),
    exactness=Exactness.ROUNDING,
)
def heatmaps_to_keypoints_by_scan(maps: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    """Keypoints (N, K, 3) and their scores (N, K) of heatmaps (N, K, M, M) in boxes (N, 4)."""
    size = (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    whole = size.ceil()
    # One more heatmap, which is dropped again: onnxruntime's Scan takes no empty tensors.
    padded = torch.cat((maps, maps.new_zeros(1, *maps.shape[1:])))
    sizes = torch.cat((whole, whole.new_ones(1, 2)))
    longest = sizes.amax(0).long()
    width, height = (torch.arange(as_size(longest[i], 1, LARGEST), device=maps.device) for i in (0, 1))
    found = each_row(_highest, (padded, sizes), (width, height, longest[0].clone()))[:-1]
    centre = found[:, :2] + 0.5
    place = centre * (size / whole)[..., None] + rois[:, :2, None]
    return torch.cat((place, torch.ones_like(place[:, :1])), 1).permute(0, 2, 1), found[:, 2]


def _highest(heatmap: Tensor, size: Tensor, columns: Tensor, rows: Tensor, width: Tensor) -> Tensor:
    """x, y and value of the greatest value of each of K heatmaps (K, M, M): (3, K)."""
    cells = heatmap.shape[-1]
    enlarged = _weights(size[1], rows, cells) @ heatmap @ _weights(size[0], columns, cells).transpose(0, 1)
    inside = (rows < size[1])[:, None] & (columns < size[0])
    enlarged = torch.where(inside, enlarged, torch.full_like(enlarged, float("-inf"))).flatten(1)
    best, place = enlarged.max(1)
    return torch.stack(((place % width).to(best.dtype), (place // width).to(best.dtype), best))


def _weights(size: Tensor, pixels: Tensor, cells: int) -> Tensor:
    """What each pixel takes of each cell: (pixels, cells)."""
    place = (pixels + 0.5) * (cells / size) - 0.5
    first = place.floor()
    t = (place - first)[:, None]
    cell = torch.arange(cells, device=pixels.device)
    taps = zip((-1, 0, 1, 2), (_far(t + 1), _near(t), _near(1 - t), _far(2 - t)), strict=True)
    weights = [((first + tap).clamp(0, cells - 1)[:, None] == cell) * weight for tap, weight in taps]
    return weights[0] + weights[1] + weights[2] + weights[3]


def _near(d: Tensor) -> Tensor:
    return ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1


def _far(d: Tensor) -> Tensor:
    return ((CUBIC * d - 5 * CUBIC) * d + 8 * CUBIC) * d - 4 * CUBIC
