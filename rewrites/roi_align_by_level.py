"""torchvision's multi-scale RoI align -> one RoiAlign for each level, put in order by one Gather.

Math:   the boxes of level 0, then those of level 1 and so on are a permutation p of all boxes; with q[p[i]] = i, row
        q[j] of the pooled boxes in that order is box j.
Source: https://github.com/pytorch/vision/blob/main/torchvision/ops/poolers.py
"""

from typing import Any

import torch
from torch import Tensor
from torchvision.ops import roi_align

from torch_onnx_compat import Exactness, rewrite


@rewrite("torchvision.ops.poolers._multiscale_roi_align", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def roi_align_by_level(
    x_filtered: list[Tensor],
    boxes: list[Tensor],
    output_size: Any,
    sampling_ratio: int,
    scales: list[float] | None,
    mapper: Any,
) -> Tensor:
    """Pools each box from the feature map of its level; as torchvision writes it, it asks how many boxes there are."""
    if scales is None or mapper is None or len(x_filtered) == 1:
        return NotImplemented  # type: ignore[no-any-return]
    numbers = [torch.full_like(each[:, :1], i) for i, each in enumerate(boxes)]
    rois = torch.cat((torch.cat(numbers), torch.cat(boxes)), dim=1)
    levels = mapper(boxes)
    order, pooled = [], []
    for level, (feature, scale) in enumerate(zip(x_filtered, scales, strict=True)):
        members = torch.where(levels == level)[0]
        order.append(members)
        pooled.append(roi_align(feature, rois[members], output_size, scale, sampling_ratio))
    joined = torch.cat(order)
    place = torch.zeros_like(levels).scatter(0, joined, torch.arange(joined.shape[0], device=levels.device))
    return torch.cat(pooled)[place]
