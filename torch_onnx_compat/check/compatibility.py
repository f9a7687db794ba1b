"""Compatibility of a file with a target: a row for each operator and verdict, and a run in the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.engines import EngineProcess, find_engine
from torch_onnx_compat.engines.compare import judge, reference
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph import shapes
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.walk import all_nodes
from torch_onnx_compat.targets.target import Target, Verdict

_ORDER: tuple[Verdict, ...] = ("crashes", "wrong", "refused", "unknown", "built", "works")
_TYPES = {ir.DataType.FLOAT: np.float32, ir.DataType.INT64: np.int64, ir.DataType.DOUBLE: np.float64}


@dataclass
class Group:
    """Nodes of one operator with one verdict for one reason."""

    operator: str
    verdict: Verdict
    reason: str
    source: str
    places: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return {**vars(self), "count": len(self.places)}


def operator_groups(model: ir.Model, target: Target) -> list[Group]:
    """Groups a model's nodes by operator and verdict, the worst verdict first."""
    shapes.infer_model(model)
    opset = model.opset_imports.get("", 0)  # a file of other domains' nodes alone says none
    groups: dict[tuple[str, str], Group] = {}
    for node in all_nodes(model.graph):
        name = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        facts = {} if node.domain else node_facts(node, opset)
        objection = None if node.domain else target.judge(node.op_type, opset, facts)
        verdict: Verdict = "unknown" if node.domain else target.verdict(node.op_type, opset, facts)
        reason, source = (objection.reason, objection.source) if objection else ("", "")
        groups.setdefault((name, reason), Group(name, verdict, reason, source)).places.append(place(node))
    return sorted(groups.values(), key=lambda g: (_ORDER.index(g.verdict), g.operator))


def run(path: Path, target: Target) -> tuple[str, str]:
    """Runs a file in the engine on random inputs of the declared shapes, dynamic axes of size 2.

    Returns:
        The verdict, with onnxruntime as the judge, and the reason.

    Raises:
        CompatError: There is no adapter, the engine is not installed, or an input's type cannot be drawn.
    """
    model = ir.load(path)
    feeds = _feeds(model)
    engine = find_engine(target.name)
    wanted = reference(str(path), feeds)
    with EngineProcess(engine, limit=300.0) as process:
        outcome = process.run(path, feeds, [str(v.name) for v in model.graph.outputs])
    rtol, atol = engine.tolerance
    return judge(outcome, wanted, (5 * rtol, 5 * atol))


def _feeds(model: ir.Model) -> Mapping[str, Any]:
    random = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.inputs:
        if value.name in model.graph.initializers:
            continue
        if value.dtype not in _TYPES or value.shape is None:
            raise CompatError(f"input {value.name!r} of type {value.dtype} cannot be drawn; leave out --run.")
        sizes = [size if isinstance(size, int) else 2 for size in value.shape]
        numbers = random.standard_normal(sizes)
        feeds[str(value.name)] = numbers.clip(0, 1).astype(_TYPES[value.dtype])
        if value.dtype is not ir.DataType.INT64:
            feeds[str(value.name)] = numbers.astype(_TYPES[value.dtype])
    return feeds
