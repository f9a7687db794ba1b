"""What a file of half the width loses, whoever made it: nodes that overflow in the format, or lose too much in it.

The file is judged as an export's own is. What each node loses is measured on its float32 form, which has the file's
rounded weights and rounds nowhere; the plan for that form says which nodes should not be narrow, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import onnx_ir as ir
import torch

from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.file_log import NotRun
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.rendering import NARROW, narrow_types, render, widen
from torch_onnx_compat.graph.shapes import infer_functions, infer_model
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.precision.formats import Bfloat16, Float16, Half
from torch_onnx_compat.precision.instrument import Island
from torch_onnx_compat.precision.judge import CaseError, Judge, Run
from torch_onnx_compat.precision.layout import MOVES, Layout
from torch_onnx_compat.precision.measure import feeds_of, measure_islands, measure_nodes
from torch_onnx_compat.precision.narrow import PrecisionJob
from torch_onnx_compat.precision.plan import ISLAND, JOINED, MOVED, NO_FORM, RANGE, Reason, make_plan
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.publish.publish import draft, is_large


@dataclass(frozen=True)
class LostNode:
    """A narrow node that should be in float32.

    Attributes:
        place: Where in the model it is, as far as the file says.
        name: Its name, or that of its first output.
        op_type: Its operator.
        output: Name of its first output.
        why: The reason.
        loss: What it loses by itself, relative to its values.
        largest: Its largest value, or the largest sum on the way to it.
    """

    place: str
    name: str
    op_type: str
    output: str
    why: str
    loss: float
    largest: float


@dataclass(frozen=True)
class NarrowFinding:
    """How far a narrow file is off, and why.

    Attributes:
        half: The format, with the limit that the file was judged by.
        rows: How far each output is off.
        is_precision: Whether the float32 form of the file is right, so that the format is to blame.
        nodes: What should not be narrow; what overflows first, then what loses most.
        wide: The float32 form.
    """

    half: Half
    rows: tuple[CaseError, ...]
    is_precision: bool
    nodes: tuple[LostNode, ...]
    wide: ir.Model

    @property
    def ok(self) -> bool:
        """Whether every output is within the limit, or within what eager torch loses itself."""
        return all(row.ok for row in self.rows)


def half_of(model: ir.Model) -> Half | None:
    """The format that most of a file's narrow values have; None for a file without any."""
    counts = narrow_types(model)
    if not counts:
        return None
    half = Bfloat16 if counts[ir.DataType.BFLOAT16] > counts[ir.DataType.FLOAT16] else Float16
    return half(keep_io=not any(value.dtype in NARROW for value in model.graph.inputs))


def is_wide(prepared: Prepared) -> bool:
    """Whether a model has no weight and no input of half the width, so that a narrow file lost something."""
    tensors = [*prepared.model.parameters(), *prepared.model.buffers(), *prepared.inputs.tensors]
    return not any(tensor.dtype in (torch.float16, torch.bfloat16) for tensor in tensors)


def find_lost(prepared: Prepared, model: ir.Model, half: Half, inputs: Inputs) -> NarrowFinding:
    """Judges a narrow file on some inputs, and finds what should not be narrow in it.

    Args:
        prepared: The original, in float32.
        model: The file; unchanged.
        half: Its format.
        inputs: The inputs, with the file's own names.

    Raises:
        ModelRefused: The original fails on the inputs.
        NotRun: onnxruntime does not load the file.
    """
    observation = Observation(prepared)
    case = Case("example", inputs, observation.reference("example", inputs))
    names = [str(value.name) for value in model.graph.outputs]
    wide, rendering = widen(model), render(model)
    infer_model(wide)
    infer_functions(wide)
    job = PrecisionJob(wide, names, observation, [case], [inputs])
    with ExitStack() as stack:
        paths = [stack.enter_context(draft(each, None, is_large(each))).path for each in (model, rendering, wide)]
        rows = Judge(observation, half, names).judge(case, _runner(job, paths[0], half), job.runner(paths[1]))
        exact = Judge(observation, half, names).judge(case, None, job.runner(paths[2]))
    nodes = _lost_nodes(model, wide, half, inputs) if not all(row.ok for row in rows) else []
    return NarrowFinding(half, tuple(rows), all(row.ok for row in exact), tuple(nodes), wide)


def _runner(job: PrecisionJob, path: Path, half: Half) -> Run | None:
    """Runs the file itself; None where it is in bfloat16, for which onnxruntime's CPU has few kernels."""
    try:
        return job.runner(path)
    except Exception as error:  # onnxruntime's own, of several classes
        if half.torch_type is torch.bfloat16:
            return None
        raise NotRun(f"onnxruntime does not load the file: {' '.join(str(error).split())}") from error


def _lost_nodes(model: ir.Model, wide: ir.Model, half: Half, inputs: Inputs) -> list[LostNode]:
    narrow, layout = Layout.of(model), Layout.of(wide)
    feeds = [feeds_of(_as_float32(inputs))]

    def measure(islands: Sequence[Island]) -> list[float]:
        return measure_islands(wide, half, feeds, islands)

    measured = measure_nodes(wide, half, feeds)
    plan = make_plan(layout, half, measured, half.bound / 2, measure)
    found: list[tuple[float, int, Reason]] = []
    for number, reason in plan.kept.items():
        node = narrow.nodes[number]
        is_narrow = any(v is not None and v.dtype in NARROW for v in (*node.inputs, *node.outputs))
        if is_narrow and node.op_type not in MOVES and reason.text not in (ISLAND, JOINED, MOVED, NO_FORM):
            overflows = measured.of("peak", number) > half.largest or reason.largest > half.largest
            found.append((-float("inf") if overflows else -reason.loss, number, reason))
    return [_lost(layout.nodes[number], reason, half) for _, number, reason in sorted(found, key=lambda f: f[:2])]


def _lost(node: ir.Node, reason: Reason, half: Half) -> LostNode:
    output = str(node.outputs[0].name)
    is_far = reason.text.startswith(RANGE) and reason.largest
    why = f"{reason.text}, {half.reach(reason.largest)}" if is_far else reason.text
    return LostNode(place(node), str(node.name or output), node.op_type, output, why, reason.loss, reason.largest)


def _as_float32(inputs: Inputs) -> Inputs:
    """Inputs as the float32 form takes them."""
    return replace(inputs, tensors=tuple(t.float() if t.is_floating_point() else t for t in inputs.tensors))
