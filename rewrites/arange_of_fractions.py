"""torch.arange of floating-point numbers in steps that are no whole numbers -> a range in float64, rounded once.

Math:   torch computes the number of elements and each of them, start + i step, in double precision. onnxruntime's Range
        adds the rounded step up, so that 30 steps of 1.3 are 38.99999 in float32, of which the floor is 38.
Source: https://docs.pytorch.org/docs/stable/generated/torch.arange.html; https://onnx.ai/onnx/operators/onnx__Range.html
"""

import math
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.ranges import are_whole, bounds_of


@rewrite(torch.arange, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def arange_of_fractions(*args: Any, **options: Any) -> Tensor:
    """Counts in fractions, up to a number or a size that varies.

    Ranges that begin and step by whole numbers, which floats hold exactly, and those of integer types or float64 are
    left to torch.
    """
    start, end, step, rest = bounds_of(args, options)
    default = torch.int64 if are_whole(start, end, step) else torch.get_default_dtype()
    dtype = rest.pop("dtype", None) or default
    if not dtype.is_floating_point or dtype is torch.float64 or rest.get("out") is not None:
        return NotImplemented  # type: ignore[no-any-return]
    if all(are_whole(bound) or (type(bound) is float and bound.is_integer()) for bound in (start, step)):
        return NotImplemented  # type: ignore[no-any-return]
    if all(type(bound) in (int, float) for bound in (start, end, step)):
        numbers = [start + step * i for i in range(math.ceil((end - start) / step))]
        return torch.tensor(numbers, dtype=dtype, device=rest.get("device"))
    counted: Tensor = torch.arange(start, end, step, dtype=torch.float64, **rest).to(dtype)
    return counted
