"""convert(): a file cut, renamed, taken to another opset, target or precision, and proven against the original."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import onnx_ir as ir

from torch_onnx_compat.catalogue.entry import MIN_OPSET
from torch_onnx_compat.clock import Clock
from torch_onnx_compat.errors import ArgumentError, CompatError, UnsupportedError, VerificationError
from torch_onnx_compat.files.attributes import Attributes
from torch_onnx_compat.files.axes import Axes, batch_size, read_axes
from torch_onnx_compat.files.basis import Basis, Runs, check_freed, sizes_to_try, with_free_axes, with_surgery
from torch_onnx_compat.files.conversion import AxisTried, Conversion
from torch_onnx_compat.files.declared import correct_shapes
from torch_onnx_compat.files.drawing import plan_inputs
from torch_onnx_compat.files.engine_fault import name_node
from torch_onnx_compat.files.free_axes import FreeAxes
from torch_onnx_compat.files.on_engine import EngineFault, is_installed, verify_in_engine
from torch_onnx_compat.files.precision import narrow_file
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.reading import OnnxFile, read
from torch_onnx_compat.files.rewriting import Job, rewrite
from torch_onnx_compat.files.runner import Runner
from torch_onnx_compat.files.stages import put_operator_behind
from torch_onnx_compat.files.surgery import Surgery
from torch_onnx_compat.finish import node_counts
from torch_onnx_compat.graph.opset.convert import check_opset
from torch_onnx_compat.precision.formats import Half, precision_from_keyword
from torch_onnx_compat.precision.int8.quantize import QuantizedNetwork
from torch_onnx_compat.precision.int8.request import Request
from torch_onnx_compat.precision.narrow import NarrowNetwork
from torch_onnx_compat.publish.destination import check_model_destination, resolve
from torch_onnx_compat.publish.publish import draft, is_large, publish
from torch_onnx_compat.surgery.around_model.detections import Detections
from torch_onnx_compat.surgery.around_model.normalize import Normalize
from torch_onnx_compat.targets import Target, choose_opset, load_target

_NO_STEP: Callable[[str], None] = lambda _: None  # noqa: E731


def convert(
    file: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    opset: int | None = None,
    target: str | Target | None = None,
    dynamic: Literal["batch"] | FreeAxes | None = None,
    static: Axes | None = None,
    simplify: bool = False,
    precision: Half | Request | str | None = None,
    start: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    attributes: Attributes | None = None,
    constants: Mapping[str, Any] | None = None,
    keep_initializers_as_inputs: bool | Sequence[str] | None = None,
    preprocess: Literal["keep", "extract", "fold"] | Normalize = "keep",
    postprocess: Literal["keep", "strip"] | Detections = "keep",
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    seed: int = 0,
    runner: Runner | None = None,
    progress: Callable[[str], None] = _NO_STEP,
) -> Conversion:
    """Converts an ONNX file, made by whatever tool, and proves the new one against it.

    Both files run in onnxruntime on the same inputs: given ones, random ones, and at other sizes of every dynamic axis.
    Whole numbers must be equal, real ones within the tolerance that the original's own rounding explains. If a value is
    off, nothing is written. What is changed on purpose, such as outputs, is done to the original's values, too.

    Args:
        file: The original, of opset 7 or later; it is not changed.
        output: Where the new file goes; None keeps it in memory.
        opset: Opset of the new file, 11 or later; by default the target's, and without a target the file's own.
        target: The engine that it is for, by name or TOML profile: nodes that it does not run right are written
            otherwise, and where it is installed here, it runs the new file too.
        dynamic: ``"batch"`` frees axis 0 of every input. It is proven that N rows give what the original gives for
            each of them. Other axes by input, number and name, ``{"image": {2: "height"}}``, where no node holds a
            number that follows from the size; at other sizes the original's own nodes say what is right.
        static: Sizes of dynamic axes, by their names: ``{"batch": 1}``.
        simplify: Whether constants are folded, branches of constant conditions resolved, normalisations folded into
            the layers before them, and redundant nodes removed.
        precision: As for export_compat. The file is then
            compared in float32, brought to the format, and judged against the original in float64.
        start: Values at which the new file begins, by their names; they are its inputs.
        outputs: Values that the new file gives, by their names, in order.
        rename: New names of values, by the old ones.
        attributes: Attributes of nodes: by the node's name, or that of one of its outputs, the values by name; None
            takes an attribute away.
        constants: Inputs that become weights, with their values.
        keep_initializers_as_inputs: Whether weights are inputs too, which have them as defaults: all, none, or those
            that are named. None leaves them as they are.
        preprocess: A Normalize that is put before the file; ``"extract"`` moves what prepares an input into a stage of
            its own, ``"fold"`` the arithmetic into the first layer.
        postprocess: A Detections that is put behind the file; ``"strip"`` moves what follows the last layers into a
            stage of its own.
        inputs: Inputs to compare on, by the original's names; or several such. For a Normalize, pictures.
        sizes: Sizes of dynamic axes to compare at, where the usual ones make no sense: ``{"height": (224, 256)}``.
        seed: Of the random inputs.
        runner: The process that runs the files; by default one for this call alone. Of many files, each is done faster
            with one that lives on.
        progress: Called with the name of each step.

    Raises:
        UnsupportedError: The file cannot be written like this; names the operators that stand in the way.
        VerificationError: The new file computes something else; it was not kept.
        CompatError: The file is broken, onnxruntime does not run it, a name is unknown, or the arguments contradict
            each other.
    """
    narrower = precision_from_keyword(precision)
    surgery = Surgery(
        start=start,
        outputs=outputs,
        rename=rename or {},
        attributes=attributes or {},
        constants=constants or {},
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        preprocess=preprocess,
        postprocess=postprocess,
    )
    clock = Clock(progress)
    original = _check_arguments(file, output, dynamic, static)
    if narrower is not None:
        surgery = surgery.without_weights_as_inputs(original.graph(), narrower.name)
    profile = None if target is None else load_target(target)
    surgery.check_target(profile)
    given = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    tried = {name: (value,) if isinstance(value, int) else tuple(value) for name, value in (sizes or {}).items()}
    with ExitStack() as stack:
        runs = Runs(given, tried, seed, runner or stack.enter_context(Runner()))
        basis = Basis(original)
        if isinstance(dynamic, Mapping):
            basis = stack.enter_context(with_free_axes(basis, dynamic, runs, clock))
            runs = replace(runs, sizes={**sizes_to_try(basis.freed), **tried})
        if surgery.is_asked:
            basis = stack.enter_context(with_surgery(basis, surgery, runs, clock))
            known = plan_inputs(basis.file.graph()).names
            sizes_after = {name: numbers for name, numbers in runs.sizes.items() if name in known}
            runs = replace(runs, given=basis.given, sizes=sizes_after)
        fixed = read_axes(basis.file.graph(), static)
        frees_batch = dynamic == "batch"
        wanted = _choose_opset(basis.file, opset, profile, narrower)
        job = Job(basis.file, wanted, profile, frees_batch, fixed, simplify)
        if narrower is not None and not isinstance(narrower, Half):
            narrower.check(job.opset, job.target or load_target("onnxruntime"))
        return _convert(_Goal(job, original, basis, output, narrower, surgery.ending, opset is not None), runs, clock)


def _check_arguments(file: Any, output: Any, dynamic: Any, static: Axes | None) -> OnnxFile:
    if dynamic not in (None, "batch") and not isinstance(dynamic, Mapping):
        raise ArgumentError(
            f"dynamic={dynamic!r}: wanted 'batch' (axis 0 of every input), or axes by input, such as "
            f"{{'image': {{2: 'height'}}}}."
        )
    if dynamic == "batch" and static:
        raise ArgumentError("dynamic and static contradict each other; pass one of them.")
    check_model_destination(output)
    original = read(file)
    if output is not None and resolve(output, output).resolve() == original.path.resolve():
        raise ArgumentError(f"{str(output)!r} is the original itself, which is not changed; choose another path.")
    return original


def _choose_opset(original: OnnxFile, opset: int | None, target: Target | None, narrower: Half | Request | None) -> int:
    """The opset of the new file; a narrower format may need a later one than the original's."""
    if target is not None:
        return choose_opset(opset, target)
    if opset is None:
        least = narrower.least_opset if isinstance(narrower, Half) else MIN_OPSET
        return original.opset if narrower is None or not original.opset else max(original.opset, MIN_OPSET, least)
    if type(opset) is int:
        check_opset(opset, ArgumentError)
    return choose_opset(opset, Target("any", opset=original.opset))


def _convert(goal: _Goal, runs: Runs, clock: Clock) -> Conversion:
    job, basis = goal.job, goal.basis
    sizes = {**runs.sizes, **{name: (size,) for name, size in job.fixed.items()}}
    with Proof(job.original, runs.given, sizes, runs.seed, runs.runner) as proof:
        with clock("run the original"):
            if job.frees_batch:
                proof.vary_rows(batch_size(job.original.graph()))
            proof.make_cases()
            check_freed(proof, basis)
        return _try_all(goal, proof, clock)


def _narrow(
    goal: _Goal, narrower: Half | Request, proof: Proof, model: ir.Model, seconds: float
) -> NarrowNetwork | QuantizedNetwork:
    """Brings a proven graph to the format that was asked for."""
    if goal.basis.cut is not None and goal.basis.cut.is_cut and not narrower.keep_io:
        raise CompatError("precision and a stage that is cut off: the stage passes float32 on; pass keep_io=True.")
    return narrow_file(model, proof, narrower, goal.job.target or load_target("onnxruntime"), seconds)


@dataclass(frozen=True)
class _Goal:
    """What is wanted of a file, what was done to it before, and where it goes."""

    job: Job
    original: OnnxFile
    basis: Basis
    output: Any
    narrower: Half | Request | None
    ending: Detections | None
    asks_opset: bool


def _try_all(goal: _Goal, proof: Proof, clock: Clock) -> Conversion:
    """Tries the ways to the new file in order, until one is right; a file that two of them lead to is tried once."""
    errors: dict[str, UnsupportedError | VerificationError] = {}
    rejected: dict[bytes, VerificationError] = {}
    plain: ir.Model | None = None
    for way, job in _ways(goal.job, goal.asks_opset):
        first = next(iter(errors.values()), None)
        note = f"{way}: {first}" if first is not None else ""
        mark = b""
        try:
            with clock("convert"):
                graph = job.original.graph()
                # What is written otherwise follows from sizes; a freed batch is not what the original declares.
                corrected = [] if job.frees_batch else correct_shapes(graph, proof)
                model, done = rewrite(job, graph, goal.basis.done)
                corrected += correct_shapes(model, proof)
            plain = model if way == _PLAIN else plain
            mark = _fingerprint(model) if job.target is not None else b""
            if mark in rejected:
                raise rejected[mark]
            return _try(replace(goal, job=job), model, done, proof, clock, [*([note] if note else []), *corrected])
        except VerificationError as error:
            errors[way] = error
            if mark:
                rejected[mark] = error
        except UnsupportedError as error:
            errors[way] = error
    last = errors[_PLAIN]
    if isinstance(last, EngineFault) and plain is not None and goal.narrower is None:
        with clock("find the node"):
            last = name_node(last, plain, proof)
    raise last


def _fingerprint(model: ir.Model) -> bytes:
    """What tells graphs apart; empty where the weights are too large to be read for it."""
    if is_large(model):
        return b""
    proto = ir.to_proto(model)
    parts = (proto.graph, *proto.functions, *proto.opset_import)
    return b"".join(hashlib.sha256(part.SerializeToString(deterministic=True)).digest() for part in parts)


_PLAIN = "not simplified, as that file was rejected"


def _ways(job: Job, asks_opset: bool) -> Iterator[tuple[str, Job]]:
    """What may be done to a file, each with what is told of it where it is not the first.

    A target may lack what only an unsimplified file holds, such as an If whose condition is a constant. Where the
    engine is installed, it may run the file as it is, though a profile or what was written otherwise stands in the way.
    """
    plain = (_PLAIN, replace(job, simplify=False))
    simple = ("simplified, as the file is rejected without that", replace(job, simplify=True))
    if job.simplify or job.needs_folding:
        yield from (simple, plain)
    else:
        yield plain
        if job.target is not None:
            yield simple
    if job.target is None or not is_installed(job.target):
        return
    if job.target.is_rough:
        exact = replace(plain[1], target=replace(job.target, exact=True))
        yield (
            f"with what {job.target.name} computes roughly written otherwise, as it is too far off without that",
            exact,
        )
    keeps_opset = not asks_opset and job.original.opset <= job.target.opsets[1]
    opset = job.original.opset if keeps_opset else job.opset
    name = job.target.name
    yield (
        f"left to {name} as it is; suited to it, the file is rejected",
        replace(job, opset=opset, simplify=False, suits=False),
    )


def _try(
    goal: _Goal, model: ir.Model, done: Sequence[str], proof: Proof, clock: Clock, notes: Sequence[str]
) -> Conversion:
    job, basis, output = goal.job, goal.basis, goal.output
    with draft(model, output, output is not None and is_large(model)) as written:
        with clock("compare"):
            is_for_it = job.target is not None and job.target.name.startswith("onnxruntime")
            table, judge = proof.check(written.path, in_onnxruntime=is_for_it)
        narrow = None
        if goal.narrower is not None:
            with clock("precision"):
                narrow = _narrow(goal, goal.narrower, proof, model, sum(clock.seconds.values()))
                model = narrow.model
                written.write(model)
        if job.target is not None:
            with clock("run in the engine"):
                within = 0.0 if narrow is None else narrow.precision.allowance
                ran = verify_in_engine(written.path, proof, job.target, within=within)
                if not job.suits and not ran:
                    raise VerificationError(f"{job.target.name} was given no case, and so has no word.", table)
                table += ran
        told = [*notes, *basis.notes, *proof.notes]
        if goal.ending is not None:
            told.append(put_operator_behind(model, goal.ending))
            written.write(model)
        stages = basis.cut.stages if basis.cut is not None else ()
        written.write_stages({stage.name: stage.model_bytes for stage in stages})
        outcome = written.outcome()
        counts = node_counts(model)
        publish(written)
    return Conversion(
        source=goal.original.path,
        path=outcome if isinstance(outcome, Path) else None,
        model_bytes=outcome if isinstance(outcome, bytes) else None,
        opset=job.opset,
        source_opset=goal.original.opset,
        target=job.target.name if job.target is not None else "",
        done=tuple(done),
        table=(*basis.table, *table),
        axes=tuple(AxisTried(name, sizes) for name, sizes in {**basis.tried, **proof.tried()}.items()),
        judges=tuple(dict.fromkeys((*basis.judges, proof.judge, judge))),
        notes=tuple(dict.fromkeys(told)),
        seconds=dict(clock.seconds),
        nodes=counts,
        source_nodes=node_counts(goal.original.graph()),
        precision=None if narrow is None else narrow.precision,
        preprocess=None if basis.cut is None else basis.cut.preprocess,
        postprocess=None if basis.cut is None else basis.cut.postprocess,
    )
