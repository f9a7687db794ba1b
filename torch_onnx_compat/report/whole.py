"""The whole graph of a file as data for a page's script: nodes by module, with the bodies of If, Loop and functions."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import onnx
import onnx_ir as ir

from torch_onnx_compat.check.file_log import module_of, scope_of
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph import shapes
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.graph.walk import inner_graphs
from torch_onnx_compat.targets import Target, load_target

Data = dict[str, Any]

TIMES = " \u00d7 "

_MOST_TEXT = 80
"""Characters of an attribute that are told."""


def whole_graph(
    proto: onnx.ModelProto,
    target: Target | str,
    modules: Collection[str] = (),
    *,
    changed: Iterable[str] = (),
    wrong: Iterable[str] = (),
) -> Data:
    """Collects what a reader may ask of a graph.

    Args:
        proto: The file; its weights may be missing.
        target: The engine that is to run it, or its name.
        modules: Paths of the model's modules, with their classes if it is a mapping; without them the paths are those
            that the nodes' names tell.
        changed: Paths of the modules that entries changed.
        wrong: Paths of the modules whose results are off.

    Returns:
        ``graph`` and ``functions`` with their nodes, ``values`` as name, type and kind, ``types``, ``modules`` and
        their ``classes``, and the indices of modules that are ``changed`` and ``wrong``. What a node refers to are
        indices into these lists.
    """
    model = ir.from_proto(proto)
    shapes.infer_model(model)
    return _Collector(model, proto, _profile(target), modules).collect(changed, wrong)


def _profile(target: Target | str) -> Target | None:
    if isinstance(target, Target):
        return target
    try:
        return load_target(target)
    except CompatError:  # a profile that was given by its path
        return None


def pack(data: Data) -> str:
    """The data as text for a page: JSON, deflated, in base64; a tenth of the JSON."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


class _Names(dict[str, int]):
    """Texts, each with the number of its first use."""

    def number(self, text: str) -> int:
        return self.setdefault(text, len(self))


class _Collector:
    def __init__(
        self, model: ir.Model, proto: onnx.ModelProto, target: Target | None, modules: Collection[str]
    ) -> None:
        self.model, self.proto, self.target, self.known = model, proto, target, modules
        self.opset = model.opset_imports.get("", 1)
        self.modules, self.types = _Names({"": 0}), _Names()
        self.values: list[tuple[str, int, int]] = []

    def collect(self, changed: Iterable[str], wrong: Iterable[str]) -> Data:
        graph = self._graph(self.model.graph, self.proto.graph.node, {}, "")
        functions = {
            f"{proto.domain}::{proto.name}": self._graph(function.graph, proto.node, {}, "")
            for function, proto in zip(self.model.functions.values(), self.proto.functions, strict=True)
        }
        classes = self.known if isinstance(self.known, Mapping) else {}
        return {
            "graph": graph,
            "functions": functions,
            "values": self.values,
            "types": list(self.types),
            "modules": list(self.modules),
            "classes": [classes.get(path, "") for path in self.modules],
            "changed": sorted({self.modules[path] for path in changed if path in self.modules}),
            "wrong": sorted({self.modules[path] for path in wrong if path in self.modules}),
        }

    def _graph(
        self, graph: ir.Graph, protos: Iterable[onnx.NodeProto], outside: Mapping[str, int], module: str
    ) -> Data:
        """One graph; `outside` are the values that it sees around it, `module` is where the node is that holds it."""
        seen = dict(outside)
        weights = set(graph.initializers)
        inputs = [self._value(seen, value, 1) for value in graph.inputs if value.name not in weights]
        for value in graph.initializers.values():
            self._value(seen, value, 2)
        pairs = list(zip(graph, protos, strict=True))
        for node, _ in pairs:  # a body may read what stands after it in no valid file, but outputs need numbers first
            for value in node.outputs:
                self._value(seen, value, 2 if node.op_type == "Constant" else 0)
        nodes = [self._node(node, proto, seen, module) for node, proto in pairs if node.op_type != "Constant"]
        return {"inputs": inputs, "outputs": [seen[v.name] for v in graph.outputs if v.name in seen], "nodes": nodes}

    def _value(self, seen: dict[str, int], value: ir.Value, kind: int) -> int:
        """Numbers a value; its kind is 0 for computed ones, 1 for inputs, 2 for constants."""
        self.values.append((value.name or "", self.types.number(_type_of(value)), kind))
        if value.name:
            seen[value.name] = len(self.values) - 1
        return len(self.values) - 1

    def _node(self, node: ir.Node, proto: onnx.NodeProto, seen: Mapping[str, int], around: str) -> list[Any]:
        path = (module_of(proto, self.known) if self.known else scope_of(proto)) or around
        bodies = [
            [name, self._graph(inner, attribute.node, seen, path)]
            for (name, attribute), inner in zip(_inner_protos(proto), inner_graphs(node), strict=True)
        ]
        return [
            f"{node.domain}::{node.op_type}" if node.domain else node.op_type,
            node.name or "",
            self.modules.number(path),
            [seen.get(value.name or "", -1) if value is not None else -1 for value in node.inputs],
            [seen.get(value.name or "", -1) for value in node.outputs],
            ", ".join(_attributes(proto)),
            self._objection(node),
            *([bodies] if bodies else []),
        ]

    def _objection(self, node: ir.Node) -> str:
        """Why the target does not run a node right, as far as its profile tells."""
        if self.target is None or node.domain:
            return ""
        found = self.target.judge(node.op_type, self.opset, node_facts(node, self.opset))
        return found.reason if found else ""


def _inner_protos(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from ((attribute.name, graph) for graph in attribute.graphs)


def _attributes(node: onnx.NodeProto) -> Iterator[str]:
    for attribute in node.attribute:
        if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
            continue
        if attribute.type == onnx.AttributeProto.TENSOR:
            text = f"{_element(attribute.t.data_type)} {list(attribute.t.dims)}"
        else:
            value = onnx.helper.get_attribute_value(attribute)
            text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        yield f"{attribute.name}={text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + '…'}"


def _type_of(value: ir.Value) -> str:
    """``float batch x 3 x 224 x 224``, with signs of multiplication; empty where it is not known."""
    if value.type is None:
        return ""
    kind = str(value.type) if not isinstance(value.type, ir.TensorType) else value.type.dtype.name.lower()
    if value.shape is None:
        return kind
    sizes = [str(axis) if isinstance(axis, int) else axis.value or "?" for axis in value.shape]
    return f"{kind} {TIMES.join(sizes) if sizes else 'scalar'}"


def _element(kind: int) -> str:
    return str(onnx.TensorProto.DataType.Name(kind)).lower()
