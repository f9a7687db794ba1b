"""torch_onnx_compat::recurrent -> LSTM, GRU or RNN.

Math:   torch has the gates of an LSTM as i f g o and ONNX as i o f g, those of a GRU as r z n and z r n, whose n is
        made from the state after its bias was added: linear_before_reset.
Schema: recurrent(Tensor x, Tensor? lengths, Tensor[] weights, Tensor[] state, str kind) -> (Tensor, Tensor, Tensor)
Source: https://onnx.ai/onnx/operators/onnx__LSTM.html; torch_onnx_compat.functional.recurrent
"""

from typing import Any

import torch

import torch_onnx_compat.functional.recurrent  # noqa: F401  (defines the operator)
from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}


@symbolic("torch_onnx_compat::recurrent", needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def recurrent(
    op: Ops, x: Value, lengths: Value | None, weights: list[Value], state: list[Value], kind: str
) -> tuple[Value, Value, Value]:
    """One recurrent layer in one or both directions.

    Declines: weights whose sizes are not fixed.
    """
    shapes = [op.shape(weight) for weight in weights]
    if shapes[1] is None or shapes[1][1] is None:
        decline("the weights' sizes must be fixed")
    hidden = shapes[1][1]
    # A direction has its second weight of the same width as the first one's; a bias has no second axis.
    each = 4 if len(weights) > 2 and shapes[2] is not None and len(shapes[2]) == 1 else 2
    directions = len(weights) // each
    gates = _GATES.get(kind, (0,))
    rows = [gate * hidden + row for gate in gates for row in range(hidden)]

    def arranged(numbers: list[int], shape: list[int]) -> Value:
        parts = [weights[i * each + n] for i in range(directions) for n in numbers]
        joined = parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0)
        order = [part * len(rows) + row for part in range(len(parts)) for row in rows]
        ordered = op.Gather(joined, order, axis=0) if len(gates) > 1 else joined
        return op.Reshape(ordered, [directions, *shape])

    bias = arranged([2, 3], [-1]) if each == 4 else None
    steps = None if lengths is None else op.cast(lengths, torch.int32)
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
    if kind == "GRU":
        attributes["linear_before_reset"] = 1
    if kind in ("Tanh", "Relu"):
        attributes["activations"] = [kind] * directions
    layer = op.node(
        kind if kind in _GATES else "RNN",
        [x, arranged([0], [len(rows), -1]), arranged([1], [len(rows), hidden]), bias, steps, *state],
        attributes,
        3 if kind == "LSTM" else 2,
    )
    output, *last = layer
    cell = last[1] if kind == "LSTM" else op.constant([], op.dtype(x))
    if directions == 1:
        return op.Squeeze(output, [1]), last[0], cell
    return op.Reshape(op.Transpose(output, perm=[0, 2, 1, 3]), [0, 0, -1]), last[0], cell
