"""What is done to a file on purpose before it is converted: axes freed, surgery; each is proven by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.catalogue.entry import MIN_OPSET
from torch_onnx_compat.check.compare import Comparison
from torch_onnx_compat.clock import Clock
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.files.free_axes import FreeAxes, check_free_axes, free_axes
from torch_onnx_compat.files.opset import change_opset
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.reading import OnnxFile, read
from torch_onnx_compat.files.rewriting import drop_weights_from_inputs
from torch_onnx_compat.files.runner import Runner
from torch_onnx_compat.files.size_constants import Shapes
from torch_onnx_compat.files.surgery import Surgery, operate
from torch_onnx_compat.publish.publish import Draft, draft, is_large
from torch_onnx_compat.surgery.on_graph.cut_graph import CutGraph

STRIDE = 32
"""By how much a freed axis is lengthened, besides being doubled: many networks of pictures take its multiples alone."""


@dataclass(frozen=True)
class Runs:
    """On what files are compared, and where they run."""

    given: Sequence[Mapping[str, Any]]
    sizes: Mapping[str, tuple[int, ...]]
    seed: int
    runner: Runner


@dataclass(frozen=True)
class Basis:
    """A file with free axes, or after surgery, and its proof; or the original, of which there is nothing to prove."""

    file: OnnxFile
    freed: Mapping[str, int] = field(default_factory=dict)
    """The sizes that axes had before they were free, by their names."""
    cut: CutGraph | None = None
    given: Sequence[Mapping[str, Any]] = ()
    done: tuple[str, ...] = ()
    table: tuple[Comparison, ...] = ()
    tried: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    judges: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def sizes_to_try(freed: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Sizes at which freed axes are tried, by their names; the first is the one that the file had."""
    return {name: (size, size + STRIDE, 2 * size) for name, size in freed.items()}


def check_freed(proof: Proof, basis: Basis) -> None:
    """Refuses a freed axis that has one size still.

    Raises:
        UnsupportedError: The file runs at the size that it had, and at no other that was tried.
    """
    for name, size in basis.freed.items():
        if set(proof.tried().get(name, ())) <= {size}:
            refusals = [note for note in proof.notes if f"{name}=" in note]
            raise UnsupportedError(
                f"dynamic: with {name!r} free, the file still runs at {size} alone. {' '.join(refusals[:1])} "
                f"Give sizes at which it should run, or export the model again with that axis dynamic."
            )


@contextmanager
def with_free_axes(basis: Basis, wanted: FreeAxes, runs: Runs, clock: Clock) -> Iterator[Basis]:
    """The file with free axes, proven at its own sizes; it lies in a temporary folder until the end."""
    original = basis.file
    with clock("surgery"):
        model = _prepare(original, needs_forms=True)
        freed = check_free_axes(model, wanted)
        notes = free_axes(model, wanted, partial(_shapes_in_run, original, runs))
    sizes = {name: numbers for name, numbers in runs.sizes.items() if name not in freed}
    with draft(model, None, is_large(model)) as written:
        with Proof(original, runs.given, sizes, runs.seed, runs.runner) as proof, clock("compare"):
            proof.make_cases()
            table, judge = proof.check(written.path)
        yield Basis(
            file=_read(written, original),
            freed=freed,
            done=tuple(
                f"axis {axis} of {name} is {called}" for name, a in wanted.items() for axis, called in a.items()
            ),
            table=tuple(replace(row, case=f"{row.case}, axes as they were") for row in table),
            tried=proof.tried(),
            judges=tuple(dict.fromkeys((proof.judge, judge))),
            notes=(*notes, *proof.notes),
        )


def _read(written: Draft, original: OnnxFile) -> OnnxFile:
    """A draft, which messages call by the original's name."""
    return replace(read(written.path), shown=original.shown or original.path)


def _shapes_in_run(
    original: OnnxFile, runs: Runs, model: ir.Model, values: Sequence[ir.Value], sizes: Mapping[str, int]
) -> Shapes:
    """The shapes that values have when a graph runs at some sizes."""
    outputs = list(model.graph.outputs)
    model.graph.outputs.extend(value for value in values if not value.is_graph_input() and value not in outputs)
    try:
        with draft(model, None, is_large(model)) as written:
            named = {**runs.sizes, **{name: (size,) for name, size in sizes.items()}}
            with Proof(_read(written, original), (), named, runs.seed, runs.runner) as proof:
                case = proof.first_case()
                found = {**case.feeds, **dict(zip(proof.names, case.outputs, strict=True))}
    finally:
        model.graph.outputs[:] = outputs
    return {str(value.name): np.shape(found[str(value.name)]) for value in values}


def _prepare(file: OnnxFile, *, needs_forms: bool) -> ir.Model:
    """The graph in a form on which surgery works."""
    model = file.graph()
    drop_weights_from_inputs(model)
    if needs_forms and 0 < file.opset < MIN_OPSET:
        model = change_opset(model, MIN_OPSET)
    model.ir_version = max(model.ir_version, 4)  # from which on weights need not be inputs
    return model


@contextmanager
def with_surgery(basis: Basis, surgery: Surgery, runs: Runs, clock: Clock) -> Iterator[Basis]:
    """The file after surgery, proven against the one before; it lies in a temporary folder until the end."""
    original = basis.file

    def example(reference: OnnxFile) -> dict[str, Any]:
        with Proof(reference, (), runs.sizes, runs.seed, runs.runner) as proof:
            return dict(zip(proof.names, proof.first_case().outputs, strict=True))

    prepare = partial(_prepare, needs_forms=surgery.adds_nodes)
    with ExitStack() as stack:
        with clock("surgery"):
            operated = stack.enter_context(operate(original, surgery, runs.given, prepare, example))
        cut = operated.cut
        written = stack.enter_context(draft(cut.network, None, is_large(cut.network)))
        trial = Proof(original, runs.given, runs.sizes, runs.seed, runs.runner, oracle=operated.oracle)
        with trial as proof, clock("compare"):
            proof.make_cases()
            check_freed(proof, basis)
            table, judge = proof.check(written.path, before=cut.before, after=cut.after)
        yield Basis(
            file=_read(written, original),
            freed={name: size for name, size in basis.freed.items() if not surgery.start},
            cut=cut,
            given=() if cut.is_cut else [case.feeds for case in proof.cases[:2]],
            done=(*basis.done, *operated.done),
            table=(*basis.table, *(replace(row, case=f"{row.case}, after surgery") for row in table)),
            tried={**basis.tried, **proof.tried()},
            judges=tuple(dict.fromkeys((*basis.judges, proof.judge, judge))),
            notes=(*basis.notes, *operated.notes, *proof.notes),
        )
