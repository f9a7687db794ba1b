"""Plans the surgery on the finished graph from the caller's keywords, and carries it out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass

from torch_onnx_compat.errors import ArgumentError, UnsupportedError, unknown_name
from torch_onnx_compat.graph.names import claim_name
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.graph.tidy.identities import RemoveIdentities
from torch_onnx_compat.graph.tidy.sizes import fix_sizes
from torch_onnx_compat.graph.unused import RemoveUnusedNodes
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.request import Cut
from torch_onnx_compat.surgery.around_model.boundary import BoundaryAdapter, adapter_of, select, with_cuts
from torch_onnx_compat.surgery.around_model.custom import WholeCall
from torch_onnx_compat.surgery.around_model.detections import ALTERNATIVES
from torch_onnx_compat.surgery.around_model.normalize import Normalize
from torch_onnx_compat.surgery.around_model.selectors import Selector
from torch_onnx_compat.surgery.around_model.whole_calls import find_whole_calls
from torch_onnx_compat.surgery.on_graph.cut_graph import CutGraph
from torch_onnx_compat.surgery.on_graph.extract import extract
from torch_onnx_compat.surgery.on_graph.fold import fold
from torch_onnx_compat.surgery.on_graph.outline import Outlining
from torch_onnx_compat.surgery.on_graph.split import split
from torch_onnx_compat.surgery.on_graph.strip import strip

PREPROCESS = ("keep", "extract", "fold")
POSTPROCESS = ("keep", "strip")


@dataclass(frozen=True)
class Operation:
    """The surgery on one graph.

    Attributes:
        preprocess: How the preprocessing is treated, one of PREPROCESS.
        postprocess: How the postprocessing is treated, one of POSTPROCESS.
        cuts: Places at which the graph is split.
        whole_calls: Calls of modules that become one node each.
        added: Outputs that are traced for the surgery only, by the first part of their paths.
        prunes: Whether inputs that no node reads are removed.
    """

    preprocess: str = "keep"
    postprocess: str = "keep"
    cuts: tuple[Selector, ...] = ()
    whole_calls: tuple[WholeCall, ...] = ()
    added: frozenset[str] = frozenset()
    prunes: bool = False

    def with_cut_outputs(self, prepared: Prepared) -> Prepared:
        """The model with the values at which the graph is to be cut as further outputs, for the export."""
        wanted = [*self.cuts, *(mark for call in self.whole_calls if call.path for mark in (call.inputs, call.outputs))]
        return replace(prepared, boundary=with_cuts(prepared, wanted)) if wanted or self.whole_calls else prepared

    def apply(self, model: ir.Model, paths: Sequence[tree.Path]) -> CutGraph:
        """Carries out the surgery; changes the graph in place.

        Args:
            model: The finished graph.
            paths: The path of each output of the graph in the traced result.

        Raises:
            CompatError: The graph cannot be split there, or a part of it not be kept.
        """
        cut_graph = CutGraph(model)
        if self.prunes:
            _prune(cut_graph)
        marked = self._take_marked(model, paths)
        if marked or self.preprocess != "keep" or self.postprocess != "keep":
            _simplify(model)
        if self.cuts:
            cut_graph.parts = split(model, [(cut.text, marked[cut.text]) for cut in self.cuts])
        if self.preprocess == "fold":
            notes, is_folded = fold(model)
            cut_graph.notes += notes
            cut_graph.done += ["fold_preprocessing"] * is_folded
        if self.preprocess == "extract":
            extract(cut_graph)
            cut_graph.done += ["extract_preprocessing"] * (cut_graph.preprocess is not None)
        if self.postprocess == "strip":
            strip(cut_graph)
            cut_graph.done += ["strip_postprocessing"] * (cut_graph.postprocess is not None)
        if self.whole_calls:
            self._outline_calls(cut_graph, marked)
        return cut_graph

    def _outline_calls(self, cut_graph: CutGraph, marked: Mapping[str, Sequence[ir.Value]]) -> None:
        outlining = Outlining(cut_graph.network)
        for call in self.whole_calls:
            outlining.outline(call, marked[call.inputs.text], marked[call.outputs.text])
        cut_graph.without_body = tuple(outlining.without_body)
        cut_graph.notes += [
            f"{name} was checked as the operators that it stands for; the engine's own has not been run."
            for name in dict.fromkeys(call.name for call in self.whole_calls if not call.has_body)
        ]

    def _take_marked(self, model: ir.Model, paths: Sequence[tree.Path]) -> dict[str, list[ir.Value]]:
        """The values that were traced for the surgery; removes the outputs that the caller did not ask for."""
        outputs = list(model.graph.outputs)
        marks = {*(cut.text for cut in self.cuts), *self.added}
        found: dict[str, list[ir.Value]] = {text: [] for text in marks}
        for path, value in zip(paths, outputs, strict=True):
            if path and path[0] in marks:
                found[str(path[0])].append(_skip_identities(value))
        wanted = [v for path, v in zip(paths, outputs, strict=True) if not (path and path[0] in self.added)]
        if len(wanted) < len(outputs):
            model.graph.outputs[:] = wanted
        return found


def plan_operation(prepared: Prepared, cut: Cut, domains: bool | Collection[str] = False) -> Operation:
    """Plans the surgery that the caller asked for.

    Args:
        prepared: The model.
        cut: The caller's keywords.
        domains: The domains of operators without a body that are allowed; True allows any.

    Raises:
        CompatError: A word is unknown, two of them contradict each other, or a place to split at is not found.
        UnsupportedError: A node would stand in a domain that was not allowed.
    """
    adapter, places = adapter_of(prepared), cut.split
    preprocess = "keep" if isinstance(cut.preprocess, Normalize) else cut.preprocess
    detections = adapter.detections
    postprocess = "keep" if detections is not None else cut.postprocess
    if preprocess not in PREPROCESS:
        raise unknown_name("preprocess", str(preprocess), PREPROCESS)
    if postprocess not in POSTPROCESS:
        raise unknown_name("postprocess", str(postprocess), (*POSTPROCESS, *ALTERNATIVES))
    if places and (preprocess == "extract" or postprocess == "strip"):
        raise ArgumentError(
            "split and preprocess='extract' or postprocess='strip' both cut the graph; pass one of them."
        )
    cuts = select("split", prepared, places) if places else ()
    whole_calls = find_whole_calls(prepared, cut.keep_as_function) if cut.keep_as_function else ()
    if detections is not None and detections.node is not None:
        whole_calls = (*whole_calls, detections.node)
    if whole_calls and (places or preprocess == "extract" or postprocess == "strip"):
        raise ArgumentError(
            "keep_as_function contradicts split, preprocess='extract' and postprocess='strip': parts that are cut hold "
            "no functions; pass one of them."
        )
    for each in whole_calls:
        if not each.has_body and domains is not True and each.domain not in (domains or ()):
            raise UnsupportedError(
                f"the file would hold {each.name}, which is no standard ONNX operator; pass "
                f"allow_custom_domains=[{each.domain!r}] if the engine has it."
            )
    asked = {selector.text for selector in adapter.outputs}
    marks = (*cuts, *(mark for each in whole_calls for mark in (each.inputs, each.outputs)))
    added = frozenset(mark.text for mark in marks if mark.text not in asked)
    return Operation(
        preprocess,
        postprocess,
        cuts,
        whole_calls,
        added,
        prunes=adapter.outputs != BoundaryAdapter().outputs,
    )


def _simplify(model: ir.Model) -> None:
    """Makes constants and fixed sizes initializers, so that the surgery recognises them.

    TorchScript writes a constant that equals another one as an Identity of it; these are removed too.
    """
    names = [str(value.name) for value in model.graph.outputs]
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    RemoveIdentities()(model)
    for value, name in zip(model.graph.outputs, names, strict=True):
        claim_name(model, value, name)
    infer_model(model)
    fix_sizes(model)
    RemoveUnusedNodes()(model)


def _skip_identities(value: ir.Value) -> ir.Value:
    """The value before a chain of Identity nodes."""
    node = value.producer()
    while node is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        value, node = node.inputs[0], node.inputs[0].producer()
    return value


def _prune(cut_graph: CutGraph) -> None:
    model = cut_graph.network
    RemoveIdentities()(model)
    unused = [value for value in model.graph.inputs if not value.uses() and not value.is_graph_output()]
    for value in unused:
        model.graph.inputs.remove(value)
        cut_graph.notes.append(f"input {value.name!r} is not in the file: the outputs asked for do not depend on it.")
