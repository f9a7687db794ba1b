"""Random programs of the kind that exporters write: tensors are moved and cut, and their sizes are calculated with.

Each step is right at the base sizes of the dynamic axes and at most other sizes. Where it is not, onnxruntime refuses
the graph before it is slimmed, and the size is left out.
"""

import numpy as np
import onnx
import onnxruntime
from hypothesis import strategies as st
from onnx import TensorProto, helper

SIZES = [{"n": 3, "m": 4}, {"n": 1, "m": 1}, {"n": 0, "m": 4}, {"n": 2, "m": 0}, {"n": 5, "m": 7}, {"n": 4, "m": 3}]
"""The first one is that at which the programs are made."""


class Program:
    """A graph that grows step by step; a tensor is its name and its axes, each a size or the name of one."""

    def __init__(self, draw, opset):
        self.draw, self.opset = draw, opset
        self.nodes, self.constants, self.count, self.odd_at_zero = [], {}, 0, False
        self.tensors = [("x", ["n", 4, "m"]), ("y", ["n", 6])]

    def node(self, op_type, *inputs, **attributes):
        self.count += 1
        name = f"v{self.count}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], name=f"node{self.count}", **attributes))
        return name

    def constant(self, values, dtype=np.int64):
        array = np.array(values, dtype)
        if self.draw(st.booleans()):
            return self.node("Constant", value=onnx.numpy_helper.from_array(array))
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def choose(self, rank=None):
        found = [t for t in self.tensors if rank is None or len(t[1]) == rank]
        return self.draw(st.sampled_from(found)) if found else None

    def size(self, tensor, axis):
        """The size of an axis as exporters write it: a scalar, of a Gather from a Shape."""
        return self.node("Gather", self.node("Shape", tensor), self.constant(axis), axis=0)

    def list_of(self, parts):
        """A vector made of numbers and scalars."""
        vectors = [
            self.constant([part]) if isinstance(part, int) else self.node("Unsqueeze", part, self.constant([0]))
            for part in parts
        ]
        return self.node("Concat", *vectors, axis=0)

    def sizes(self, name, axes):
        """Each size as a number, where it is one and the draw wants it, else computed."""
        return [
            size if isinstance(size, int) and self.draw(st.booleans()) else self.size(name, axis)
            for axis, size in enumerate(axes)
        ]

    def add(self, name, axes):
        self.tensors.append((name, axes))

    def model(self):
        used = {name for node in self.nodes for name in node.input}
        leaves = [name for node in self.nodes for name in node.output if name not in used]
        outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in leaves]
        inputs = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4, "m"]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 6]),
        ]
        weights = [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, weights)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
        infos = (*inferred.graph.value_info, *inferred.graph.output)
        types = {info.name: info.type.tensor_type.elem_type for info in infos}
        for info in proto.graph.output:
            info.type.tensor_type.elem_type = types[info.name]
        return proto


def reshape(p):
    name, axes = p.choose()
    sizes = p.sizes(name, axes)
    kind = p.draw(st.sampled_from(["merge", "split", "same", "find"]))
    # A computed 0 means the input's size at its place. Where that is another axis, the graph is odd at size 0.
    p.odd_at_zero |= kind in ("merge", "split") and p.opset < 14
    zeros = {"allowzero": 1} if p.opset > 13 and kind != "find" else {}
    if kind == "merge" and len(axes) > 1:
        at = p.draw(st.integers(0, len(axes) - 2))
        pair = [s if not isinstance(s, int) else p.constant(s) for s in sizes[at : at + 2]]
        merged = axes[at] * axes[at + 1] if all(isinstance(a, int) for a in axes[at : at + 2]) else f"d{p.count}"
        whole = [*sizes[:at], p.node("Mul", *pair), *sizes[at + 2 :]]
        p.add(p.node("Reshape", name, p.list_of(whole), **zeros), [*axes[:at], merged, *axes[at + 2 :]])
    elif kind == "split" and any(isinstance(size, int) and size % 2 == 0 for size in axes):
        at = next(i for i, size in enumerate(axes) if isinstance(size, int) and size % 2 == 0)
        half = axes[at] // 2
        p.add(
            p.node("Reshape", name, p.list_of([*sizes[:at], 2, half, *sizes[at + 1 :]]), **zeros),
            [*axes[:at], 2, half, *axes[at + 1 :]],
        )
    elif kind == "find" and axes:
        at = p.draw(st.integers(0, len(axes) - 1))
        p.add(p.node("Reshape", name, p.list_of([*sizes[:at], -1, *sizes[at + 1 :]])), axes)
    elif axes:
        p.add(p.node("Reshape", name, p.list_of(sizes), **p.draw(st.sampled_from([zeros, {}]))), axes)


def transpose(p):
    name, axes = p.choose()
    order = p.draw(st.permutations(range(len(axes))))
    if axes:
        p.add(p.node("Transpose", name, perm=list(order)), [axes[i] for i in order])


def cut(p):
    name, axes = p.choose()
    if not axes:
        return
    at = p.draw(st.integers(0, len(axes) - 1))
    step = p.draw(st.sampled_from([1, 1, 1, 2, -1]))
    start = p.constant([p.draw(st.integers(-3, 3)) if step > 0 else -1])
    kinds = ["number", "end", "size", "half", "less"] if step > 0 else ["start"]
    kind = p.draw(st.sampled_from(kinds))
    if kind == "number":
        end = p.constant([p.draw(st.integers(-2, 5))])
    elif kind in ("end", "start"):
        end = p.constant([2**63 - 1 if kind == "end" else -(2**63) + 1])
    else:
        size = p.size(name, at)
        if kind == "half":
            size = p.node("Div", size, p.constant(2))
        if kind == "less":
            size = p.node("Sub", size, p.constant(1))
        end = p.node("Unsqueeze", size, p.constant([0]))
    inputs = [name, start, end, p.constant([at])]
    if step != 1 or p.draw(st.booleans()):
        inputs.append(p.constant([step]))
    p.add(p.node("Slice", *inputs), [*axes[:at], f"d{p.count}", *axes[at + 1 :]])


def squeeze(p):
    name, axes = p.choose()
    at = p.draw(st.integers(0, len(axes)))
    longer = p.node("Unsqueeze", name, p.constant([at]))
    if p.draw(st.booleans()):
        p.add(p.node("Squeeze", longer, p.constant([at])), axes)
    else:
        p.add(longer, [*axes[:at], 1, *axes[at:]])


def expand(p):
    name, axes = p.choose()
    target = p.list_of([p.draw(st.sampled_from([1, 2])), *p.sizes(name, axes)])
    if p.draw(st.booleans()):  # TorchScript's form of -1 in expand
        ones = p.node("ConstantOfShape", p.node("Shape", target), value=onnx.numpy_helper.from_array(np.array([1])))
        target = p.node("Where", p.node("Equal", target, p.constant(-1)), ones, target)
    p.add(p.node("Expand", name, target), [f"d{p.count}", *axes])


def arithmetic(p):
    name, axes = p.choose()
    kind = p.draw(st.sampled_from(["zeros", "number", "twice", "relu", "cast", "filled"]))
    if kind == "zeros":
        number = p.draw(st.sampled_from([0.0, 1.0]))
        p.add(p.node("Add" if number == 0 else "Mul", name, p.constant([number], np.float32)), axes)
    elif kind == "number":
        p.add(p.node("Mul", name, p.constant(p.draw(st.sampled_from([1.0, 2.0])), np.float32)), axes)
    elif kind == "twice":
        p.add(p.node("Add", name, p.node("Identity", name)), axes)
    elif kind == "relu":
        p.add(p.node("Relu", name), axes)
    elif kind == "cast":
        p.add(p.node("Cast", name, to=TensorProto.FLOAT), axes)
    else:
        value = onnx.numpy_helper.from_array(np.array([0.5], np.float32))
        p.add(p.node("Add", name, p.node("ConstantOfShape", p.node("Shape", name), value=value)), axes)


def count(p):
    """A table of places along an axis, as position embeddings and masks are made."""
    name, axes = p.choose()
    if not axes:
        return
    at = p.draw(st.integers(0, len(axes) - 1))
    places = p.node("Range", p.constant(0), p.size(name, at), p.constant(1))
    shaped = p.node("Reshape", places, p.constant([-1 if i == at else 1 for i in range(len(axes))]))
    p.add(p.node("Add", name, p.node("Cast", shaped, to=TensorProto.FLOAT)), axes)


def write(p):
    """x[:, start:] = y, as exporters write it: all places, one by one."""
    name, axes = p.choose(rank=2) or (None, None)
    if name is None:
        return
    start = p.draw(st.sampled_from([0, 0, 1]))
    part = p.node("Relu", p.node("Slice", name, p.constant([start]), p.constant([2**63 - 1]), p.constant([1])))
    rows = p.node("Range", p.constant(0), p.size(part, 0), p.constant(1))
    columns = p.node("Range", p.constant(start), p.size(name, 1), p.constant(1))
    box = p.node("Shape", part)
    rows = p.node("Expand", p.node("Reshape", rows, p.constant([-1, 1])), box)
    columns = p.node("Expand", columns, box)
    places = p.node("Concat", *(p.node("Unsqueeze", v, p.constant([-1])) for v in (rows, columns)), axis=-1)
    p.add(p.node("ScatterND", name, places, part), axes)


def take(p):
    name, axes = p.choose()
    if not axes or not isinstance(axes[0], int):
        return
    taken = p.node("Gather", name, p.constant(p.draw(st.integers(-axes[0], axes[0] - 1))), axis=0)
    if p.draw(st.booleans()):
        p.add(p.node("Unsqueeze", taken, p.constant([0])), [1, *axes[1:]])
    else:
        p.add(taken, axes[1:])


def join(p):
    name, axes = p.choose()
    if axes:
        at = p.draw(st.integers(0, len(axes) - 1))
        p.add(p.node("Concat", name, name, axis=at), [*axes[:at], f"d{p.count}", *axes[at + 1 :]])


def pad(p):
    name, axes = p.choose()
    if axes:
        size = p.size(name, 0)
        rest = p.node("Mod", p.node("Sub", p.constant(4), p.node("Mod", size, p.constant(4))), p.constant(4))
        pads = p.list_of([0] * len(axes) + [rest] + [0] * (len(axes) - 1))
        p.add(p.node("Pad", name, pads), [f"d{p.count}", *axes[1:]])


def pad_by_fractions(p):
    """The padding of "same" convolutions, of an axis that may be fixed, in floating point as TorchScript writes it."""
    name, axes = p.choose()
    if not axes:
        return
    at = p.draw(st.integers(0, len(axes) - 1))
    dtype = p.draw(st.sampled_from([TensorProto.FLOAT, TensorProto.DOUBLE]))
    array = np.float32 if dtype == TensorProto.FLOAT else np.float64
    size = p.node("Cast", p.size(name, at), to=dtype)
    stride = p.constant(p.draw(st.sampled_from([2.0, 3.0, 0.7])), array)
    steps = p.node(p.draw(st.sampled_from(["Ceil", "Floor"])), p.node("Div", size, stride))
    missing = p.node("Sub", p.node("Add", p.node("Mul", steps, stride), p.constant(1.0, array)), size)
    least, most = p.constant(0.0, array), p.constant(p.draw(st.sampled_from([1.0, 5.0])), array)
    kind = p.draw(st.sampled_from(["clip", "clip least", "clip most", "max", "where"]))
    if kind == "max":
        amount = p.node("Min", p.node("Max", missing, least), most)
    elif kind == "where":
        test = p.node(p.draw(st.sampled_from(["Greater", "GreaterOrEqual"])), missing, least)
        amount = p.node("Where", test, p.node("Min", missing, most), least)
    elif kind == "clip":
        amount = p.node("Clip", missing, least, most)
    else:
        amount = p.node("Clip", missing, least) if kind == "clip least" else p.node("Clip", missing, "", most)
    half = p.node("Floor", p.node("Div", p.node("Sqrt", p.node("Mul", amount, amount)), p.constant(2.0, array)))
    ends = [
        p.node("Unsqueeze", p.node("Sub", amount, half), p.constant([0])),
        p.node("Unsqueeze", half, p.constant([0])),
    ]
    two = p.node("Cast", p.node("Concat", *ends, axis=0), to=TensorProto.INT64)
    two = p.node("Clip", two, p.constant(0)) if p.draw(st.booleans()) else two
    begin, end = (p.node("Gather", two, p.constant([place]), axis=0) for place in (0, 1))
    fill = [p.constant([0] * at)] if at else []
    rest = [p.constant([0] * (len(axes) - 1 - at))] if at + 1 < len(axes) else []
    p.add(p.node("Pad", name, p.node("Concat", *fill, begin, *rest, *fill, end, *rest, axis=0)), _grown(p, axes, at))


def _grown(p, axes, at):
    return [*axes[:at], f"d{p.count}", *axes[at + 1 :]]


STEPS = [reshape, reshape, transpose, cut, squeeze, expand, arithmetic, count, write, take, join, pad, pad_by_fractions]


@st.composite
def programs(draw, most=9):
    """A model of two dynamic axes, n and m, and the sizes to run it at."""
    program = Program(draw, draw(st.sampled_from([13, 17, 20])))
    for _ in range(draw(st.integers(1, most))):
        draw(st.sampled_from(STEPS))(program)
    if not program.nodes:
        arithmetic(program)
    sizes = [pair for pair in SIZES if not program.odd_at_zero or 0 not in pair.values()]
    return program.model(), sizes


def feeds(sizes, seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"x": (sizes["n"], 4, sizes["m"]), "y": (sizes["n"], 6)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def session(proto):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(opened, sizes):
    """The outputs; None if onnxruntime refuses these sizes."""
    try:
        return opened.run(None, feeds(sizes))
    except Exception:  # onnxruntime raises errors of several kinds at sizes that the program cannot have
        return None
