"""Carries out on the finished graph what the caller wants of its ends: what is cut off, folded in, or split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir
from onnx_ir.passes.common import IdentityEliminationPass, LiftConstantsToInitializersPass, RemoveUnusedNodesPass

from torch_onnx_compat import tree
from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.graph.names import claim_name
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.graph.sizes import fix_sizes
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.surgery.detections import Detections
from torch_onnx_compat.surgery.ends import Ends, select, with_cuts
from torch_onnx_compat.surgery.extract import extract
from torch_onnx_compat.surgery.fold import fold
from torch_onnx_compat.surgery.normalize import Normalize
from torch_onnx_compat.surgery.selectors import Selector
from torch_onnx_compat.surgery.split import split
from torch_onnx_compat.surgery.stage import Stage
from torch_onnx_compat.surgery.strip import strip

PREPROCESS = ("keep", "extract", "fold")
POSTPROCESS = ("keep", "strip")


@dataclass
class Pieces:
    """The network, and what was cut off it.

    Attributes:
        network: What goes into the file.
        preprocess: What the host does to the inputs before.
        postprocess: What the host does to the outputs after.
        parts: The network once more, split.
        notes: What the caller should know.
    """

    network: ir.Model
    preprocess: Stage | None = None
    postprocess: Stage | None = None
    parts: tuple[Stage, ...] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def before(self) -> tuple[Stage, ...]:
        """What runs before the file."""
        return () if self.preprocess is None else (self.preprocess,)

    @property
    def after(self) -> tuple[Stage, ...]:
        """What runs after the file."""
        return () if self.postprocess is None else (self.postprocess,)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All that is no part of the network's own file."""
        return (*self.before, *self.after, *self.parts)

    @property
    def is_cut(self) -> bool:
        """Whether the file takes or gives something else than the model."""
        return self.preprocess is not None or self.postprocess is not None


@dataclass(frozen=True)
class Operation:
    """What the caller wants.

    Attributes:
        preprocess: What becomes of the preprocessing that the graph begins with.
        postprocess: What becomes of the postprocessing that it ends with.
        cuts: Where it is split.
        added: Which of the cuts are no outputs that the caller asked for.
        prunes: Whether inputs that nothing reads are left out.
    """

    preprocess: str = "keep"
    postprocess: str = "keep"
    cuts: tuple[Selector, ...] = ()
    added: frozenset[str] = frozenset()
    prunes: bool = False

    def traced(self, prepared: Prepared) -> Prepared:
        """The model as it is exported: it also gives the values at which the graph is to be cut."""
        return replace(prepared, ends=with_cuts(prepared.ends, self.cuts)) if self.cuts else prepared

    def apply(self, model: ir.Model, paths: Sequence[tree.Path]) -> Pieces:
        """Does it; changes the graph in place.

        Args:
            model: The finished graph.
            paths: Where in the traced result each output of the graph lies.

        Raises:
            CompatError: The graph cannot be split there.
        """
        pieces = Pieces(model)
        if self.prunes:
            _prune(pieces)
        cuts = self._take_cuts(model, paths)
        if cuts or self.preprocess != "keep" or self.postprocess != "keep":
            _plain(model)
        if cuts:
            pieces.parts = split(model, cuts)
        if self.preprocess == "fold":
            pieces.notes += fold(model)
        if self.preprocess == "extract":
            extract(pieces)
        if self.postprocess == "strip":
            strip(pieces)
        return pieces

    def _take_cuts(self, model: ir.Model, paths: Sequence[tree.Path]) -> list[tuple[str, list[ir.Value]]]:
        """The values to cut at; those that the caller did not ask for as outputs cease to be any."""
        outputs = list(model.graph.outputs)
        texts = [cut.text for cut in self.cuts]
        at: dict[str, list[ir.Value]] = {text: [] for text in texts}
        for path, value in zip(paths, outputs, strict=True):
            if path and path[0] in at:
                at[str(path[0])].append(_computed(value))
        kept = [v for path, v in zip(paths, outputs, strict=True) if not (path and path[0] in self.added)]
        model.graph.outputs[:] = kept
        return list(at.items())


def plan_operation(prepared: Prepared, preprocess: Any, postprocess: Any, places: Sequence[str]) -> Operation:
    """Reads what the caller wants.

    Raises:
        CompatError: A word is unknown, two of them contradict each other, or a place to split at is not found.
    """
    preprocess = "keep" if isinstance(preprocess, Normalize) else preprocess
    postprocess = "keep" if isinstance(postprocess, Detections) else postprocess
    if preprocess not in PREPROCESS:
        raise unknown_name("preprocess", str(preprocess), PREPROCESS)
    if postprocess not in POSTPROCESS:
        raise unknown_name("postprocess", str(postprocess), POSTPROCESS)
    if places and (preprocess == "extract" or postprocess == "strip"):
        raise CompatError("split and preprocess='extract' or postprocess='strip' both cut the graph; pass one of them.")
    cuts = select("split", prepared, places) if places else ()
    asked = {selector.text for selector in prepared.ends.outputs} if prepared.ends else set()
    added = frozenset(cut.text for cut in cuts if cut.text not in asked)
    return Operation(
        preprocess,
        postprocess,
        cuts,
        added,
        prunes=prepared.ends is not None and prepared.ends.outputs != Ends().outputs,
    )


def _plain(model: ir.Model) -> None:
    """Makes constants initializers, of which TorchScript writes equal ones as an Identity, and fixed sizes too."""
    names = [str(value.name) for value in model.graph.outputs]
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    IdentityEliminationPass()(model)
    for value, name in zip(model.graph.outputs, names, strict=True):
        claim_name(model, value, name)
    infer_model(model)
    fix_sizes(model)
    RemoveUnusedNodesPass()(model)


def _computed(value: ir.Value) -> ir.Value:
    """The value that an Identity hands on."""
    node = value.producer()
    while node is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        value, node = node.inputs[0], node.inputs[0].producer()
    return value


def _prune(pieces: Pieces) -> None:
    model = pieces.network
    IdentityEliminationPass()(model)
    unused = [value for value in model.graph.inputs if not value.uses() and not value.is_graph_output()]
    for value in unused:
        model.graph.inputs.remove(value)
        pieces.notes.append(f"input {value.name!r} is not in the file: the outputs asked for do not depend on it.")
