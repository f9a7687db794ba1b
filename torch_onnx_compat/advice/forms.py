"""The forms of a file that are worth a measurement: other axes, opsets, precisions, and suppression of boxes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import nn

from torch_onnx_compat.catalogue.entry import MIN_OPSET
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph.opset.convert import HIGHEST
from torch_onnx_compat.precision.int8.request import Int8
from torch_onnx_compat.surgery.around_model.detections import ALTERNATIVES, Detections
from torch_onnx_compat.surgery.around_model.heads import detections_of
from torch_onnx_compat.targets import Target, choose_opset
from torch_onnx_compat.targets.target import BFLOAT16_OPSET

Kind = Literal["axes", "opset", "precision", "nms"]
KINDS: tuple[Kind, ...] = ("axes", "opset", "precision", "nms")
DROP_IN: tuple[Kind, ...] = ("opset", "precision")
"""Kinds whose files take and give the same as the usual one, so that the faster of them may stand in for it."""


@dataclass(frozen=True)
class Form:
    """One form of a file.

    Attributes:
        name: What the table calls it.
        kinds: In which ways it differs from the usual form; none for the usual one itself.
        options: The keywords of export_compat that make it.
    """

    name: str
    kinds: tuple[Kind, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def with_form(self, other: Form) -> Form:
        """Both differences at once."""
        return Form(f"{self.name}, {other.name}", self.kinds + other.kinds, {**self.options, **other.options})


USUAL = Form("usual")


def forms_for(
    model: Any, target: Target, options: Mapping[str, Any], calibration: Any, vary: Collection[str]
) -> Iterator[Form]:
    """The usual form, and those that differ from it in one way.

    Args:
        model: The model.
        target: The engine.
        options: The keywords of export_compat that make the usual form.
        calibration: Inputs to find the ranges of eight bits with, or None.
        vary: The kinds that are wanted.
    """
    yield USUAL
    if "axes" in vary:
        is_fixed = options.get("dynamic") is None
        axes = Form("dynamic batch", ("axes",), {"dynamic": "batch"})
        yield axes if is_fixed else Form("fixed axes", ("axes",), {"dynamic": None})
    if "opset" in vary:
        usual = choose_opset(options.get("opset_version"), target)
        ends = (max(MIN_OPSET, target.opsets[0]), min(HIGHEST, target.opsets[1]))
        yield from (Form(f"opset {o}", ("opset",), {"opset_version": o}) for o in dict.fromkeys(ends) if o != usual)
    if "precision" in vary:
        for name, value in _precisions(target, options.get("opset_version"), calibration):
            yield Form(name, ("precision",), {"precision": value})
    if "nms" in vary and options.get("postprocess", "keep") == "keep" and isinstance(model, nn.Module):
        for name in ALTERNATIVES:
            declared = _detections(model, name)
            if declared is not None and declared.suits(target.name):
                domains = {} if declared.node is None else {"allow_custom_domains": [declared.node.domain]}
                yield Form(name, ("nms",), {"postprocess": name, **domains})


def _precisions(target: Target, opset: int | None, calibration: Any) -> Iterator[tuple[str, Any]]:
    yield "float16", "float16"
    if min(HIGHEST, target.opsets[1] if opset is None else opset) >= BFLOAT16_OPSET:
        yield "bfloat16", "bfloat16"
    placement = target.placement
    if placement is None:
        return
    if calibration is not None:
        yield "int8", Int8(calibration=calibration)
    if placement.dynamic:
        yield "int8-dynamic", "int8-dynamic"
    yield from ((f"int{bits}-weights", f"int{bits}-weights") for bits in placement.weight_only_bits)


def _detections(model: nn.Module, form: str) -> Detections | None:
    """Which outputs are boxes that overlap; None where that is not known."""
    try:
        return detections_of(model, form)
    except CompatError:
        return None
