"""torch_onnx_compat::until_longest -> Slice up to the largest length.

Schema: until_longest(Tensor x, Tensor lengths) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__Slice.html; torch_onnx_compat.functional.recurrent
"""

import torch_onnx_compat.functional.recurrent  # noqa: F401  (defines the operator)
from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("torch_onnx_compat::until_longest", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def until_longest(op: Ops, x: Value, lengths: Value) -> Value:
    """The steps of padded sequences (T, N, ...) that one of them has."""
    longest = op.ReduceMax(lengths, keepdims=1)
    return op.Slice(x, [0], longest, [0])
