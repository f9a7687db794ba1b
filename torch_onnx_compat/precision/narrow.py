"""Brings a proven float32 graph to a format of half the width: measure, plan, convert, judge, until the bound holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.chain import Chain
from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.check.verify import run_session
from torch_onnx_compat.errors import ArgumentError, VerificationError
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.rendering import NARROW, render
from torch_onnx_compat.graph.shapes import infer_functions, infer_model
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.precision.convert import convert
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.instrument import Island
from torch_onnx_compat.precision.judge import CaseError, Judge
from torch_onnx_compat.precision.layout import MOVES, Layout, is_float
from torch_onnx_compat.precision.measure import (
    Feeds,
    Measurement,
    feeds_of,
    measure_islands,
    measure_nodes,
    reckon_growth,
)
from torch_onnx_compat.precision.measuring_inputs import LongExample
from torch_onnx_compat.precision.plan import HalfPlan, everything, make_plan
from torch_onnx_compat.precision.verdict import Kept, Precision
from torch_onnx_compat.publish.publish import draft, is_large
from torch_onnx_compat.session import open_session, options_of_few_runs
from torch_onnx_compat.surgery.on_graph.stage import Stage

ATTEMPTS = 3
"""Plans at most; each allows a node a quarter of what the one before did. Then everything stays in float32."""

STRICTER = 0.25

LEAST_S, PART = 1.0, 0.2
"""Seconds that judging may take: the least, and the part of what the export took so far."""

FEWEST = 3
"""Cases that are judged whatever they take: the example, spread values and another size."""


@dataclass(frozen=True)
class NarrowNetwork:
    """A graph in the format, and what is known of it."""

    model: ir.Model
    precision: Precision


@dataclass
class PrecisionJob:
    """What is brought to the format: a proven network, and how it is run and compared.

    Attributes:
        network: The float32 graph.
        names: Names of the outputs of the whole, the stages after the network included.
        observation: Runs the original.
        cases: Inputs with the original's outputs, on which the float32 graph was right; the example first. Without
            any, nothing is judged.
        inputs: Inputs to measure on besides.
        before: Stages before the network.
        after: Stages after it.
        special: Cases on special values, where rounding may decide what the original computes; the first is judged
            right after the example.
        longer: The example at larger sizes of its axes, up to which the caller allows them.
        seconds: What the export took so far.
    """

    network: ir.Model
    names: Sequence[str]
    observation: Observation
    cases: Sequence[Case]
    inputs: Sequence[Inputs]
    before: Sequence[Stage] = ()
    after: Sequence[Stage] = ()
    special: Sequence[Case] = ()
    longer: Sequence[LongExample] = ()
    seconds: float = 0.0

    def feeds(self, inputs: Inputs) -> Feeds:
        """The network's own inputs."""
        known = feeds_of(inputs)
        for stage in self.before:
            results = stage.session().run(list(stage.outputs), {name: known[name] for name in stage.inputs})
            known.update((stage.feeds.get(n, n), r) for n, r in zip(stage.outputs, results, strict=True))
        return known

    def runner(self, path: Any, **options: Any) -> Callable[[Inputs], list[Array]]:
        """Runs a file for the network, with the stages around it; float16 outputs are widened.

        Args:
            path: The file.
            **options: Passed on to the session.
        """
        options.setdefault("sess_options", options_of_few_runs())
        return self.around(open_session(path, **options))

    def around(self, session: Any) -> Callable[[Inputs], list[Array]]:
        """Runs a session for the network, onnxruntime's or another with its interface, with the stages around it."""
        first, last = ([(s.session(), s.feeds) for s in stages] for stages in (self.before, self.after))
        if first or last:
            session = Chain([*first, (session, {}), *last], self.names)

        def run(inputs: Inputs) -> list[Array]:
            return [a.astype(np.float32) if a.dtype == np.float16 else a for a in run_session(session, inputs)]

        return run


def narrow_network(job: PrecisionJob, half: Half) -> NarrowNetwork:
    """Brings a graph to a format, and proves it.

    Raises:
        CompatError: The opset does not have the format.
        VerificationError: onnxruntime does not run the file.
    """
    opset = job.network.opset_imports[""]
    if opset < half.least_opset:
        raise ArgumentError(f"{half.name} needs opset {half.least_opset} or later, not {opset}; pass opset_version.")
    return _Search(job, half).run()


@dataclass
class _Search:
    """Looks for the plan of the largest part in the format for which the bound holds."""

    job: PrecisionJob
    half: Half
    feeds: list[Feeds] = field(default_factory=list)
    measured: Measurement = field(default_factory=Measurement)
    notes: list[str] = field(default_factory=list)

    def run(self) -> NarrowNetwork:
        network = self.job.network
        infer_model(network)
        infer_functions(network)
        layout = Layout.of(network)
        allowed = self.half.bound / 2
        new = [self.job.feeds(inputs) for inputs in self.job.inputs]
        for number in range(ATTEMPTS):
            self._measure(new)
            if number == 0:
                self._measure_growth()
            plan = make_plan(layout, self.half, self.measured, allowed, self._measure_islands)
            model = convert(network, self.half, plan)
            rows, failed = self._judge(model)
            if failed is None:
                return self._result(layout, plan, model, rows)
            self.notes.append(
                f"where each node might lose {allowed:.1g}, the file was off by {_worst(rows):.2g} at {failed.label}."
            )
            allowed *= STRICTER
            new = [self.job.feeds(failed.inputs)] if number == 0 else []
        plan = everything(layout)
        model = convert(network, self.half, plan)
        rows, _ = self._judge(model)
        return self._result(layout, plan, model, rows)

    def _measure(self, feeds: Sequence[Feeds]) -> None:
        if feeds:
            found = measure_nodes(self.job.network, self.half, feeds)
            self.feeds += feeds
            self.measured.take_largest(found)

    def _measure_growth(self) -> None:
        """Measures how large values become at the sizes that the caller allows."""
        if not self.job.longer:
            return
        found = []
        example = measure_nodes(self.job.network, self.half, self.feeds[:1])
        for example_at in self.job.longer:
            try:
                measured = measure_nodes(self.job.network, self.half, [self.job.feeds(example_at.inputs)])
            except Exception:  # onnxruntime's own: the model does not take this size
                continue
            self.measured.runs += 1
            found.append((measured, example_at.growth, example_at.reach))
        self.measured.take_largest(reckon_growth(example, found))

    def _measure_islands(self, islands: Sequence[Island]) -> list[float]:
        self.measured.runs += len(self.feeds)
        return measure_islands(self.job.network, self.half, self.feeds, islands)

    # Judging

    def _judge(self, model: ir.Model) -> tuple[list[CaseError], Case | None]:
        """The comparisons, up to the first case that fails, and that case."""
        if not self.job.cases:
            return [], None
        judge = Judge(self.job.observation, self.half, self.job.names)
        rows: list[CaseError] = []
        end = time.perf_counter() + max(LEAST_S, PART * self.job.seconds)
        with ExitStack() as stack:
            run_file = self._open_file(stack, model)
            rendering = stack.enter_context(draft(render(model), None, is_large(model)))
            run_rendering = self.job.runner(rendering.path)
            special = [(case, True) for case in self.job.special]
            plain = [(case, False) for case in self.job.cases]
            cases = [*plain[:1], *special[:1], *plain[1:], *special[1:]]
            for number, (case, is_special) in enumerate(cases):
                if number >= FEWEST and time.perf_counter() > end:
                    self._note(f"{len(cases) - number} of {len(cases)} cases were not compared: they take too long.")
                    break
                found = judge.judge(case, run_file, run_rendering, is_special=is_special)
                if is_special and not all(row.ok for row in found) and self._is_undecided(found):
                    self._note(f"at {case.label} rounding decides what the model computes, so nothing was compared.")
                    continue
                rows += found
                if not all(row.ok for row in found):
                    return rows, case
        for note in judge.notes:
            self._note(note)
        return rows, None

    def _is_undecided(self, rows: Sequence[CaseError]) -> bool:
        """Whether eager float32 is off by so much that the format, with its larger unit, cannot be right."""
        units = self.half.unit / torch.finfo(torch.float32).eps
        return any(row.float32 and row.float32.worst * units > self.half.bound for row in rows if not row.ok)

    def _open_file(self, stack: ExitStack, model: ir.Model) -> Callable[[Inputs], Any] | None:
        """Runs the file; None where onnxruntime has no kernel for the format."""
        written = stack.enter_context(draft(model, None, is_large(model)))
        try:
            return self.job.runner(written.path)
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            if self.half.torch_type is torch.float16:
                raise VerificationError(f"onnxruntime does not load the file in {self.half.name}: {reason}") from error
            self._note(f"onnxruntime's CPU does not run the file, so its rendering alone was compared ({reason}).")
            return None

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # The result

    def _result(self, layout: Layout, plan: HalfPlan, model: ir.Model, rows: Sequence[CaseError]) -> NarrowNetwork:
        made = Layout.of(model)
        computing = [n for n in made.nodes if n.op_type not in MOVES and n.op_type != "Cast" and not n.domain]
        narrow = [n for n in computing if any(v is not None and v.dtype in NARROW for v in (*n.inputs, *n.outputs))]
        wide = [n for n in computing if n not in narrow and any(is_float(v) for v in (*n.inputs, *n.outputs))]
        if not narrow:
            why = "no node could be, or none within the limit"
            is_strict = self.half.bound < self.half.unit / 2
            self._note(f"nothing is in {self.half.name}: {'; '.join(self.half.too_strict) if is_strict else why}.")
        products = {n: self.measured.of("products", n) for n in range(len(layout.nodes))}
        total = sum(products.values())
        share = sum(count for n, count in products.items() if n not in plan.kept) / total if total else None
        judges = "the rendering" if rows and rows[0].file is None else "onnxruntime and the rendering"
        return NarrowNetwork(
            model,
            Precision(
                format=self.half.name,
                limit=self.half.bound,
                narrow=len(narrow),
                wide=len(wide),
                casts=sum(n.op_type == "Cast" for n in made.nodes) - sum(n.op_type == "Cast" for n in layout.nodes),
                share=share,
                kept=tuple(_kept(layout, plan)),
                errors=tuple(rows),
                runs=self.measured.runs,
                judges=judges,
                notes=tuple(self.notes),
            ),
        )


def _kept(layout: Layout, plan: HalfPlan) -> Iterator[Kept]:
    for number, reason in sorted(plan.kept.items()):
        node = layout.nodes[number]
        if node.op_type not in MOVES and any(is_float(v) for v in (*node.inputs, *node.outputs)):
            yield Kept(place(node), node.op_type, reason.text, reason.loss, reason.largest)


def _worst(rows: Sequence[CaseError]) -> float:
    return max(max(row.rendering.worst, row.file.worst if row.file else 0.0) for row in rows if not row.ok)
