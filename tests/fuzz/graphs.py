"""Random ONNX graphs, drawn from onnx's schemas: any opset, dynamic axes, branches, loops, functions.

A node is kept if onnxruntime runs it on sample values. So the graphs are valid, whatever the schemas leave unsaid.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.defs import OpSchema

from torch_onnx_compat.files.runner import Refused, Runner

TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8,
    "tensor(bool)": np.bool_,
}
NAMES = {np.dtype(dtype): name for name, dtype in TYPES.items()}
SHAPES = ((2, 3, 4, 5), (2, 3, 6, 6), (2, 3, 4), (3, 4), (4, 3), (4,), (1, 3, 1, 1), (2, 1, 4), (), (1,), (3, 3, 3, 3))
SKIPPED = frozenset(
    {"If", "Loop", "Scan", "SequenceMap", "Optional", "OptionalGetElement", "OptionalHasElement", "ImageDecoder"}
    | {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
    | {"Constant", "StringNormalizer", "TfIdfVectorizer", "RegexFullMatch", "StringConcat", "StringSplit"}
)
WORDS = {
    "mode": (
        "constant",
        "reflect",
        "edge",
        "nearest",
        "linear",
        "cubic",
        "bilinear",
        "DCR",
        "CRD",
        "avg",
        "max",
        "wrap",
    ),
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "reduction": ("none", "add", "mul", "max", "min", "mean", "sum"),
    "direction": ("forward", "reverse", "bidirectional", "LEFT", "RIGHT"),
    "coordinate_transformation_mode": ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"),
    "nearest_mode": ("floor", "round_prefer_floor", "ceil", "round_prefer_ceil"),
    "padding_mode": ("zeros", "border", "reflection"),
    "approximate": ("none", "tanh"),
    "equation": ("ij,jk->ik", "ij->ji", "bij->b", "...->..."),
}
FLAGS = (
    "keepdims",
    "noop_with_empty_axes",
    "ceil_mode",
    "count_include_pad",
    "select_last_index",
    "upper",
    "sorted",
    "saturate",
)
SMALL = {"kernel_shape": (1, 3), "strides": (1, 2), "dilations": (1, 2)}


@dataclass
class Graph:
    """A graph that grows, and sample values of everything in it."""

    opset: int
    random: random.Random
    runner: Runner
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    values: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    weights: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    functions: list[onnx.FunctionProto] = field(default_factory=list)
    count: int = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}_{self.count}"

    def add_input(self, array: np.ndarray[Any, Any]) -> str:
        name = self.name("in")
        self.inputs.append(name)
        self.values[name] = array
        return name

    def add_weight(self, array: Any) -> str:
        name = self.name("w")
        self.weights[name] = self.values[name] = np.asarray(array)
        return name

    def sample(self, dtype: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        generator = np.random.default_rng(self.random.randrange(2**31))
        if dtype is np.bool_:
            return generator.random(shape) < 0.5
        if np.issubdtype(dtype, np.floating):
            return generator.standard_normal(shape).astype(dtype)
        return generator.integers(0, 4, shape).astype(dtype)

    def try_node(self, node: onnx.NodeProto, bodies: dict[str, Any] | None = None) -> bool:
        """Adds a node if onnxruntime runs it on the sample values."""
        given = {name: self.values[name] for name in needs(node) if name in self.values}
        graph = helper.make_graph(
            [node],
            "one",
            [info(name, array) for name, array in given.items() if name not in self.weights],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
            [numpy_helper.from_array(self.weights[name], name) for name in given if name in self.weights],
        )
        try:
            outputs = run(self.runner, self.model(graph), {n: a for n, a in given.items() if n not in self.weights})
        except Refused:
            return False
        if not all(isinstance(a, np.ndarray) and a.dtype in NAMES and a.size <= 20000 for a in outputs):
            return False
        self.nodes.append(node)
        self.values.update(zip((n for n in node.output if n), outputs, strict=True))
        return True

    def model(self, graph: onnx.GraphProto) -> onnx.ModelProto:
        imports = [helper.make_opsetid("", self.opset)]
        if self.functions:
            imports.append(helper.make_opsetid("local", 1))
        least = helper.find_min_ir_version_for([helper.make_opsetid("", self.opset)])
        version = max(least, 8 if self.functions else 0)
        return helper.make_model(graph, opset_imports=imports, ir_version=version, functions=self.functions)


def needs(node: onnx.NodeProto) -> list[str]:
    """The values that a node and its bodies read."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.HasField("g"):
            own = {output for inner in attribute.g.node for output in inner.output}
            own |= {value.name for value in attribute.g.input}
            names += [name for inner in attribute.g.node for name in needs(inner) if name not in own]
            names += [value.name for value in attribute.g.output if value.name not in own]
    return list(dict.fromkeys(names))


def info(name: str, array: np.ndarray[Any, Any], shape: Any = None) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, list(array.shape) if shape is None else shape)


def run(runner: Runner, model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """Runs a model in the runner's process."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        runner.open("fuzz", path)
        return runner.run("fuzz", feeds)


def schemas(opset: int) -> list[OpSchema]:
    """ONNX's own operators at an opset."""
    found = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        is_known = schema.domain == "" and schema.since_version <= opset and schema.name not in SKIPPED
        if is_known and getattr(found.get(schema.name), "since_version", 0) < schema.since_version:
            found[schema.name] = schema
    return [s for _, s in sorted(found.items()) if not s.deprecated and str(s.support_level).endswith("COMMON")]


def draw_graph(seed: int, runner: Runner, size: int = 6) -> onnx.ModelProto | None:
    """A random graph; None where too few nodes were accepted."""
    rng = random.Random(seed)
    graph = Graph(rng.choice(range(7, 24)), rng, runner)
    for _ in range(rng.randint(1, 3)):
        dtype = rng.choice([np.float32, np.float32, np.float32, *TYPES.values()])
        graph.add_input(graph.sample(dtype, rng.choice(SHAPES)))
    if not any(graph.values[name].dtype == np.float32 for name in graph.inputs):
        graph.add_input(graph.sample(np.float32, rng.choice(SHAPES)))
    known = schemas(graph.opset)
    wanted, tries = rng.randint(1, size), 0
    while len(graph.nodes) < wanted and tries < 40 * wanted:
        tries += 1
        add = rng.choices([_add_operator, _add_if, _add_loop, _add_function], [30, 1, 1, 1])[0]
        add(graph, rng.choice(known))
    return finish(graph) if graph.nodes else None


def finish(graph: Graph) -> onnx.ModelProto:
    """The model: what nobody reads comes out, some axes get names, some shapes are left out."""
    rng = graph.random
    read = {name for node in graph.nodes for name in needs(node)}
    made = [name for node in graph.nodes for name in node.output if name]
    outputs = [name for name in made if name not in read] or made[-1:]
    used = [name for name in graph.inputs if name in read] or graph.inputs[:1]
    weights = [name for name in graph.weights if name in read]
    inputs = []
    for name in used:
        shape: list[Any] = list(graph.values[name].shape)
        if shape and rng.random() < 0.4:
            shape[0] = f"n{shape[0]}"
        inputs.append(info(name, graph.values[name], shape))
    version_3 = graph.opset <= 8 and rng.random() < 0.5
    if version_3 or (weights and rng.random() < 0.1):
        inputs += [info(name, graph.weights[name]) for name in weights]
    outs = [
        info(n, graph.values[n], [None] * graph.values[n].ndim) if rng.random() < 0.7 else _unshaped(n, graph.values[n])
        for n in outputs
    ]
    tensors = [numpy_helper.from_array(graph.weights[name], name) for name in weights]
    model = graph.model(helper.make_graph(graph.nodes, "fuzz", inputs, outs, tensors))
    model.ir_version = 3 if version_3 and not graph.functions else max(model.ir_version, 4)
    return model


def _unshaped(name: str, array: np.ndarray[Any, Any]) -> onnx.ValueInfoProto:
    value = onnx.ValueInfoProto(name=name)
    value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    return value


def _add_operator(graph: Graph, schema: OpSchema) -> bool:
    node = draw_node(graph, schema)
    return node is not None and graph.try_node(node)


def draw_node(graph: Graph, schema: OpSchema) -> onnx.NodeProto | None:
    """A node of an operator, its inputs taken from what is there; None where nothing fits."""
    rng = graph.random
    bound: dict[str, Any] = {}
    inputs: list[str] = []
    first: np.ndarray[Any, Any] | None = None
    for index, formal in enumerate(schema.inputs):
        count = rng.randint(1, 3) if formal.option == OpSchema.FormalParameterOption.Variadic else 1
        if formal.option == OpSchema.FormalParameterOption.Optional and rng.random() < 0.5:
            inputs.append("")
            continue
        for _ in range(count):
            name = _choose(graph, schema, index, formal, bound, first)
            if name is None:
                return None
            inputs.append(name)
            first = graph.values[name] if first is None else first
    while inputs and not inputs[-1]:
        inputs.pop()
    attributes = _attributes(graph, schema, first)
    least, most = max(schema.min_output, 1), min(schema.max_output, 3)
    outputs = [graph.name(schema.name) for _ in range(rng.randint(least, max(least, most)))]
    return helper.make_node(schema.name, inputs, outputs, **attributes)


def _choose(graph: Graph, schema: OpSchema, index: int, formal: Any, bound: dict[str, Any], first: Any) -> str | None:
    rng = graph.random
    allowed = [t for t in TYPES if t in formal.types]
    if formal.type_str in bound:
        allowed = [t for t in allowed if t == bound[formal.type_str]]
    if not allowed:
        return None
    if index and set(formal.types) <= {"tensor(int64)", "tensor(int32)"} and rng.random() < 0.9:
        return graph.add_weight(_parameter(graph, schema, formal, first))
    fitting = [name for name, a in graph.values.items() if NAMES[a.dtype] in allowed]
    if index == 0:
        fitting = [name for name in fitting if name not in graph.weights]
    if index and first is not None and rng.random() < 0.6:
        shape = _related(rng, first.shape)
        dtype = TYPES[bound.get(formal.type_str) or rng.choice(allowed)]
        name = graph.add_weight(graph.sample(dtype, shape))
    elif fitting:
        name = rng.choice(fitting)
    else:
        return None
    bound[formal.type_str] = NAMES[graph.values[name].dtype]
    return name


def _related(rng: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that may go with another: the same, one channel vector, a kernel, a number."""
    choices = [shape, shape[1:2], shape[-1:], (), shape[1:]]
    if len(shape) >= 3:
        choices += [(2, shape[1], *[3] * (len(shape) - 2)), (shape[1], 1, *[3] * (len(shape) - 2))]
    if len(shape) >= 2:
        choices += [(*shape[:-2], shape[-1], 2), (shape[-1], 5)]
    return rng.choice(choices)


def _parameter(graph: Graph, schema: OpSchema, formal: Any, first: Any) -> np.ndarray[Any, Any]:
    """Axes, sizes, pads, indices: whole numbers that an operator takes beside its data."""
    rng, shape = graph.random, first.shape if first is not None else (1,)
    rank, name = len(shape), formal.name
    dtype = np.int64 if "tensor(int64)" in formal.types else np.int32
    if name == "axis":
        return np.array(rng.randrange(-1, max(rank, 1)), dtype)
    slicing = {"starts": [rng.randint(-2, 1)], "ends": [rng.randint(1, 9)], "steps": [1], "axes": [0]}
    known = {
        "pads": [rng.randint(0, 2) for _ in range(2 * rank)],
        "shape": rng.choice([[-1], [int(np.prod(shape))], [0, -1], [1, -1], list(shape)]),
        "repeats": [rng.randint(1, 3) for _ in shape],
        "sizes": [rng.randint(1, 3) for _ in shape],
        "axes": sorted({rng.randrange(-1, max(rank, 1)) for _ in range(rng.randint(1, 2))}),
        "split": [1, (shape[0] if rank else 2) - 1],
        **{key: [rng.randint(1, 2)] for key in ("K", "k", "depth")},
        **(slicing if schema.name == "Slice" else {}),
    }
    if name in known:
        return np.array(known[name], dtype)
    wanted = rng.choice([(), (2,), (2, 2), shape])
    return np.array(np.random.default_rng(rng.randrange(99)).integers(0, 2, wanted), dtype)


def _attributes(graph: Graph, schema: OpSchema, first: Any) -> dict[str, Any]:
    rng, rank = graph.random, first.ndim if first is not None else 1
    chosen: dict[str, Any] = {}
    for name, attribute in sorted(schema.attributes.items()):
        if not attribute.required and rng.random() < 0.6:
            continue
        value = _attribute(rng, name, attribute, rank)
        if value is not None and value != []:
            chosen[name] = value
    return chosen


def _attribute(rng: random.Random, name: str, attribute: Any, rank: int) -> Any:
    kind = str(attribute.type).rpartition(".")[2]
    limit = max(rank, 1)
    if name in ("to", "dtype"):
        return rng.choice([1, 1, 6, 7, 9, 10, 11])
    if kind == "INT" and name in FLAGS:
        return rng.choice([0, 1])
    if kind == "INT":
        return rng.randrange(-limit, limit) if name == "axis" else rng.choice([0, 0, 1, 1, 2, 3])
    if kind == "STRING":
        return rng.choice(WORDS[name]) if name in WORDS else None
    if kind == "INTS":
        return _integers(rng, name, rank)
    drawn = {"FLOAT": rng.choice([0.0, 0.5, 1.0, 1.5, 1e-5]), "FLOATS": [rng.choice([1.0, 2.0]) for _ in range(rank)]}
    return drawn.get(kind)


def _integers(rng: random.Random, name: str, rank: int) -> list[int]:
    spatial = max(rank - 2, 1)
    if name == "perm":
        return rng.sample(range(rank), rank)
    if name == "pads":
        return [rng.randint(0, 1) for _ in range(2 * rng.choice([spatial, rank]))]
    if name in SMALL:
        return [rng.choice(SMALL[name])] * spatial
    return sorted({rng.randrange(0, max(rank, 1)) for _ in range(rng.randint(1, 2))})


def _body_node(graph: Graph, source: str, output: str) -> onnx.NodeProto:
    """A node of one input for a branch or a loop's body; some of them have changed from opset to opset."""
    rng, rank = graph.random, graph.values[source].ndim
    made = [
        helper.make_node("Relu", [source], [output]),
        helper.make_node("Softmax", [source], [output], axis=rng.randrange(max(rank, 1))),
        helper.make_node("Neg", [source], [output]),
        helper.make_node("Sigmoid", [source], [output]),
    ]
    if graph.opset < 11:
        made.append(helper.make_node("Clip", [source], [output], min=0.0, max=0.5))
    if graph.opset >= 20:
        made.append(helper.make_node("Gelu", [source], [output]))
    if graph.opset >= 14:
        made.append(helper.make_node("HardSwish", [source], [output]))
    return rng.choice(made)


def _floats(graph: Graph) -> list[str]:
    return [n for n, a in graph.values.items() if a.dtype == np.float32 and a.ndim and n not in graph.weights]


def _add_if(graph: Graph, _: OpSchema) -> bool:
    sources = _floats(graph)
    if not sources:
        return False
    source, condition = graph.random.choice(sources), graph.add_input(np.array(graph.random.random() < 0.5))
    branches = []
    for stem in ("then", "else"):
        name = graph.name(stem)
        node = _body_node(graph, source, name)
        branches.append(helper.make_graph([node], stem, [], [_unshaped(name, graph.values[source])]))
    node = helper.make_node("If", [condition], [graph.name("If")], then_branch=branches[0], else_branch=branches[1])
    return graph.try_node(node)


def _add_loop(graph: Graph, _: OpSchema) -> bool:
    sources = _floats(graph)
    if not sources or graph.opset < 11:
        return False
    source = graph.random.choice(sources)
    carried, result, condition, kept = (graph.name(s) for s in ("carried", "result", "go", "going"))
    graph.values[carried] = graph.values[source]
    body = helper.make_graph(
        [_body_node(graph, carried, result), helper.make_node("Identity", [condition], [kept])],
        "body",
        [
            helper.make_tensor_value_info(graph.name("round"), onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info(condition, onnx.TensorProto.BOOL, []),
            _unshaped(carried, graph.values[source]),
        ],
        [helper.make_tensor_value_info(kept, onnx.TensorProto.BOOL, []), _unshaped(result, graph.values[source])],
    )
    del graph.values[carried]
    rounds = graph.add_weight(np.array(graph.random.randint(0, 3), np.int64))
    node = helper.make_node("Loop", [rounds, "", source], [graph.name("Loop")], body=body)
    return graph.try_node(node)


def _add_function(graph: Graph, _: OpSchema) -> bool:
    sources = _floats(graph)
    if not sources or graph.opset < 15:
        return False
    source = graph.random.choice(sources)
    name = graph.name("Function")
    graph.values["x"] = graph.values[source]
    nodes = [_body_node(graph, "x", "y"), helper.make_node("Add", ["y", "x"], ["z"])]
    del graph.values["x"]
    imports = [helper.make_opsetid("", graph.opset)]
    graph.functions.append(helper.make_function("local", name, ["x"], ["z"], nodes, imports))
    if graph.try_node(helper.make_node(name, [source], [graph.name("called")], domain="local")):
        return True
    graph.functions.pop()
    return False
