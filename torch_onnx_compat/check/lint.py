"""Checks a graph against the target's profile: finds nodes that the engine refuses or runs wrong without running it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.catalogue.registry import Registry
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.walk import all_nodes
from torch_onnx_compat.plan import Found, avoids_any
from torch_onnx_compat.targets.target import Objection, Target

_SHOWN = 3


@dataclass(frozen=True)
class Finding:
    """A node that the target does not run right."""

    op_type: str
    place: str
    facts: Mapping[str, Any]
    objection: Objection


class Unsuitable(UnsupportedError):
    """The target does not run some operators right.

    Attributes:
        findings: The nodes.
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)

    @property
    def operators(self) -> Found:
        """The operators that the target does not run right, with their facts."""
        return [(finding.op_type, finding.facts) for finding in self.findings]

    def is_avoidable(self, registry: Registry) -> bool:
        """Whether some entry of the registry avoids one of the operators."""
        return any(avoids_any(entry, self.operators) for entry in registry)


def findings(model: ir.Model, target: Target, without_body: Collection[Any] = ()) -> list[Finding]:
    """The nodes that the target does not run right, in order.

    Args:
        model: The graph.
        target: The engine.
        without_body: Functions that are not written to the file, since the engine has operators of its own for them.
    """
    opset = model.opset_imports[""]
    found = []
    written = [function for key, function in model.functions.items() if key not in without_body]
    nodes = chain(all_nodes(model.graph), *(all_nodes(function.graph) for function in written))
    for node in nodes:
        if node.domain:
            continue
        facts = node_facts(node, opset) if target.asks(node.op_type) else {}
        objection = target.judge(node.op_type, opset, facts)
        if objection is not None:
            found.append(Finding(node.op_type, place(node), facts, objection))
    return found


def lint(model: ir.Model, target: Target, without_body: Collection[Any] = ()) -> None:
    """Checks every node, and that the target takes dynamic axes where there are any.

    Args:
        model: The graph.
        target: The engine.
        without_body: As for `findings`.

    Raises:
        Unsuitable: The target does not run the model right; names each operator, its places, why, and what to do.
    """
    opset = model.opset_imports[""]
    problems = findings(model, target, without_body)
    lines = _lines(problems)
    dynamic = _dynamic_axes(model) if target.dynamic == "no" else ()
    if dynamic:
        lines.append(f"it takes fixed shapes only, and {', '.join(dynamic)} may vary; leave out `dynamic`")
    if lines:
        raise Unsuitable(f"target {target.name!r} at opset {opset}: {'; '.join(lines)}.", problems)


def _lines(problems: Sequence[Finding]) -> list[str]:
    groups: dict[tuple[str, str], list[str]] = {}
    for finding in problems:
        groups.setdefault((finding.op_type, finding.objection.reason), []).append(finding.place)
    lines = []
    for (op_type, reason), places in groups.items():
        shown = list(dict.fromkeys(places))
        more = f" and {len(shown) - _SHOWN} more places" if len(shown) > _SHOWN else ""
        lines.append(f"{op_type} {reason} (at {', '.join(shown[:_SHOWN])}{more})")
    return lines


def _dynamic_axes(model: ir.Model) -> list[str]:
    return [
        f"axis {axis} of {value.name!r}"
        for value in model.graph.inputs
        for axis, size in enumerate(value.shape or ())
        if not isinstance(size, int)
    ]
