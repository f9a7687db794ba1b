"""aten::arange in float64 -> Range of float64 numbers.

Math:   torch.export keeps a step of 1.3; stock torch writes it as a float32 constant and a Cast, so that the range
        counts in steps of 1.2999999523, and may have one element more.
Schema: arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None,
        Device? device=None, bool? pin_memory=None) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.arange.html; https://onnx.ai/onnx/operators/onnx__Range.html
"""

from typing import Any

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic
from torch_onnx_compat.ops import ONNX_TYPES


@symbolic("aten::arange", needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def arange(op: Ops, start: Value, end: Value = None, step: Value = 1, dtype: Any = None) -> Value:
    """Counts in the steps that were asked for; ranges of other types are left to torch."""
    if dtype != ONNX_TYPES[torch.float64]:
        return NotImplemented
    if end is None:  # the overload with an end only
        start, end = 0, start
    return op.Range(*(op.cast(bound, torch.float64) for bound in (start, end, step)))
