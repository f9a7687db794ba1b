"""Brings a proven float32 graph to eight bits: calibrate, choose ranges, rank the layers, search for the limit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.graph.excerpt import copy_of
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.precision.int8.calibration import Calibration, calibration_of
from torch_onnx_compat.precision.int8.layers import ADDS_A_BIAS, FOLLOWERS, Quantizable
from torch_onnx_compat.precision.int8.loss import relative_distance
from torch_onnx_compat.precision.int8.on_engine import keep_for_engine
from torch_onnx_compat.precision.int8.pair_model import PairModel
from torch_onnx_compat.precision.int8.ranges import CHOOSING, ChosenRanges, choose_ranges
from torch_onnx_compat.precision.int8.request import Int8
from torch_onnx_compat.precision.int8.search import Search
from torch_onnx_compat.precision.int8.verdict import LayerLoss, Quantized
from torch_onnx_compat.precision.int8.writer import RangeCollector, Writer
from torch_onnx_compat.precision.layout import HEAVY, Layout
from torch_onnx_compat.precision.narrow import PrecisionJob
from torch_onnx_compat.publish.publish import draft, is_large
from torch_onnx_compat.session import open_session, options_of_few_runs
from torch_onnx_compat.targets import Target

EFFECT_SECONDS = 20.0
"""Seconds that runs with one layer in eight bits may take; the layers with the least rounding go without."""

IMPRECISE = "the limit does not hold with it in eight bits"
NOT_FINITE = "its values are not finite"


@dataclass(frozen=True)
class QuantizedNetwork:
    """A graph in eight bits, and what is known of it."""

    model: ir.Model
    precision: Quantized


def quantize_network(job: PrecisionJob, int8: Int8, target: Target, samples: Sequence[Inputs]) -> QuantizedNetwork:
    """Brings a graph to eight bits, and judges it.

    Args:
        job: The proven network, and how it is run.
        int8: What was asked for, already read.
        target: Has the placement.
        samples: The export's samples.

    Raises:
        CompatError: The calibration inputs, the metric or the opset do not fit.
        ArgumentError: The target's profile says nothing of quantized files.
        VerificationError: onnxruntime does not run the file.
    """
    int8.check(job.network.opset_imports[""], target)
    assert target.placement is not None
    graph = Quantizable.of(job.network, target.placement, int8.keep)
    with ExitStack() as stack:
        calibration = calibration_of(job.observation, int8, samples)
        return _Quantization(job, int8, target, graph, calibration, stack).run()


@dataclass
class _Quantization:
    job: PrecisionJob
    int8: Int8
    target: Target
    graph: Quantizable
    calibration: Calibration
    stack: ExitStack
    runs: int = 0

    def run(self) -> QuantizedNetwork:
        self.search = Search(self.job, self.int8, self.calibration.held_out)
        self.writer = Writer(self.graph.proto, self.graph.placement)
        self._collect()
        layers = self._rank()
        kept = dict.fromkeys(self.search.find([node for node, _ in layers], self._write), IMPRECISE)
        kept |= keep_for_engine(self.search, self.target, list(kept), self.graph.layers, self._write)
        model = self._write(list(kept))
        outputs = self.search.finish(model, len(kept))
        return QuantizedNetwork(model, self._verdict(layers, kept, model, outputs))

    # Calibration

    def _collect(self) -> None:
        """Runs the float32 graph on the calibration inputs, and chooses the ranges."""
        feeds: list[dict[str, Any]] = [dict(self.job.feeds(inputs)) for inputs in self.calibration.inputs]
        given = [str(value.name) for value in self.graph.tensors() if value.is_graph_input()]
        tensors = [str(value.name) for value in self.graph.tensors() if not value.is_graph_input()]
        outputs = [str(value.name) for value in self.graph.model.graph.outputs]
        collector = RangeCollector()
        endless: set[str] = set()
        session = open_session(self._with_outputs(tensors), sess_options=options_of_few_runs())
        for feed in feeds:
            found = {name: np.asarray(feed[name]) for name in given}
            results: Any = session.run(tensors, feed) if tensors else ()
            found |= zip(tensors, results, strict=True)
            endless |= {name for name, array in found.items() if not np.isfinite(array).all()}
            collector.add({name: array for name, array in found.items() if name not in endless and array.size})
        self.runs += len(feeds)
        self.feeds = feeds[:CHOOSING]
        self.exact: list[Any] = [session.run(outputs, feed) for feed in self.feeds]
        del session
        proposals = collector.ranges()
        known = set(proposals["min-max"]) - endless
        for node in self.graph.chosen():
            if any(v.name not in known for v in (*node.inputs, *node.outputs) if v in self._floats):
                self.graph.obstacles[str(node.name)] = NOT_FINITE
        chosen = [str(node.name) for node in self.graph.chosen()]
        self.model: PairModel | None = None
        self.ranges = ChosenRanges({}, {}, "none", {})
        if chosen:
            proposals = {m: {name: limits[name] for name in known} for m, limits in proposals.items()}
            self.model = PairModel.open(self.stack, self.writer, proposals["min-max"], chosen)
            self.ranges = choose_ranges(self.model, proposals, self.feeds, self.exact)

    @property
    def _floats(self) -> set[ir.Value]:
        return set(self.graph.tensors())

    def _with_outputs(self, names: Sequence[str]) -> Any:
        """A file of the float32 graph that gives these values too."""
        model = copy_of(self.graph.model)
        values = {str(value.name): value for node in model.graph for value in node.outputs}
        model.graph.outputs.extend(values[name] for name in names if not values[name].is_graph_output())
        return self.stack.enter_context(draft(model, None, is_large(model))).path

    # Layers

    def _rank(self) -> list[tuple[ir.Node, LayerLoss]]:
        """The layers, those first that cost most."""
        rows: list[tuple[ir.Node, LayerLoss]] = []
        if self.model is None:
            return rows
        nodes = self.graph.layers
        rounding = {node: self._rounding(node) for node in nodes}
        feeds, exact = self.feeds[:1], self.exact[:1]
        end = time.perf_counter() + EFFECT_SECONDS
        for node in sorted(nodes, key=lambda node: -rounding[node]):
            effect = None
            if time.perf_counter() < end:
                found = [self.model.run(feed, self.model.of_node.get(str(node.name), set())) for feed in feeds]
                effect = relative_distance(found, exact)
            read = next((str(v.name) for v in node.inputs if v is not None and v.name in self.ranges.methods), "")
            method = self.ranges.methods.get(read, "")
            rows.append((node, LayerLoss(place(node), node.op_type, rounding[node], effect, method)))
        missing = sum(row.effect is None for _, row in rows)
        if missing:
            self.search.note(f"of {missing} layers with the least rounding the effect was not measured: too slow.")
        return sorted(rows, key=lambda pair: (pair[1].effect is None, -(pair[1].effect or 0.0)))

    def _rounding(self, node: ir.Node) -> float:
        assert self.model is not None
        around = {self.model.tensors[switch] for switch in self.model.of_node.get(str(node.name), set())}
        return max((self.ranges.rounding[tensor] for tensor in around - self.graph.cut_off()), default=0.0)

    def _write(self, kept: Sequence[ir.Node]) -> ir.Model:
        nodes = [str(node.name) for node in self.graph.chosen({str(node.name) for node in kept})]
        return self.writer.write(self.ranges.ranges, nodes)

    # The result

    def _verdict(
        self,
        layers: Sequence[tuple[ir.Node, LayerLoss]],
        kept: Mapping[ir.Node, str],
        model: ir.Model,
        outputs: Sequence[Sequence[Array]],
    ) -> Quantized:
        if not any(node.op_type == "DequantizeLinear" for node in model.graph):
            self.search.note("nothing is in int8: no layer could be, or none within the limit.")
        for text in self._left_out():
            self.search.note(text)
        rows = [_told(node, row, kept) for node, row in layers]
        rows += [
            LayerLoss(place(node), node.op_type, kept=True, why=self.graph.obstacles[str(node.name)])
            for node in self.graph.model.graph
            if self.graph.obstacles.get(str(node.name), ADDS_A_BIAS) != ADDS_A_BIAS and node.op_type not in FOLLOWERS
        ]
        told = self.search.verdict(
            outputs,
            tuple(rows),
            self.runs + (self.model.runs if self.model is not None else 0),
            len(self.graph.chosen({str(node.name) for node in kept})),
        )
        return replace(
            told,
            is_proven=self.calibration.is_held_out,
            calibrated_on=len(self.calibration.inputs),
            method=self.ranges.name,
        )

    def _left_out(self) -> Iterator[str]:
        """What is not even tried in eight bits."""
        yield from left_in_bodies(self.graph.model)
        layout = Layout.of(self.graph.model)
        main = set(self.graph.model.graph)
        others = [n for n in layout.nodes if n in main and n.op_type in HEAVY and n.op_type not in self._kernels]
        if others:
            yield f"{_counted(others)} have no static form in eight bits, and stay in float32."

    @property
    def _kernels(self) -> Sequence[str]:
        return self.graph.placement.kernels


def left_in_bodies(model: ir.Model) -> Iterator[str]:
    """Says what is not tried as it stands in a branch, a loop or a function."""
    layout = Layout.of(model)
    inner = [n for n, where in zip(layout.nodes, layout.subgraph_of, strict=True) if where and n.op_type in HEAVY]
    if inner:
        yield f"{_counted(inner)} in branches, loops and functions stay in float32."


def _told(node: ir.Node, row: LayerLoss, kept: Mapping[ir.Node, str]) -> LayerLoss:
    return replace(row, kept=node in kept, why=kept.get(node, ""))


def _counted(nodes: Sequence[ir.Node]) -> str:
    return ", ".join(f"{count} {op_type}" for op_type, count in Counter(node.op_type for node in nodes).items())
