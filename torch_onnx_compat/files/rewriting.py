"""Writes the graph of a file as it was asked for: axes, opset, simplified, suited to a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedFunctionsPass, RemoveUnusedOpsetsPass

from torch_onnx_compat.check.lint import findings, lint
from torch_onnx_compat.errors import CompatError, UnsupportedError
from torch_onnx_compat.files.axes import fix_axes, free_batch
from torch_onnx_compat.files.opset import change_opset
from torch_onnx_compat.files.reading import OnnxFile
from torch_onnx_compat.graph.adapt.adapt import adapt_to_target
from torch_onnx_compat.graph.padding import keep_zeros
from torch_onnx_compat.graph.tidy.tidy import tidy
from torch_onnx_compat.graph.unused import RemoveUnusedNodes, drop_unread_regions
from torch_onnx_compat.graph.walk import all_nodes
from torch_onnx_compat.request import METADATA_PREFIX
from torch_onnx_compat.targets import Target
from torch_onnx_compat.version import __version__

TIDY_FROM = 13
"""The lowest opset at which graphs are simplified: onnxscript's rules are written for it and later ones."""


@dataclass(frozen=True)
class Job:
    """What is wanted of a file."""

    original: OnnxFile
    opset: int
    target: Target | None
    frees_batch: bool
    fixed: Mapping[str, int]
    simplify: bool
    suits: bool = True
    """Whether nodes that the target does not run are written otherwise; else its engine has the last word."""

    @property
    def needs_folding(self) -> bool:
        """Whether the target does not run nodes that depend on constants alone."""
        return self.target is not None and not self.target.folds


def rewrite(job: Job, model: ir.Model, before: Sequence[str] = ()) -> tuple[ir.Model, list[str]]:
    """Makes the new graph.

    Args:
        job: What is wanted.
        model: The original's graph, which is changed.
        before: What was done to the file before.

    Returns:
        The graph, and what was done, in order.

    Raises:
        UnsupportedError: It cannot be written like this.
    """
    done = list(before)
    if drop_weights_from_inputs(model):
        done.append("weights are no inputs any more, as before IR version 4 each of them had to be")
    for text, step in _steps(job):
        model = _carry_out(text, step, model)
        done.append(text)
    if job.target is not None:
        model.opset_imports.setdefault("", job.opset)  # a file of another domain's operators alone has none
        done += _suit(model, job.target) if job.suits else _leave(model, job.target)
    # A pass may have left what nobody reads; opsets that nothing imports trouble some engines.
    for clean in (RemoveUnusedNodes(), RemoveUnusedFunctionsPass(), RemoveUnusedOpsetsPass()):
        _carry_out("cleaned", _in_place(clean), model)
    model.ir_version = max(model.ir_version, _least_ir_version(job))
    if job.target is not None:
        model.ir_version = min(model.ir_version, job.target.ir_version)
    model.metadata_props[f"{METADATA_PREFIX}version"] = __version__
    model.metadata_props[f"{METADATA_PREFIX}converted"] = "; ".join(done)
    return model, done


def _steps(job: Job) -> Iterator[tuple[str, Callable[[ir.Model], ir.Model]]]:
    """What is done to the graph before it is suited to the target, each step with its name."""
    source, is_simple = job.original.opset, False
    if job.fixed:
        yield "axes fixed: " + ", ".join(f"{n}={s}" for n, s in job.fixed.items()), _fixing(job.fixed)
    if job.frees_batch:
        yield "axis 0 of every input freed", _in_place(free_batch)
    # Below, the graph is simplified on its way: the rules are written for later opsets.
    for opset in (max(job.opset, TIDY_FROM), job.opset) if job.simplify and source else (job.opset,):
        if source and opset != source:
            yield f"opset {source} -> {opset}", partial(change_opset, opset=opset)
            source = opset
        if job.simplify and opset >= TIDY_FROM and not is_simple:
            yield "simplified", _in_place(lambda model: _simplify(model, whole=job.needs_folding))
            is_simple = True


def _simplify(model: ir.Model, *, whole: bool) -> None:
    is_fixed = not any(value.name in model.graph.initializers for value in model.graph.inputs)
    tidy(model, fold=True, whole=whole, is_fixed=is_fixed)


def _least_ir_version(job: Job) -> int:
    """The one that came with the opset where that was changed; 4, from which on weights need not be inputs."""
    if job.opset == job.original.opset:
        return 4
    return max(4, onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", job.opset)]))


def _suit(model: ir.Model, target: Target) -> list[str]:
    """Writes the nodes that the target does not run right otherwise, and checks what is left."""
    drop_unread_regions(model)
    _carry_out(f"suited to {target.name}", _in_place(lambda m: adapt_to_target(m, target) and None), model)
    keep_zeros(model)
    foreign = sorted({f"{n.domain}::{n.op_type}" for n in all_nodes(model.graph) if _is_foreign(n, model)})
    if foreign and not target.name.startswith("onnxruntime"):
        raise UnsupportedError(
            f"target {target.name!r}: the file holds nodes that are no standard ONNX operators: {', '.join(foreign)}."
        )
    _check_axes(model, target)
    lint(model, target)
    return [f"suited to {target.name}"]


def _leave(model: ir.Model, target: Target) -> list[str]:
    """Leaves the graph to the target's engine, but for nodes that it was seen to compute wrong."""
    _check_axes(model, target)
    if any(finding.objection.verdict == "wrong" for finding in findings(model, target)):
        lint(model, target)
    return []


def _check_axes(model: ir.Model, target: Target) -> None:
    free = [str(v.name) for v in model.graph.inputs if v.shape is None or not v.shape.is_static()]
    if free and target.dynamic == "no":
        raise UnsupportedError(
            f"target {target.name!r} takes fixed shapes only, and axes of {', '.join(free)} may vary; give sizes, "
            f"as static={{'batch': 1}} does, on the command line --static batch=1."
        )


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


def drop_weights_from_inputs(model: ir.Model) -> bool:
    """Takes the weights out of the inputs of a graph of IR version 3, in which each of them had to be one.

    Returns:
        Whether there were any.
    """
    if model.ir_version >= 4:
        return False
    kept = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    dropped = len(kept) < len(model.graph.inputs)
    model.graph.inputs[:] = kept
    return dropped
