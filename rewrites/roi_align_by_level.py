"""torchvision's multi-scale RoI align -> one RoiAlign for each level, put in order by one Gather.

Math:   the boxes of level 0, then those of level 1 and so on are a permutation p of all boxes; with q[p[i]] = i, row
        q[j] of the pooled boxes in that order is box j.
Source: https://github.com/pytorch/vision/blob/main/torchvision/ops/poolers.py
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.detection import pooled_by_level


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
    return pooled_by_level(x_filtered, rois, mapper(boxes), scales, output_size, sampling_ratio)
