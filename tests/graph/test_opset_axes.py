"""Lowering rules of reductions, Split, Squeeze, Pad, Resize, Shape and Reshape: the same numbers."""

import numpy as np

REDUCTIONS = ("L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def graph(inputs, outputs, body, **constants):
    """A graph whose int64 constants are initializers, or float ones where the first number is a float."""
    types = {name: "float" if isinstance(values[0], float) else "int64" for name, values in constants.items()}
    tables = (f"{types[n]}[{len(v)}] {n} = {{{', '.join(map(str, v))}}}" for n, v in constants.items())
    return f"({inputs}) => ({outputs}) <{', '.join(tables)}> {{{body}}}"


CASES = [
    *(
        {
            "id": f"Reduce{name}",
            "opset": 20,
            "graph": graph("float[2,N,5] x", "float[2,5] y", f"y = Reduce{name}<keepdims = 0>(x, axes)", axes=[1]),
            "eps": 2,
        }
        for name in REDUCTIONS
    ),
    {
        "id": "ReduceMean, all axes",
        "opset": 20,
        "graph": "(float[2,N] x) => (float[1,1] y) {y = ReduceMean(x)}",
        "eps": 2,
    },
    {
        "id": "ReduceMean, no axes",
        "opset": 20,
        "graph": "(float[2,N] x) => (float[2,N] y) {y = ReduceMean<noop_with_empty_axes = 1>(x)}",
    },
    *(
        {
            "id": f"Reduce{name}, no axes: what it does to each value stays",
            "opset": 20,
            "graph": f"(float[2,N] x) => (float[2,N] y) {{a = Mul(x, x) b = Sub(a, x) c = {before} "
            f"y = Reduce{name}<noop_with_empty_axes = 1>(c)}}",
            "eps": 2,
        }
        for name, before in (
            ("L1", "Neg(b)"),
            ("L2", "Neg(b)"),
            ("SumSquare", "Neg(b)"),
            ("LogSum", "Exp(b)"),
            ("LogSumExp", "Neg(b)"),
            ("Sum", "Neg(b)"),
        )
    ),
    {
        "id": "ReduceSum, axes from a Constant node",
        "opset": 20,
        "graph": """(int64[2,N,3] x) => (int64[2,1,1] y) {
            axes = Constant<value_ints = [-1, 1]>()
            y = ReduceSum(x, axes)}""",
    },
    {
        "id": "ReduceMax, bool",
        "opset": 20,
        "graph": graph("bool[2,N] x", "bool[2] y", "y = ReduceMax<keepdims = 0>(x, axes)", axes=[1]),
    },
    {
        "id": "Squeeze and Unsqueeze",
        "opset": 20,
        "graph": graph(
            "float[2,1,N] x", "float[1,2,N,1] y", "z = Squeeze(x, one) y = Unsqueeze(z, two)", one=[1], two=[0, -1]
        ),
    },
    {"id": "Squeeze, all", "opset": 20, "graph": "(float[2,1,3,1] x) => (float[2,3] y) {y = Squeeze(x)}"},
    {
        "id": "Split in equal parts",
        "opset": 20,
        "graph": "(float[N,6] x) => (float[N,3] y, float[N,3] z) {y, z = Split<axis = 1, num_outputs = 2>(x)}",
    },
    {
        "id": "Split in unequal parts",
        "opset": 20,
        "graph": """(float[N,5] x) => (float[N,2] a, float[N,2] b, float[N,1] c) {
            a, b, c = Split<axis = -1, num_outputs = 3>(x)}""",
    },
    {
        "id": "Split of a dynamic axis",
        "opset": 20,
        "graph": """(float[N,2] x) => (float[A,2] a, float[B,2] b, float[C,2] c) {
            a, b, c = Split<num_outputs = 3>(x)}""",
        "feeds": {"x": np.arange(14, dtype=np.float32).reshape(7, 2)},
    },
    {
        "id": "Split, sizes",
        "opset": 20,
        "graph": graph("float[N,5] x", "float[N,1] a, float[N,4] b", "a, b = Split<axis = 1>(x, sizes)", sizes=[1, 4]),
    },
    {
        "id": "Split, sizes given at run time",
        "opset": 20,
        "graph": "(float[N,5] x, int64[2] sizes) => (float[N,A] a, float[N,B] b) {a, b = Split<axis = 1>(x, sizes)}",
        "feeds": {"sizes": np.array([2, 3])},
    },
    {
        "id": "Pad of some axes",
        "opset": 20,
        "graph": graph(
            "float[2,3,N] x", "float[2,A,B] y", "y = Pad(x, pads, , axes)", pads=[1, 2, 0, -1], axes=[-2, 2]
        ),
    },
    {
        "id": "Pad of some axes, pads given at run time",
        "opset": 20,
        "graph": graph(
            "float[2,3,N] x, int64[2] pads", "float[2,A,N] y", 'y = Pad<mode = "reflect">(x, pads, , axes)', axes=[1]
        ),
        "feeds": {"pads": np.array([1, 2])},
    },
    {
        "id": "Pad, bool",
        "opset": 20,
        "graph": graph("bool[2,N] x", "bool[2,A] y", "v = Not(f) y = Pad(x, pads, v)", pads=[0, 1, 0, 2]).replace(
            "{v =", "{f = Constant<value = bool {0}>() v ="
        ),
    },
    {
        "id": "Resize, scales of some axes",
        "opset": 20,
        "graph": graph(
            "float[1,2,N,3] x",
            "float[1,2,A,B] y",
            'y = Resize<mode = "linear", axes = [2, 3], antialias = 0>(x, , scales)',
            scales=[2.0, 1.5],
        ),
    },
    {
        "id": "Resize, sizes of some axes in another order",
        "opset": 20,
        "graph": graph(
            "float[N,2,4,3] x",
            "float[N,2,7,5] y",
            """y = Resize<mode = "cubic", coordinate_transformation_mode = "align_corners", axes = [3, 2],
                keep_aspect_ratio_policy = "stretch">(x, , , sizes)""",
            sizes=[5, 7],
        ),
    },
    {
        "id": "Resize, sizes of all axes",
        "opset": 20,
        "graph": graph(
            "float[1,2,4,3] x",
            "float[1,2,7,5] y",
            'y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">'
            "(x, , , sizes)",
            sizes=[1, 2, 7, 5],
        ),
    },
    {"id": "Shape", "opset": 20, "graph": "(float[2,3,N] x) => (int64[3] y) {y = Shape(x)}"},
    {"id": "Shape, start", "opset": 20, "graph": "(float[2,3,N] x) => (int64[2] y) {y = Shape<start = -2>(x)}"},
    {
        "id": "Shape, start and end",
        "opset": 20,
        "graph": "(float[2,3,N] x) => (int64[1] y) {y = Shape<start = 1, end = -1>(x)}",
    },
    {
        "id": "Reshape, allowzero",
        "opset": 20,
        "graph": graph("float[2,3,N] x", "float[A,6] y", "y = Reshape<allowzero = 1>(x, to)", to=[-1, 6]),
    },
    {
        "id": "Reshape to a constant 0 under allowzero",
        "opset": 20,
        "graph": graph("float[0,3] x", "float[3,0] y", "y = Reshape<allowzero = 1>(x, to)", to=[3, 0]),
    },
    *(
        {
            "id": f"Reshape of {count} rows to the input {to} under allowzero",
            "opset": 20,
            "graph": f"(float[{count},3] x, int64[3] to) => (float[A,B,C] y) {{y = Reshape<allowzero = 1>(x, to)}}",
            "feeds": {"to": np.array(to)},
        }
        for count, to in ((0, [3, 4, 0]), (0, [0, 0, 7]), (4, [2, -1, 3]))
    ),
]


def test_same_numbers(oracle, case, opset):
    proto = oracle.parse(case["opset"], case["graph"])
    oracle.assert_same_numbers(proto, opset, eps=case.get("eps", 0), feeds=case.get("feeds", {}))


def test_constant_axes_leave_no_node_behind(oracle):
    constants = {"pads": [1, 2], "axes": [1], "one": [0]}
    body = "p = Pad(x, pads, , axes) y = Unsqueeze(p, one)"
    lowered = oracle.converted(oracle.parse(20, graph("float[2,3] x", "float[1,2,6] y", body, **constants)), 11)
    assert oracle.ops(lowered) == ["Pad", "Unsqueeze"]
    assert len(lowered.graph.initializer) == 1
