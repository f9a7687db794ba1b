"""torch_onnx_compat::with_steps -> Pad, by a negative number where steps are cut off.

Schema: with_steps(Tensor x, SymInt steps, Tensor? varying, float value) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__Pad.html; torch_onnx_compat.functional.recurrent
"""

import torch

import torch_onnx_compat.functional.recurrent  # noqa: F401  (defines the operator)
from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic


@symbolic("torch_onnx_compat::with_steps", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def with_steps(op: Ops, x: Value, steps: Value, varying: Value | None, value: float) -> Value:
    """Padded sequences (T, N, ...) with another number of steps.

    Declines: sequences of which not even the number of axes is known.
    """
    shape = op.shape(x)
    if shape is None:
        decline("the number of axes must be known")
    number, rest = op.number(steps) if varying is None else None, len(shape) - 1
    if number is not None and number == shape[0]:
        return op.Identity(x)
    fill = op.constant(value, op.dtype(x))
    if number is not None and shape[0] is not None:
        return op.Pad(x, [0] * len(shape) + [int(number) - shape[0]] + [0] * rest, fill)
    have = op.Gather(op.Shape(x), op.constant([0], torch.int64), axis=0)
    wanted = op.constant([number], torch.int64) if varying is None else op.Reshape(varying, [1])
    more = op.Sub(wanted, have)
    return op.Pad(x, op.Concat([0] * len(shape), more, [0] * rest, axis=0), fill)
