"""Probes, and the contexts in which engines run an operator otherwise than alone."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from torch_onnx_compat.graph.facts.special import SHAPES
from torch_onnx_compat.session import open_session

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Probe:
    """A small model that tries one node, and its inputs."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    position: int = 0
    """Index of the node in the graph."""

    @property
    def op_type(self) -> str:
        """Operator of the node."""
        return str(self.model.graph.node[self.position].op_type)

    @property
    def opset(self) -> int:
        """Opset of the model."""
        return int(self.model.opset_import[0].version)

    @property
    def outputs(self) -> list[str]:
        """Names of the model's outputs."""
        return [value.name for value in self.model.graph.output]


def make_model(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    """Builds a model from a graph, with inferred types of its outputs."""
    imports = [onnx.helper.make_opsetid("", opset)]
    ir_version = min(onnx.helper.find_min_ir_version_for(imports), 10)
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=ir_version)
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    # Inference does not complete outputs without a type; their types stand among the other values.
    known = {value.name: value for value in (*inferred.graph.value_info, *inferred.graph.output)}
    for output in model.graph.output:
        output.CopyFrom(known[output.name])
    if not all(output.type.tensor_type.elem_type for output in model.graph.output):
        _take_types_of_onnxruntime(model)
    return model


def _take_types_of_onnxruntime(model: onnx.ModelProto) -> None:
    """Completes outputs of which onnx infers nothing, such as GroupNormalization's: no tool writes such files."""
    session = open_session(model.SerializeToString())
    for output, found in zip(model.graph.output, session.get_outputs(), strict=True):
        kind = onnx.TensorProto.DataType.Value(found.type.removeprefix("tensor(").removesuffix(")").upper())
        output.CopyFrom(onnx.helper.make_tensor_value_info(output.name, kind, found.shape))


def model_before(probe: Probe) -> onnx.ModelProto | None:
    """The nodes before the probe's node as a model, whose outputs are the node's inputs; None if there are none."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph = model.graph
    read = graph.node[probe.position].input
    known = {value.name: value for value in graph.value_info}
    del graph.node[probe.position :], graph.output[:]
    computed = {name for node in graph.node for name in node.output}
    graph.output.extend(known[name] for name in dict.fromkeys(read) if name in computed and name in known)
    return model if graph.output else None


def read_shapes(probe: Probe) -> Probe:
    """The node with shapes that are read from tensors of these shapes, where they were inputs of the file.

    Engines follow what is computed from shapes, and refuse a shape that an input holds; torch writes the former.
    """
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, feeds = model.graph, dict(probe.feeds)
    node = graph.node[probe.position]
    before = []
    for index in SHAPES.get(node.op_type, ()):
        name = node.input[index] if index < len(node.input) else ""
        sizes = feeds.get(name)
        if sizes is None or sizes.dtype != np.int64 or not (sizes > 0).all():
            continue
        del feeds[name]
        feeds[f"{name}_like"] = np.zeros(sizes.tolist(), np.float32)
        (given,) = [value for value in graph.input if value.name == name]
        graph.value_info.append(given)
        given.CopyFrom(onnx.helper.make_tensor_value_info(f"{name}_like", onnx.TensorProto.FLOAT, sizes.tolist()))
        before.append(onnx.helper.make_node("Shape", [given.name], [name]))
    nodes = [*before, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return Probe(probe.name, model, feeds, probe.position + len(before))


def make_inside(probe: Probe) -> Probe:
    """The probe with half and double cast from float32, and tensors without axes reshaped from others.

    That an engine does not take these as a file's inputs says nothing of its operators.
    """
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, feeds = model.graph, dict(probe.feeds)
    before = []
    for given in list(graph.input):
        array, name = feeds[given.name], given.name
        narrow = array.dtype in (np.float16, np.float64)
        if not narrow and array.ndim:
            continue
        feeds[f"{name}_wide"] = array = feeds.pop(name).astype(np.float32 if narrow else array.dtype)
        if narrow:
            kind = given.type.tensor_type.elem_type
            before.append(onnx.helper.make_node("Cast", [f"{name}_wide"], [name], to=kind))
        else:
            feeds[f"{name}_wide"] = array = array.reshape(1)
            graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(0, np.int64), f"{name}_shape"))
            before.append(onnx.helper.make_node("Reshape", [f"{name}_wide", f"{name}_shape"], [name]))
        graph.value_info.append(given)
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        given.CopyFrom(onnx.helper.make_tensor_value_info(f"{name}_wide", kind, array.shape))
    nodes = [*before, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return Probe(probe.name, model, feeds, probe.position + len(before))


def add_reader(probe: Probe) -> Probe:
    """The node on a computed input that another node reads later: some engines overwrite it."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph = model.graph
    node = graph.node[0]
    shape = list(probe.feeds["x0"].shape)
    node.input[:] = ["h" if name == "x0" else name for name in node.input]
    before, after = onnx.helper.make_node("Neg", ["x0"], ["h"]), onnx.helper.make_node("Abs", ["h"], ["again"])
    nodes = [before, *graph.node, after]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.value_info.append(onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, shape))
    graph.output.append(onnx.helper.make_tensor_value_info("again", onnx.TensorProto.FLOAT, shape))
    return Probe(f"{probe.name}_reused", model, {**probe.feeds, "x0": -probe.feeds["x0"]}, 1)


def prepend_activation(probe: Probe, activation: str) -> Probe:
    """The node behind a convolution and its activation: some engines fuse all three, in another order."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, shape = model.graph, list(probe.feeds["x0"].shape)
    random = np.random.default_rng(zlib.crc32(f"{probe.name} {activation}".encode()))
    weights = random.uniform(-1, 1, (shape[1], shape[1], *[3] * (len(shape) - 2))).astype(np.float32)
    graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    make = onnx.helper.make_node
    before = [make("Conv", ["x0", "weights"], ["c"], pads=[1] * 2 * (len(shape) - 2))]
    if activation == "Swish":
        before += [make("Sigmoid", ["c"], ["s"]), make("Mul", ["c", "s"], ["h"])]
    else:
        before.append(make(activation, ["c"], ["h"]))
    graph.node[0].input[0] = "h"
    nodes = [*before, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.value_info.append(onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, shape))
    return Probe(f"{probe.name}_after_{activation}", model, probe.feeds, len(before))


def prepend_convolution(probe: Probe) -> Probe:
    """The node behind an identity convolution: some engines hold images in another layout there."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, shape = model.graph, list(probe.feeds["x0"].shape)
    same = np.eye(shape[1], dtype=np.float32).reshape(shape[1], shape[1], *[1] * (len(shape) - 2))
    graph.initializer.append(onnx.numpy_helper.from_array(same, "same"))
    graph.node[0].input[:] = ["h" if name == "x0" else name for name in graph.node[0].input]
    nodes = [onnx.helper.make_node("Conv", ["x0", "same"], ["h"]), *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.value_info.append(onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, shape))
    return Probe(f"{probe.name}_convolved", model, probe.feeds, 1)


def prepend_reshape(probe: Probe) -> Probe:
    """The node behind a Reshape of rows: some engines move operators through a Reshape."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, x = model.graph, probe.feeds["x0"]
    rows = x.reshape(x.shape[0], -1)
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(x.shape), "shape"))
    graph.node[0].input[0] = "h"
    nodes = [onnx.helper.make_node("Reshape", ["x0", "shape"], ["h"]), *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.value_info.append(onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, x.shape))
    graph.input[0].CopyFrom(onnx.helper.make_tensor_value_info("x0", onnx.TensorProto.FLOAT, rows.shape))
    return Probe(f"{probe.name}_viewed", model, {**probe.feeds, "x0": rows}, 1)


def cast_result(probe: Probe) -> Probe:
    """The node, of whole numbers, before a Cast to float32: some engines hold sizes in a type that no output has."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph = model.graph
    (whole,) = graph.output
    inner = onnx.ValueInfoProto()
    inner.CopyFrom(whole)
    graph.value_info.append(inner)
    graph.node.append(onnx.helper.make_node("Cast", [whole.name], ["cast"], to=onnx.TensorProto.FLOAT))
    whole.name, whole.type.tensor_type.elem_type = "cast", onnx.TensorProto.FLOAT
    return Probe(f"{probe.name}_cast", model, probe.feeds, probe.position)


def size_by_itself(probe: Probe) -> Probe:
    """A Resize of an image, whose sizes the file does not tell, to twice its height and width, as torch writes it."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph = model.graph
    graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 1, 2, 2]), "factors"))
    make = onnx.helper.make_node
    nodes = [make("Shape", ["x0"], ["shape"]), make("Mul", ["shape", "factors"], ["sizes"]), *graph.node]
    nodes[-1].input[:] = ["x0", "", "", "sizes"]
    del graph.node[:]
    graph.node.extend(nodes)
    return Probe(f"{probe.name}_sized", model, probe.feeds, 2)


def divide_by_norm(probe: Probe, how: str) -> Probe:
    """The division of a value by its own norm, over the axes that the second input's shape tells; before opset 18."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, shapes = model.graph, [list(probe.feeds[name].shape) for name in ("x0", "x1")]
    axes = [axis for axis, (size, left) in enumerate(zip(*shapes, strict=True)) if size != left]
    make, after = onnx.helper.make_node, {"norm": "c", "repeated norm": "repeated"}[how]
    nodes = [make("ReduceL2", ["x0"], ["n"], axes=axes), make("Clip", ["n", "least"], ["c"])]
    nodes += [make("Expand", ["c", "shape"], ["repeated"])] * (how == "repeated norm")
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(1e-12, np.float32), "least"))
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(shapes[0]), "shape"))
    graph.node[0].input[1] = after
    nodes += graph.node
    del graph.node[:], graph.input[1]
    graph.node.extend(nodes)
    return Probe(f"{probe.name}_norm", model, {"x0": probe.feeds["x0"]}, len(nodes) - 1)


def embed_in_attention(probe: Probe) -> Probe:
    """The node within an attention whose scores have its shape: some engines run an attention as one operator."""
    make = onnx.helper.make_node
    nodes = [make("Mul", ["t0", "root"], ["scaled"]), make("MatMul", ["scaled", "t1"], ["x0"])]
    return _attention(probe, probe.feeds["x0"].shape, [0, 2, 3, 1], [*nodes, *probe.model.graph.node], "y0")


def embed_as_scores(probe: Probe, scaled: str) -> Probe:
    """The product as scores of an attention, with scaled queries, keys or both; a separate node transposes the keys."""
    make, names = onnx.helper.make_node, {"queries": ("x0", "turned1"), "keys": ("t0", "x1"), "both": ("x0", "x1")}
    nodes = [make("Transpose", ["t1"], ["turned1"], perm=[0, 1, 3, 2])]
    nodes += [make("Mul", ["t0", "root"], ["x0"])] * (scaled in ("queries", "both"))
    nodes += [make("Mul", ["turned1", "root"], ["x1"])] * (scaled in ("keys", "both"))
    product = onnx.NodeProto()
    product.CopyFrom(probe.model.graph.node[0])
    product.input[:] = names[scaled]
    nodes += [product, make("Softmax", ["y0"], ["weights"], axis=-1)]
    shape = (*probe.feeds["x0"].shape[:3], probe.feeds["x1"].shape[-1])
    return _attention(probe, shape, [0, 2, 1, 3], nodes, "weights")


def _attention(
    probe: Probe, scores: tuple[int, ...], turn: list[int], between: list[onnx.NodeProto], weights: str
) -> Probe:
    """An attention from tokens to tokens; `between` holds the node and makes the weights of queries t0 and keys t1."""
    batch, heads, queries, keys = scores
    width = 4 * heads
    random = np.random.default_rng(zlib.crc32(probe.name.encode()))
    # A single token comes without an axis, as the class token does.
    asking = (batch, width) if queries == 1 else (batch, queries, width)
    tokens = {"q": random.uniform(-1, 1, asking), "k": random.uniform(-1, 1, (batch, keys, width))}
    constants: dict[str, Any] = {f"w{i}": random.uniform(-1, 1, (width, width)).astype(np.float32) for i in range(4)}
    constants |= {f"b{i}": random.uniform(-1, 1, width).astype(np.float32) for i in range(4)}
    constants |= {"root": np.array(0.5, np.float32), "tokens": np.array([batch, queries, width])}
    make, nodes = onnx.helper.make_node, []
    for index, (source, order) in enumerate((("q", [0, 2, 1, 3]), ("k", turn), ("k", [0, 2, 1, 3]))):
        constants[f"heads{index}"] = np.array([batch, queries if source == "q" else keys, heads, 4])
        nodes += [
            make("MatMul", [source, f"w{index}"], [f"m{index}"]),
            make("Add", [f"m{index}", f"b{index}"], [f"a{index}"]),
            make("Reshape", [f"a{index}", f"heads{index}"], [f"r{index}"]),
            make("Transpose", [f"r{index}"], [f"t{index}"], perm=order),
        ]
    position = len(nodes) + next(i for i, node in enumerate(between) if "y0" in node.output)
    nodes += between
    nodes += [make("MatMul", [weights, "t2"], ["mixed"]), make("Transpose", ["mixed"], ["turned"], perm=[0, 2, 1, 3])]
    nodes += [make("Reshape", ["turned", "tokens"], ["joined"]), make("MatMul", ["joined", "w3"], ["m3"])]
    nodes.append(make("Add", ["m3", "b3"], ["y"]))
    feeds = {name: array.astype(np.float32) for name, array in tokens.items()}
    inputs = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, a.shape) for n, a in feeds.items()]
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = onnx.helper.make_graph(nodes, probe.name, inputs, [onnx.ValueInfoProto(name="y")], initializers)
    model = onnx.shape_inference.infer_shapes(make_model(graph, probe.opset), data_prop=True)
    return Probe(f"{probe.name}_attends", model, feeds, position)


def embed_in_group_norm(probe: Probe) -> Probe:
    """The node within a group normalization: some engines run its three nodes as one operator."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, x = model.graph, probe.feeds["x0"]
    image = x.reshape(x.shape[0], x.shape[1] * 4, -1, 2)
    make, infos = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    graph.initializer.append(onnx.numpy_helper.from_array(np.array([0, x.shape[1], -1]), "groups"))
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(image.shape), "image"))
    graph.node[0].input[0] = "h"
    graph.value_info.extend([infos("h", onnx.TensorProto.FLOAT, x.shape), graph.output[0]])
    nodes = [make("Reshape", ["x0", "groups"], ["h"]), *graph.node, make("Reshape", ["y0", "image"], ["again"])]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.input[0].CopyFrom(infos("x0", onnx.TensorProto.FLOAT, image.shape))
    graph.output[0].CopyFrom(infos("again", onnx.TensorProto.FLOAT, image.shape))
    return Probe(f"{probe.name}_grouped", model, {**probe.feeds, "x0": image}, 1)


def prepend_pad(probe: Probe) -> Probe:
    """The node behind a Pad by zeros: some engines take these zeros for the node's own padding."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, shape = model.graph, list(probe.feeds["x0"].shape)
    ends = [0] * len(shape) + [0, 0] + [1] * (len(shape) - 2)
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(ends), "pads"))
    less = (slice(None), slice(None), *[slice(-1)] * (len(shape) - 2))
    fed = np.ascontiguousarray(probe.feeds["x0"][less])
    graph.node[0].input[0] = "h"
    nodes = [onnx.helper.make_node("Pad", ["x0", "pads"], ["h"]), *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.value_info.append(onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, shape))
    graph.input[0].CopyFrom(onnx.helper.make_tensor_value_info("x0", onnx.TensorProto.FLOAT, fed.shape))
    return Probe(f"{probe.name}_padded", model, {**probe.feeds, "x0": fed}, 1)


def sum_products(probe: Probe) -> Probe:
    """The sum of two products of one value: some engines run the products and their sum as one operator."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, shape = model.graph, list(probe.feeds["x0"].shape)
    random = np.random.default_rng(zlib.crc32(probe.name.encode()))
    make, names = onnx.helper.make_node, ("x0", "x1")
    for name in names:
        weights = random.uniform(-1, 1, (5, shape[-1])).astype(np.float32)
        graph.initializer.append(onnx.numpy_helper.from_array(weights, f"w{name}"))
        graph.value_info.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
    nodes = [*(make("MatMul", ["x", f"w{name}"], [name]) for name in names), *graph.node]
    del graph.node[:], graph.input[:]
    graph.node.extend(nodes)
    feed = random.uniform(-2, 2, (*shape[:-1], 5)).astype(np.float32)
    graph.input.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, feed.shape))
    return Probe(f"{probe.name}_of_products", model, {"x": feed}, 2)


def multiply_result(probe: Probe) -> Probe:
    """The node with its result multiplied by another input: some engines take x * f(y) for x * f(x)."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph = model.graph
    random = np.random.default_rng(zlib.crc32(probe.name.encode()))
    gated = random.uniform(-2, 2, (1, 3, 8, 8)).astype(np.float32)
    info = onnx.helper.make_tensor_value_info("gated", onnx.TensorProto.FLOAT, gated.shape)
    graph.input.append(info)
    graph.value_info.append(graph.output[0])
    graph.node.append(onnx.helper.make_node("Mul", ["gated", "y0"], ["again"]))
    graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("again", onnx.TensorProto.FLOAT, gated.shape))
    return Probe(f"{probe.name}_gates", model, {**probe.feeds, "gated": gated})
