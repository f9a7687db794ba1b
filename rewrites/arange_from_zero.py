"""torch.arange with a start that varies -> the start added to an arange from 0.

Math:   a, a + s, a + 2 s, ... = a + (0, s, 2 s, ...). onnxruntime makes Gather with the indices of a Range into a
        Slice, whose bounds count from the end where they are negative; an Add between them keeps it from that.
Source: https://docs.pytorch.org/docs/stable/generated/torch.arange.html; GatherRangeToSlice of onnxruntime's
        core/optimizer/gather_fusion.cc
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.ranges import are_whole, bounds_of


@rewrite(torch.arange, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def arange_from_zero(*args: Any, **options: Any) -> Tensor:
    """Counts from a size, upwards or downwards; indexed with it, onnxruntime reads elsewhere.

    Numbers that are all known, counting up from 0, and floats are left to torch.
    """
    start, end, step, rest = bounds_of(args, options)
    is_fixed = all(type(bound) is int for bound in (start, end, step))
    counts_up_from_zero = type(start) is int and start >= 0 and type(step) is int and step > 0
    if is_fixed or counts_up_from_zero or rest.get("out") is not None or not are_whole(start, end, step):
        return NotImplemented  # type: ignore[no-any-return]
    if rest.get("dtype") not in (None, torch.int64):
        return NotImplemented  # type: ignore[no-any-return]
    counted: Tensor = torch.arange(0, end - start, step, **rest) + start
    return counted
