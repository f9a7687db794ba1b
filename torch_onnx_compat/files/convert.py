"""convert(): takes a file to another opset, to a target, to fixed or free axes, and proves it against the original."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedFunctionsPass, RemoveUnusedNodesPass, RemoveUnusedOpsetsPass

from torch_onnx_compat.check.compare import Comparison
from torch_onnx_compat.check.lint import lint
from torch_onnx_compat.clock import Clock
from torch_onnx_compat.destination import check_destination, resolve
from torch_onnx_compat.errors import CompatError, UnsupportedError, VerificationError
from torch_onnx_compat.files.axes import Axes, batch_size, fix_axes, free_batch, read_axes
from torch_onnx_compat.files.conversion import AxisTried, Conversion
from torch_onnx_compat.files.on_engine import verify_in_engine
from torch_onnx_compat.files.opset import change_opset
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.reading import OnnxFile, read
from torch_onnx_compat.files.runner import Runner
from torch_onnx_compat.finish import node_counts
from torch_onnx_compat.graph.adapt.adapt import adapt_to_target
from torch_onnx_compat.graph.padding import keep_zeros
from torch_onnx_compat.graph.tidy.tidy import tidy
from torch_onnx_compat.graph.walk import all_nodes
from torch_onnx_compat.publish import draft, is_large, publish
from torch_onnx_compat.request import METADATA_PREFIX
from torch_onnx_compat.targets import Target, choose_opset, load_target
from torch_onnx_compat.version import __version__

TIDY_FROM = 13
"""The lowest opset whose graphs are simplified: onnxscript's rules are written for later ones."""

_NO_STEP: Callable[[str], None] = lambda _: None  # noqa: E731


def convert(
    file: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    opset: int | None = None,
    target: str | Target | None = None,
    dynamic: str | None = None,
    static: Axes | None = None,
    simplify: bool = False,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    seed: int = 0,
    runner: Runner | None = None,
    progress: Callable[[str], None] = _NO_STEP,
) -> Conversion:
    """Converts an ONNX file, made by whatever tool, and proves the new one against it.

    Both files run in onnxruntime on the same inputs: given ones, random ones, and at other sizes of every dynamic axis.
    Whole numbers must be equal, real ones within the tolerance that the original's own rounding explains. If a value is
    off, nothing is written.

    Args:
        file: The original, of opset 7 or later; it is not changed.
        output: Where the new file goes; None keeps it in memory.
        opset: Opset of the new file, 11 or later; by default the target's, and without a target the file's own.
        target: The engine that it is for, by name or TOML profile: nodes that it does not run right are written
            otherwise, and where it is installed here, it runs the new file too.
        dynamic: ``"batch"`` frees axis 0 of every input. It is proven that N rows give what the original gives for
            each of them.
        static: Sizes of dynamic axes, by their names: ``{"batch": 1}``.
        simplify: Whether constants are folded and redundant nodes removed.
        inputs: Inputs to compare on, by name; or several such.
        sizes: Sizes of dynamic axes to compare at, where the usual ones make no sense: ``{"height": (224, 256)}``.
        seed: Of the random inputs.
        runner: The process that runs the files; by default one for this call alone. Of many files, each is done faster
            with one that lives on.
        progress: Called with the name of each step.

    Raises:
        UnsupportedError: The file cannot be written like this; names the operators that stand in the way.
        VerificationError: The new file computes something else; it was not kept.
        CompatError: The file is broken, onnxruntime does not run it, or the arguments contradict each other.
    """
    clock = Clock(progress)
    original = _check_arguments(file, output, opset, dynamic, static)
    profile = None if target is None else load_target(target)
    wanted = _choose_opset(original, opset, profile)
    given = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    tried = {name: (value,) if isinstance(value, int) else tuple(value) for name, value in (sizes or {}).items()}
    fixed = read_axes(original.graph(), static)
    job = _Job(original, wanted, profile, dynamic == "batch", fixed, simplify)
    trial = Proof(original, given, {**tried, **{name: (size,) for name, size in fixed.items()}}, seed, runner)
    with trial as proof:
        with clock("run the original"):
            if job.frees_batch:
                proof.vary_rows(batch_size(original.graph()))
            proof.make_cases()
        return _try_all(job, proof, output, clock)


@dataclass(frozen=True)
class _Job:
    """What is wanted of a file."""

    original: OnnxFile
    opset: int
    target: Target | None
    frees_batch: bool
    fixed: Mapping[str, int]
    simplify: bool

    @property
    def needs_folding(self) -> bool:
        """Whether the target does not run nodes that depend on constants alone."""
        return self.target is not None and not self.target.folds


def _check_arguments(file: Any, output: Any, opset: int | None, dynamic: str | None, static: Axes | None) -> OnnxFile:
    if dynamic not in (None, "batch"):
        raise CompatError(
            f"dynamic={dynamic!r}: wanted 'batch' (axis 0 of every input). A file holds no model that could say what "
            f"another axis does; export the model again with that axis dynamic."
        )
    if dynamic and static:
        raise CompatError("dynamic and static contradict each other; pass one of them.")
    check_destination(output)
    original = read(file)
    if output is not None and resolve(output, output).resolve() == original.path.resolve():
        raise CompatError(f"{str(output)!r} is the original itself, which is not changed; choose another path.")
    return original


def _choose_opset(original: OnnxFile, opset: int | None, target: Target | None) -> int:
    if target is not None:
        return choose_opset(opset, target)
    return choose_opset(opset, Target("any", opset=original.opset)) if opset is not None else original.opset


def _try_all(job: _Job, proof: Proof, output: Any, clock: Clock) -> Conversion:
    """Tries the ways to the new file in order; simplifying is left out where the simplified file is not right."""
    ways = (True, False) if job.simplify or job.needs_folding else (False,)
    failed: list[str] = []
    for simplifies in ways:
        try:
            return _try(job, proof, output, clock, simplifies, failed)
        except (UnsupportedError, VerificationError) as error:
            if simplifies is ways[-1]:
                raise
            failed.append(f"not simplified, as that file was rejected: {error}")
    raise AssertionError("unreachable")


def _try(job: _Job, proof: Proof, output: Any, clock: Clock, simplifies: bool, notes: Sequence[str]) -> Conversion:
    with clock("convert"):
        model, done = _rewrite(job, simplifies)
    with draft(model, output, output is not None and is_large(model)) as written:
        with clock("compare"):
            is_for_it = job.target is not None and job.target.name.startswith("onnxruntime")
            table, judge = proof.check(written.path, in_onnxruntime=is_for_it)
            table += _check_in_engine(job, proof, written.path)
        outcome = written.outcome()
        counts = node_counts(model)
        publish(written)
    original = node_counts(job.original.graph())
    return Conversion(
        source=job.original.path,
        path=outcome if isinstance(outcome, Path) else None,
        model_bytes=outcome if isinstance(outcome, bytes) else None,
        opset=job.opset,
        source_opset=job.original.opset,
        target=job.target.name if job.target is not None else "",
        done=tuple(done),
        table=table,
        axes=tuple(AxisTried(name, sizes) for name, sizes in proof.tried().items()),
        judges=tuple(dict.fromkeys((proof.judge, judge))),
        notes=tuple(dict.fromkeys((*notes, *proof.notes))),
        seconds=dict(clock.seconds),
        nodes=counts,
        source_nodes=original,
    )


def _check_in_engine(job: _Job, proof: Proof, path: Path) -> tuple[Comparison, ...]:
    return () if job.target is None else verify_in_engine(path, proof, job.target)


def _rewrite(job: _Job, simplifies: bool) -> tuple[ir.Model, list[str]]:
    """Makes the new graph.

    Raises:
        UnsupportedError: It cannot be written like this.
    """
    model, done = job.original.graph(), []
    if job.original.proto.ir_version < 4 and _drop_weights_from_inputs(model):
        done.append("weights are no inputs any more, as before IR version 4 each of them had to be")
    for text, step in _steps(job, simplifies):
        model = _carry_out(text, step, model)
        done.append(text)
    if job.target is not None:
        done += _suit(model, job.target)
    # A pass may have left what nobody reads; opsets that nothing imports trouble some engines.
    for clean in (RemoveUnusedNodesPass(), RemoveUnusedFunctionsPass(), RemoveUnusedOpsetsPass()):
        _carry_out("cleaned", _in_place(clean), model)
    model.ir_version = max(model.ir_version, _least_ir_version(job))
    if job.target is not None:
        model.ir_version = min(model.ir_version, job.target.ir_version)
    model.metadata_props[f"{METADATA_PREFIX}version"] = __version__
    model.metadata_props[f"{METADATA_PREFIX}converted"] = "; ".join(done)
    return model, done


def _steps(job: _Job, simplifies: bool) -> Iterator[tuple[str, Callable[[ir.Model], ir.Model]]]:
    """What is done to the graph before it is suited to the target, each step with its name."""
    source = job.original.opset
    if job.fixed:
        yield "axes fixed: " + ", ".join(f"{n}={s}" for n, s in job.fixed.items()), _fixing(job.fixed)
    if job.frees_batch:
        yield "axis 0 of every input freed", _in_place(free_batch)
    if source and job.opset != source:
        yield f"opset {source} -> {job.opset}", lambda model: change_opset(model, job.opset)
    if simplifies and job.opset >= TIDY_FROM:
        yield "simplified", _in_place(lambda model: tidy(model, fold=True, whole=job.needs_folding))


def _least_ir_version(job: _Job) -> int:
    """The one that came with the opset where that was changed; 4, from which on weights need not be inputs."""
    if job.opset == job.original.opset:
        return 4
    return max(4, onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", job.opset)]))


def _suit(model: ir.Model, target: Target) -> list[str]:
    """Writes the nodes that the target does not run right otherwise, and checks what is left."""
    _carry_out(f"suited to {target.name}", _in_place(lambda m: adapt_to_target(m, target) and None), model)
    keep_zeros(model)
    foreign = sorted({f"{n.domain}::{n.op_type}" for n in all_nodes(model.graph) if _is_foreign(n, model)})
    if foreign and not target.name.startswith("onnxruntime"):
        raise UnsupportedError(
            f"target {target.name!r}: the file holds nodes that are no standard ONNX operators: {', '.join(foreign)}."
        )
    free = [str(v.name) for v in model.graph.inputs if v.shape is None or not v.shape.is_static()]
    if free and target.dynamic == "no":
        raise UnsupportedError(
            f"target {target.name!r} takes fixed shapes only, and axes of {', '.join(free)} may vary; give sizes, "
            f"as static={{'batch': 1}} does, on the command line --static batch=1."
        )
    lint(model, target)
    return [f"suited to {target.name}"]


def _is_foreign(node: ir.Node, model: ir.Model) -> bool:
    return node.domain not in ("", "ai.onnx") and (node.domain, node.op_type, node.overload) not in model.functions


def _carry_out(text: str, step: Callable[[ir.Model], ir.Model], model: ir.Model) -> ir.Model:
    """Runs a step; a graph that it was not made for is an error that names it."""
    try:
        return step(model)
    except CompatError:
        raise
    except Exception as error:  # rules and passes of three libraries, on graphs of any kind
        reason = " ".join(str(error).split())[:300]
        raise UnsupportedError(f"{text}: failed on this graph: {type(error).__name__}: {reason}") from error


def _in_place(step: Callable[[ir.Model], Any]) -> Callable[[ir.Model], ir.Model]:
    def run(model: ir.Model) -> ir.Model:
        step(model)
        return model

    return run


def _fixing(fixed: Mapping[str, int]) -> Callable[[ir.Model], ir.Model]:
    return _in_place(lambda model: fix_axes(model, fixed))


def _drop_weights_from_inputs(model: ir.Model) -> bool:
    kept = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    dropped = len(kept) < len(model.graph.inputs)
    model.graph.inputs[:] = kept
    return dropped
