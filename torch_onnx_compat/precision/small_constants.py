"""Constants that a format does not hold, such as the 1e-9 of ``log(p + 1e-9)``, and the nodes that need them.

Such a constant shows in the results only where the other operand is small, so a measurement finds nothing unless its
inputs come that close. What is lost there is known without any: the constant itself is followed through the graph, as
if the other operand were zero, as far as the format does not hold what becomes of it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.stream import write_model
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.instrument import can_be_shadowed
from torch_onnx_compat.precision.layout import HEAVY, MOVES, WEIGHTS, Layout, is_float, takes_half
from torch_onnx_compat.session import open_session

_SCALES = frozenset({"Div", "Mul"})
"""A constant that scales shows in every result, so that a measurement finds what it loses."""

_SUMS = frozenset({"Add", "Sub", "Sum"})
"""Sums of several values are no smaller than what rounding their operands changes."""


@dataclass
class SmallConstants:
    """Finds the nodes that constants are lost in.

    Attributes:
        layout: The graph.
        half: The format.
        allowed: How much rounding may change a number, relative to it.
    """

    layout: Layout
    half: Half
    allowed: float
    reasons: dict[int, str] = field(default_factory=dict)
    """Of each node that must stay in float32, the number that it reads, and what becomes of that in the format."""
    before: set[int] = field(default_factory=set)
    """Nodes that compute what such a constant is added to, or compared with."""
    _given_on: dict[ir.Value, list[ir.Value]] = field(default_factory=dict)
    """Where values go on to in the graphs around theirs, and in bodies."""
    _computed: dict[Any, float | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for value, sources in self.layout.makers().items():
            for source in sources:
                if source is not None and is_float(value):
                    self._given_on.setdefault(source, []).append(value)

    def find(self) -> None:
        """Looks at every node."""
        for number, node in enumerate(self.layout.nodes):
            if node.op_type in HEAVY or node.op_type in _SCALES or not can_be_shadowed(node):
                continue
            lost = next((c for c in self._constants_of(node) if self._is_lost(c)), None)
            if lost is not None and node.op_type != "Constant":
                self.reasons.setdefault(number, self._tell(lost))
                self.before |= self._ancestors(number)
                self._follow(node, lost)

    def _constants_of(self, node: ir.Node) -> Iterator[float]:
        """The numbers that a node reads where the format rounds them; of a vector the largest."""
        if node.op_type == "ConstantOfShape" and is_float(node.outputs[0]) and "value" in node.attributes:
            yield float(node.attributes["value"].as_tensor().numpy().reshape(-1)[0])
        for position, value in enumerate(node.inputs):
            if is_float(value) and takes_half(node, position, self.layout.opset, self.half.onnx_type):
                number = _number_of(value, any_vector=True)
                if number is not None:
                    yield number

    def _is_lost(self, number: float) -> bool:
        """Whether rounding changes a number, or its distance from 1, which ``log(1 - p)`` is about."""
        if not math.isfinite(number) or abs(number) > self.half.largest:
            return False  # what is beyond becomes the largest number
        rounded = self._round(number)
        return abs(rounded - number) > self.allowed * abs(number) or (abs(rounded) == 1 and rounded != number)

    def _round(self, number: float) -> float:
        return float(torch.tensor(number, dtype=torch.float32).to(self.half.torch_type))

    def _tell(self, number: float) -> str:
        return f"reads {np.float32(number)!s}, which is {self._round(number):.3g} in {self.half.name}"

    def _follow(self, first: ir.Node, number: float) -> None:
        """Keeps the nodes that read what becomes of a number where the other operand leaves it as it is."""
        known = {value: number for value in first.outputs if is_float(value)}
        waiting = list(known)
        while waiting:
            value = waiting.pop(0)
            if not self._is_beyond(known[value]):
                continue
            onward = [other for other in self._given_on.get(value, ()) if other not in known]
            known.update(dict.fromkeys(onward, known[value]))
            waiting += onward
            for use in value.uses():
                node = use.node
                own = self.layout.numbers.get(node)
                if own is None or node.op_type in HEAVY or not can_be_shadowed(node):
                    continue
                self.reasons.setdefault(own, self._tell(known[value]))
                made = known[value] if node.op_type in MOVES else self._compute(node, known)
                fresh = [v for v in node.outputs if is_float(v) and v not in known]
                if made is not None:
                    known.update(dict.fromkeys(fresh, made))
                    waiting += fresh

    def _is_beyond(self, number: float) -> bool:
        return self._is_lost(number) or abs(number) > self.half.largest

    def _compute(self, node: ir.Node, known: Mapping[ir.Value, float]) -> float | None:
        """What a node makes of numbers; None where it reads other values too."""
        numbers = [known.get(v, _number_of(v)) if v is not None and is_float(v) else None for v in node.inputs]
        others = [v for v in node.inputs if v is not None and not is_float(v)]
        if any(n is None for n, v in zip(numbers, node.inputs, strict=True) if v is not None and is_float(v)):
            return None
        if any(constant_tensor(v) is None for v in others):
            return None
        attributes = tuple(sorted((name, str(attribute.value)) for name, attribute in node.attributes.items()))
        key = (node.op_type, attributes, tuple(numbers), tuple(str(v.name) for v in others))
        if key not in self._computed:
            self._computed[key] = _run(self.layout.model, node, numbers)
        return self._computed[key]

    def _ancestors(self, number: int) -> set[int]:
        """The nodes that make small values of ordinary ones: back to products of matrices and to sums."""
        found: set[int] = set()
        waiting = [number]
        while waiting:
            for value in self.layout.nodes[waiting.pop()].inputs:
                other = self.layout.producer(value) if is_float(value) else None
                if other is None or other in found or not self._makes_small(self.layout.nodes[other]):
                    continue
                found.add(other)
                waiting.append(other)
        return found

    def _makes_small(self, node: ir.Node) -> bool:
        if node.op_type in HEAVY or not can_be_shadowed(node):
            return False
        return node.op_type not in _SUMS or any(_number_of(v, any_vector=True) is not None for v in node.inputs)


def _number_of(value: ir.Value | None, *, any_vector: bool = False) -> float | None:
    """The number that a constant holds, throughout or, of any vector, at most; None for a value and for weights."""
    tensor = constant_tensor(value)
    if tensor is None or not 0 < tensor.size < WEIGHTS or not is_float(value):
        return None
    numbers = np.asarray(tensor.numpy(), np.float32).reshape(-1)
    largest = numbers[np.abs(numbers).argmax()]
    if not (numbers == numbers[0]).all():
        near = 0.5 < abs(largest) < 2  # weights: some of them are near 1
        return float(largest) if any_vector and not near else None
    return float(largest)


def _run(model: ir.Model, node: ir.Node, numbers: list[float | None]) -> float | None:
    """Runs a node on tensors of one element; None where it does not run on these."""
    inputs: list[ir.Value | None] = []
    for value, number in zip(node.inputs, numbers, strict=True):
        if value is None:
            inputs.append(None)
            continue
        array = constant_tensor(value).numpy() if number is None else None
        if array is None:
            rank = len(value.shape) if value.shape is not None else 1
            array = np.full((1,) * rank, number, np.float32)
        tensor = ir.tensor(array, name=f"in_{len(inputs)}")
        inputs.append(ir.Value(name=tensor.name, const_value=tensor, type=ir.TensorType(tensor.dtype)))
    count = len(node.outputs)
    clone = ir.Node("", node.op_type, inputs, list(node.attributes.values()), num_outputs=count, version=node.version)
    clone.outputs[0].name = "out"
    for other in clone.outputs[1:]:
        other.name = ""
    clone.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
    given = list(dict.fromkeys(v for v in inputs if v is not None))
    graph = ir.Graph([], [clone.outputs[0]], nodes=[clone], initializers=given, opset_imports=model.opset_imports)
    buffer = io.BytesIO()
    try:
        write_model(ir.Model(graph, ir_version=model.ir_version), buffer)
        made = np.asarray(open_session(buffer.getvalue()).run(None, {})[0])
    except Exception:  # onnxruntime's own: the operator takes no tensor of one element, or gives no float
        return None
    return float(made.reshape(-1)[0]) if made.size == 1 else None
