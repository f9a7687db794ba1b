"""Runs files of few bits in their target's engine, where it runs here: what it gets wrong stays in float32.

Engines move scales across nodes and merge nodes as they load a file. What comes of it depends on the neighbours, so
that no list of operators tells it: OpenCV 5.0.0 is wrong at a Sigmoid in eight bits behind a Conv, and right at others;
OpenVINO 2026.4.1 is wrong where such a Conv's result is joined to a constant that is repeated for each image.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import onnx_ir as ir

from torch_onnx_compat.check.on_target import EngineSession
from torch_onnx_compat.engines import ENGINES, EngineProcess
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.precision.int8.loss import relative_distance
from torch_onnx_compat.precision.int8.search import Search
from torch_onnx_compat.publish.publish import draft, is_large
from torch_onnx_compat.targets import Target

FACTOR, FLOOR = 2.0, 0.01
"""An engine is right where its outputs are at most this factor times as far from the original's as onnxruntime's of the
same file, or off by at most this part of their size: values between two steps fall to either."""

INPUTS = 2
"""Inputs that a file is run on."""

LIMIT, SECONDS = 120.0, 90.0
"""Seconds that one run may take, and the search for what an engine gets wrong."""

SHOWN = 4
"""Layers that a note names."""

Write = Callable[[Sequence[ir.Node]], ir.Model]
"""Makes the graph with some layers in float32."""


def keep_for_engine(
    search: Search, target: Target, kept: Sequence[ir.Node], layers: Sequence[ir.Node], write: Write
) -> dict[ir.Node, str]:
    """Finds the layers that have to stay in float32 for the target's engine to be right.

    Args:
        search: Has the inputs, and what the original computes of them; gets a note on what came of it.
        target: Its engine is run where it is another than onnxruntime and runs files here.
        kept: The layers that stay in float32 anyway.
        layers: All layers in the graph's order.
        write: Makes the graph with some of them in float32.

    Returns:
        The layers besides, and why.
    """
    engine = ENGINES.get(target.name)
    if engine is None or engine.builds or target.name == "onnxruntime" or engine.interpreter() is None:
        return {}
    with EngineProcess(engine, LIMIT) as process:
        return _OnEngine(search, process, f"{target.name} {process.version}", write).keep(list(kept), layers)


class _OnEngine:
    def __init__(self, search: Search, process: EngineProcess, name: str, write: Write) -> None:
        self._search, self._process, self._name, self._write = search, process, name, write
        self._inputs, self._wanted = search.inputs[:INPUTS], search.wanted[:INPUTS]

    def keep(self, kept: list[ir.Node], layers: Sequence[ir.Node]) -> dict[ir.Node, str]:
        off, own = self._distances(kept)
        if _is_right(off, own):
            self._search.note(f"run on {self._name}: off by {off:.2g} of the outputs' size, onnxruntime by {own:.2g}.")
            return {}
        what = "does not run the file" if off == float("inf") else f"is off by {off:.2g} of the outputs' size"
        if not _is_right(*self._distances(layers)):
            self._search.note(f"{self._name} {what}, and computes something else with every layer in float32 too.")
            return {}
        more: list[ir.Node] = []
        end = time.monotonic() + SECONDS
        while not _is_right(*self._distances(kept + more)):
            rest = [node for node in layers if node not in kept and node not in more]
            if time.monotonic() > end:
                more += rest
                break
            culprit = self._first_wrong(kept + more, rest)
            is_known = any(node.op_type == culprit.op_type for node in more)
            more += [n for n in rest if n is culprit or (is_known and n.op_type == culprit.op_type)]
        places = ", ".join(f"{node.op_type} {place(node)}" for node in more[:SHOWN])
        places += f" and {len(more) - SHOWN} more" if len(more) > SHOWN else ""
        self._search.note(f"{self._name} {what} unless these stay in float32: {places}.")
        return dict.fromkeys(more, f"{self._name} computes something else with it in few bits")

    def _first_wrong(self, kept: Sequence[ir.Node], rest: Sequence[ir.Node]) -> ir.Node:
        """The layer with which the engine becomes wrong, as more and more of the first ones are in few bits."""
        low, high = 0, len(rest)
        while high - low > 1:
            middle = (low + high) // 2
            if _is_right(*self._distances([*kept, *rest[middle:]])):
                low = middle
            else:
                high = middle
        return rest[low]

    def _distances(self, kept: Sequence[ir.Node]) -> tuple[float, float]:
        """How far a file's outputs are from those wanted: in the engine, infinitely if it fails, and in onnxruntime."""
        model = self._write(kept)
        with draft(model, None, is_large(model)) as written:
            run = self._search.job.runner(written.path)
            own = relative_distance([run(inputs) for inputs in self._inputs], self._wanted)
            run = self._search.job.around(EngineSession(self._process, written.path))
            try:
                # An engine's arrays live until its next run.
                found = [[array.copy() for array in run(inputs)] for inputs in self._inputs]
            except RuntimeError:
                return float("inf"), own
        return relative_distance(found, self._wanted), own


def _is_right(off: float, own: float) -> bool:
    return off <= max(FACTOR * own, FLOOR)
