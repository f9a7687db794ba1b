"""Measures what each node of a float32 graph would lose in a format of half the width, on given inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime

from torch_onnx_compat.catalogue.entry import MIN_OPSET
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.instrument import BEYOND, STATISTICS, Island, Key, can_be_shadowed, instrument
from torch_onnx_compat.precision.layout import MOVES, Layout, is_float
from torch_onnx_compat.publish.publish import draft, is_large
from torch_onnx_compat.session import open_session, options_of_few_runs

Feeds = Mapping[str, Any]
"""Inputs of a graph by name, as numpy arrays."""


_RANGES = ("peak", "made", "terms")
"""What says how large numbers become."""

_LEAST_POWER, _MOST_POWER = 0.3, 2.0
"""The largest of more random numbers is a little larger; a sum grows with the length, a sum of squares no faster."""


@dataclass
class Measurement:
    """What the runs showed: of each node, the largest number of all runs."""

    numbers: dict[Key, float] = field(default_factory=dict)
    runs: int = 0
    """How many inputs were measured on."""

    def of(self, what: str, node: int) -> float:
        """A number of a node; 0 where it was not measured."""
        return self.numbers.get((what, node), 0.0)

    def take_largest(self, other: Measurement) -> None:
        """Takes in other runs of the same graph."""
        self.runs += other.runs
        for key, number in other.numbers.items():
            self.numbers[key] = max(number, self.numbers.get(key, 0.0))

    def take(self, keys: Sequence[Key], vector: Any) -> None:
        """Takes in the vector of one run."""
        self.runs += 1
        for key, number in zip(keys, vector.tolist(), strict=True):
            value = float("inf") if np.isnan(number) else float(number)
            self.numbers[key] = max(self.numbers.get(key, 0.0), value)


def measure_nodes(model: ir.Model, half: Half, feeds: Sequence[Feeds]) -> Measurement:
    """Measures every node that computes, each alone.

    Args:
        model: The float32 graph; unchanged.
        half: The format.
        feeds: The inputs, one mapping for each run.

    Raises:
        CompatError: The graph's opset is too low.
    """
    layout = Layout.of(model)
    if layout.opset < MIN_OPSET:
        raise CompatError(
            f"what nodes lose is measured from opset {MIN_OPSET} on, and the file has opset {layout.opset}; convert it "
            f"to a later one first, as `torch-onnx-compat convert FILE -o NEW --opset {MIN_OPSET}` does."
        )
    computing = [
        number
        for number, node in enumerate(layout.nodes)
        if node.op_type not in MOVES
        and can_be_shadowed(node)
        and (any(is_float(v) for v in node.outputs) or any(is_float(v) for v in node.inputs))
    ]
    try:
        quick = _measure(model, half, feeds, computing, is_careful=False)
    except Exception:  # a tensor without an element has no largest one
        return _measure_apart(model, half, feeds, computing)
    again = [n for n in computing if not quick.of("loss", n) < BEYOND or quick.of("peak", n) > half.largest]
    careful = _measure_apart(model, half, feeds, again) if again else Measurement()
    for number in set(computing) - set(again):
        careful.numbers[("made", number)] = quick.of("peak", number)
    quick.numbers.update(careful.numbers)
    return quick


def _measure_apart(model: ir.Model, half: Half, feeds: Sequence[Feeds], shadows: Sequence[int]) -> Measurement:
    """Measures nodes; those that do not run on rounded inputs, or give other shapes there, lose everything.

    So Unique does, whose result is as long as there are different values.
    """
    try:
        return _measure(model, half, feeds, shadows)
    except Exception:  # onnxruntime's own
        if not shadows:
            raise
    if len(shadows) == 1:
        _measure(model, half, feeds, ())  # a graph that does not run at all is another matter
        return Measurement({("loss", shadows[0]): BEYOND}, len(feeds))
    middle = len(shadows) // 2
    found = _measure_apart(model, half, feeds, shadows[:middle])
    found.take_largest(_measure_apart(model, half, feeds, shadows[middle:]))
    return found


def reckon_growth(example: Measurement, longer: Sequence[tuple[Measurement, float, float]]) -> Measurement:
    """What the nodes' ranges come to at the largest sizes of all axes, each lengthened by itself, by power laws.

    Args:
        example: The runs on the example.
        longer: For each axis the run on the lengthened example, by how much that is lengthened, and how much longer the
            axis may become still.
    """
    found = Measurement()
    for key, number in example.numbers.items():
        if key[0] not in _RANGES or not number > 0:
            continue
        largest = number
        for measured, growth, reach in longer:
            ratio = measured.numbers.get(key, number) / number
            power = min(np.log(ratio) / np.log(growth), _MOST_POWER) if 0 < ratio < float("inf") else 0.0
            largest *= max(ratio, 1.0) * (reach**power if power > _LEAST_POWER else 1.0)
        found.numbers[key] = float(largest)
    return found


def measure_islands(model: ir.Model, half: Half, feeds: Sequence[Feeds], islands: Sequence[Island]) -> list[float]:
    """The loss of each island: what rounding its inputs does to the results of its targets.

    Args:
        model: The float32 graph; unchanged.
        half: The format.
        feeds: The inputs, one mapping for each run.
        islands: The islands.
    """
    try:
        found = _measure(model, half, feeds, (), islands)
    except Exception:  # onnxruntime's own, as for single nodes
        if len(islands) <= 1:
            return [BEYOND] * len(islands)
        return [loss for island in islands for loss in measure_islands(model, half, feeds, [island])]
    return [found.of("island", index) for index in range(len(islands))]


def _measure(
    model: ir.Model,
    half: Half,
    feeds: Sequence[Feeds],
    shadows: Collection[int],
    islands: Sequence[Island] = (),
    *,
    is_careful: bool = True,
) -> Measurement:
    copy, keys = instrument(model, half, shadows, islands, is_careful=is_careful)
    found = Measurement()
    with draft(copy, None, is_large(copy)) as written:
        session = open_session(written.path, sess_options=_options())
        taken = {value.name for value in session.get_inputs()}
        for each in feeds:
            (vector,) = session.run([STATISTICS], {name: array for name, array in each.items() if name in taken})
            found.take(keys, vector)
    return found


def _options() -> onnxruntime.SessionOptions:
    """Options of a few runs: nothing can be fused, as every result is read, and optimising takes as long as a run."""
    options = options_of_few_runs()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def feeds_of(inputs: Inputs) -> dict[str, Any]:
    """Example inputs as a session takes them."""
    return {
        name: tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().numpy()
        for name, tensor in zip(inputs.names, inputs.tensors, strict=True)
    }
