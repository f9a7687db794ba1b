"""The nodes that torch's exporters write for the zoos' models: what `lint.py` draws from.

Exports models with fixed sizes through both of torch's exporters and through `export_compat`, and keeps each distinct
node: operator, opset, attributes, shapes and element types of its inputs, numbers of those that are small constants.
Of nodes with the same facts one is kept. Weights are not kept. Writes zoo_nodes.jsonl, to which later runs add.

    python benchmarks/zoo_nodes.py [--models timm:resnet18 ...] [--most 100] [--ways TorchScript dynamo ours]
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import logging
import tempfile
import time
import warnings
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch
from onnx import numpy_helper
from tensorrt import choose

from torch_onnx_compat import export_compat
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.zoo import load
from torch_onnx_compat.zoo.sample import Sample

OUT = Path(__file__).parent / "zoo_nodes.jsonl"
WAYS = ("TorchScript", "dynamo", "ours")
EACH = 40
"""Nodes of one operator, at most."""
NUMBERS = {"f": 4, "i": 64, "b": 64, "u": 64}
"""How many numbers of a constant are kept, by its kind; of larger ones only shape and type."""

Node = dict[str, Any]


def export(sample: Sample, way: str, path: Path) -> None:
    """Writes a file without dynamic axes."""
    kwargs = dict(sample.kwargs) or None
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if way == "ours":
            export_compat(sample.model, sample.args, path, kwargs=kwargs, verify=False)
        else:
            options = {"dynamo": True, "external_data": False} if way == "dynamo" else {"dynamo": False}
            torch.onnx.export(sample.model, sample.args, path, kwargs=kwargs, verbose=False, **options)


def nodes_of(path: Path) -> Iterator[tuple[str, Node]]:
    """The nodes of a file whose inputs are known, each with the facts that tell it from others."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    graph, opset = model.graph, next(o.version for o in model.opset_import if not o.domain)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        constants.update(
            (node.output[0], a.t) for a in node.attribute if node.op_type == "Constant" and a.name == "value"
        )
    known = {v.name: v.type.tensor_type for v in (*graph.input, *graph.value_info)}
    facts = {node.name: node for node in ir.from_proto(model).graph}
    for node in graph.node:
        if node.domain or node.op_type == "Constant" or any(a.HasField("g") for a in node.attribute):
            continue
        inputs = [_input(name, constants, known) for name in node.input]
        if all(given is not None for given in inputs):
            attributes = {a.name: _plain(onnx.helper.get_attribute_value(a)) for a in node.attribute}
            plain = all(isinstance(value, (int, float, str, list)) for value in attributes.values())
            if plain and not attributes.get("training_mode"):
                row = {"op": node.op_type, "opset": opset, "attributes": attributes, "inputs": inputs}
                told = {k: v for k, v in node_facts(facts[node.name], opset).items() if k != "reused"}
                key = json.dumps([node.op_type, told], sort_keys=True)
                yield hashlib.sha1(key.encode()).hexdigest()[:12], {**row, "outputs": len(node.output)}


def _input(name: str, constants: dict[str, Any], known: dict[str, Any]) -> Node | None:
    """An input as plain data: empty where it is omitted, None where its sizes are not known."""
    if not name:
        return {}
    if name in constants:
        array = numpy_helper.to_array(constants[name])
        about = {"type": str(array.dtype), "shape": list(array.shape), "constant": True}
        return {**about, "value": array.tolist()} if array.size <= NUMBERS.get(array.dtype.kind, 0) else about
    if name not in known or not known[name].HasField("shape"):
        return None
    sizes = [d.dim_value if d.HasField("dim_value") else -1 for d in known[name].shape.dim]
    kind = onnx.helper.tensor_dtype_to_np_dtype(known[name].elem_type)
    return None if -1 in sizes else {"type": str(kind), "shape": sizes, "constant": False}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return list(value) if not isinstance(value, (int, float, str)) and hasattr(value, "__iter__") else value


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=[], help="by default the cheapest of each zoo in turn")
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    found = {}
    if OUT.exists():
        found = {row.pop("key"): row for row in map(json.loads, OUT.read_text(encoding="utf-8").splitlines())}
    sizes = choose()
    for spec in options.models or in_turn(list(sizes))[: options.most]:
        start, before = time.process_time(), len(found)
        try:
            sample = load(spec, sizes.get(spec))
        except Exception as error:  # of a zoo's model any
            print(spec, f"not loaded: {type(error).__name__}", flush=True)
            continue
        for way in options.ways:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    export(sample, way, Path(folder) / "model.onnx")
                    for key, node in nodes_of(Path(folder) / "model.onnx"):
                        found.setdefault(key, {**node, "by": way, "of": spec})
                except Exception as error:  # of an exporter any
                    print(spec, way, type(error).__name__, flush=True)
        write(found)
        print(spec, len(found) - before, f"{time.process_time() - start:.1f} s", flush=True)


def in_turn(specs: list[str]) -> list[str]:
    """The first of each zoo, then the second of each, and so on."""
    zoos: dict[str, list[str]] = {}
    for spec in specs:
        zoos.setdefault(spec.partition(":")[0], []).append(spec)
    return [spec for column in zip_longest(*zoos.values()) for spec in column if spec is not None]


def write(found: dict[str, Node]) -> None:
    """Keeps the nodes, of each operator the first ones."""
    counts: dict[str, int] = {}
    lines = []
    for key, node in found.items():
        counts[node["op"]] = counts.get(node["op"], 0) + 1
        if counts[node["op"]] <= EACH:
            lines.append(json.dumps({"key": key, **node}))
    OUT.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
