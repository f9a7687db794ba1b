"""Hostile files: a random graph with one thing in it that no honest tool writes, or that asks for what it must not."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import onnx
from onnx import TensorProto, helper

SECRET = "secret.bin"
"""A file in the folder above the model's, which no model may read."""


def attack(model: onnx.ModelProto, folder: Path, seed: int) -> tuple[bytes, str]:
    """The bytes of a hostile file, and what is hostile in it.

    Args:
        model: The graph; it is changed.
        folder: Where the file will be; links are put there.
        seed: Chooses the way, and its details.
    """
    rng = random.Random(seed)
    way = list(WAYS)[seed % len(WAYS)]
    return WAYS[way](model, folder, rng), way


def _cycle(model: onnx.ModelProto, _: Path, rng: random.Random) -> bytes:
    """Two nodes that read each other, or one that reads itself."""
    last = model.graph.node[-1].output[0]
    length = rng.randint(1, 50)
    for number in range(length):
        source = f"cycle_{number - 1}" if number else f"cycle_{length - 1}"
        model.graph.node.insert(0, helper.make_node("Identity", [source], [f"cycle_{number}"]))
    model.graph.node.append(helper.make_node("Where", ["cycle_0", last, last], ["cyclic"]))
    model.graph.output.append(onnx.ValueInfoProto(name="cyclic"))
    return model.SerializeToString()


def _huge_input(model: onnx.ModelProto, _: Path, rng: random.Random) -> bytes:
    """An input of a terabyte and more."""
    shape = [2 ** rng.randint(14, 30), 2 ** rng.randint(14, 30)]
    model.graph.input.append(helper.make_tensor_value_info("huge", TensorProto.FLOAT, shape))
    _show(model, helper.make_node("Relu", ["huge"], ["much"]))
    return model.SerializeToString()


def _huge_weight(model: onnx.ModelProto, _: Path, rng: random.Random) -> bytes:
    """A weight that says it is of a terabyte and more."""
    dims = [2 ** rng.randint(10, 62), 2 ** rng.randint(10, 62)]
    model.graph.initializer.append(TensorProto(name="huge", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"1234"))
    _show(model, helper.make_node("Relu", ["huge"], ["much"]))
    return model.SerializeToString()


def _huge_value(model: onnx.ModelProto, _: Path, rng: random.Random) -> bytes:
    """A node that makes a terabyte and more from a small constant."""
    sizes = [2 ** rng.randint(20, 30), 2 ** rng.randint(20, 30)]
    model.graph.initializer.append(helper.make_tensor("sizes", TensorProto.INT64, [2], sizes))
    _show(model, helper.make_node("ConstantOfShape", ["sizes"], ["much"]))
    return model.SerializeToString()


def _escape(model: onnx.ModelProto, folder: Path, rng: random.Random) -> bytes:
    """Weights outside of the file's folder: by a path, or by a link."""
    link, inner = folder / "link.bin", folder / "sub"
    if not link.is_symlink():
        os.symlink(folder.parent / SECRET, link)
        os.symlink(folder.parent, inner)
    ways = (
        f"../{SECRET}",
        "/etc/passwd",
        "link.bin",
        f"sub/{SECRET}",
        f"./x/../../{SECRET}",
        f"..//{SECRET}",
        "..",
        ".",
    )
    _add_external(model, {"location": rng.choice(ways)})
    return model.SerializeToString()


def _outside_numbers(model: onnx.ModelProto, folder: Path, rng: random.Random) -> bytes:
    """Weights at offsets and of lengths that their file does not have."""
    (folder / "short.bin").write_bytes(bytes(8))
    number = rng.choice(["-1", "4096", str(2**63), "1e9", "", "0x10", "8"])
    _add_external(model, {"location": "short.bin", rng.choice(["offset", "length"]): number})
    return model.SerializeToString()


def _deep(model: onnx.ModelProto, _: Path, rng: random.Random) -> bytes:
    """A thousand Ifs within each other."""
    plain = _field(1, _field(1, b"flag") + _field(2, b"b") + _field(4, b"Identity")) + _field(12, _field(1, b"b"))
    inner = plain
    for _ in range(rng.choice([1000, 3000])):
        inner = _if(b"b", inner, plain) + _field(12, _field(1, b"b"))
    model.graph.initializer.append(helper.make_tensor("flag", TensorProto.BOOL, [], [True]))
    graph = _if(b"deep", inner, plain) + _field(12, _field(1, b"deep"))
    return model.SerializeToString() + _field(7, graph)  # a message that comes in parts is merged


def _no_text(model: onnx.ModelProto, _: Path, rng: random.Random) -> bytes:
    """A name in bytes that are no UTF-8."""
    node = rng.choice(list(model.graph.node))
    name = (node.output[0] if rng.random() < 0.5 else node.op_type).encode()
    return model.SerializeToString().replace(name, bytes([0xFF, *b"\xfe\x80\xc0" * len(name)])[: len(name)])


def _twice(model: onnx.ModelProto, _: Path, rng: random.Random) -> bytes:
    """A value that two nodes, or a node and an input or a weight, give."""
    name = rng.choice([v.name for v in model.graph.input] + [n.output[0] for n in model.graph.node if n.output[0]])
    node = rng.choice(list(model.graph.node))
    copy = onnx.NodeProto.FromString(node.SerializeToString())
    copy.output[0] = name
    model.graph.node.append(copy)
    return model.SerializeToString()


def _types(model: onnx.ModelProto, _: Path, rng: random.Random) -> bytes:
    """An attribute, an element type, an operand or an operator of a kind that is not there."""
    node = rng.choice(list(model.graph.node))
    way = rng.randrange(5)
    if way == 0:
        node.attribute.append(helper.make_attribute(rng.choice(["axis", "perm", "to", "pads"]), b"\x00text"))
    elif way == 1:
        model.graph.input[0].type.tensor_type.elem_type = rng.choice([0, 77, 2**30, 8, 16])
    elif way == 2:
        model.graph.initializer.append(helper.make_tensor("text", TensorProto.STRING, [1], [b"a"]))
        if node.input:
            node.input[0] = "text"
    elif way == 3:
        node.op_type = rng.choice(["NoSuchOperator", "", "Add", "Conv", "Loop", "If", "Scan"])
    else:
        del node.attribute[:]
        node.attribute.append(onnx.AttributeProto(name="body", type=onnx.AttributeProto.GRAPH))
    return model.SerializeToString()


def _itself(model: onnx.ModelProto, _: Path, rng: random.Random) -> bytes:
    """Functions that call themselves, or each other."""
    names = [f"f{i}" for i in range(rng.randint(1, 4))]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    for name, other in zip(names, [*names[1:], names[0]], strict=True):
        node = helper.make_node(other, ["a"], ["b"], domain="local")
        model.functions.append(helper.make_function("local", name, ["a"], ["b"], [node], imports))
    if not any(o.domain == "local" for o in model.opset_import):
        model.opset_import.append(helper.make_opsetid("local", 1))
    model.ir_version = max(model.ir_version, 8)
    _show(model, helper.make_node("f0", [model.graph.input[0].name], ["endless"], domain="local"))
    return model.SerializeToString()


WAYS: dict[str, Callable[[onnx.ModelProto, Path, random.Random], bytes]] = {
    "a cycle": _cycle,
    "a huge input": _huge_input,
    "a huge weight": _huge_weight,
    "a huge value": _huge_value,
    "weights outside of the folder": _escape,
    "weights at other places": _outside_numbers,
    "a thousand nested branches": _deep,
    "names that are no text": _no_text,
    "a name twice": _twice,
    "wrong types": _types,
    "functions that call themselves": _itself,
}
NEVER_RIGHT = frozenset(WAYS) - {"names that are no text", "wrong types"}
"""What must not be converted; elsewhere the change may fall where it says nothing."""


def _show(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
    model.graph.node.append(node)
    model.graph.output.append(_named(node.output[0]))


def _named(name: str) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name)


def _add_external(model: onnx.ModelProto, entries: dict[str, str]) -> None:
    tensor = TensorProto(name="far", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    model.graph.initializer.append(tensor)
    _show(model, helper.make_node("Relu", ["far"], ["read"]))


def _if(output: bytes, then: bytes, other: bytes) -> bytes:
    """An If as a field of its graph; its branches are attributes of type 5, a graph."""
    kind = bytes([20 << 3 & 0x7F | 0x80, 1, 5])
    branches = ((b"then_branch", then), (b"else_branch", other))
    attributes = b"".join(_field(5, _field(1, name) + _field(6, graph) + kind) for name, graph in branches)
    return _field(1, _field(1, b"flag") + _field(2, output) + _field(4, b"If") + attributes)


def _field(number: int, data: bytes) -> bytes:
    """A field of a protobuf message that holds bytes."""
    head, length = bytes([number << 3 | 2]), len(data)
    while length > 0x7F:
        head, length = head + bytes([length & 0x7F | 0x80]), length >> 7
    return head + bytes([length]) + data
