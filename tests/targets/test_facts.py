"""The facts that conditions are about, read from a graph."""

import itertools

import onnx_ir as ir
import pytest

from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.graph.shapes import infer_model


def facts(text, index=0, opset=18):
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    return node_facts(model.graph[index], opset)


@pytest.mark.parametrize(
    ("pads", "name"), [("1,0,0,0", "starts"), ("0,1,0,1", "mixed"), ("1,1,1,1", 1), ("0,0,2,1", "ends")]
)
def test_pads(pads, name):
    found = facts(f"g (float[1,3,9,9] x) => (float[1,3,H,W] y){{ y = MaxPool<kernel_shape=[3,3], pads=[{pads}]>(x) }}")
    assert found["pads"] == name


@pytest.mark.parametrize(("places", "name"), [("0, 2", "other"), ("0, -2", "negative")])
def test_places_from_the_end(places, name):
    text = (
        "g (float[4,5] x, float[2,5] u) => (float[4,5] y) <int64[2,1] i = {PLACES}> { y = ScatterND(x, i, u) }".replace(
            "PLACES", places
        )
    )
    assert facts(text)["index"] == name


@pytest.mark.parametrize(("joined", "name", "first"), [("x, x", "none", "computed"), ("c, x", "some", "constant")])
def test_constants_that_are_joined(joined, name, first):
    found = facts(f"g (float[2] x) => (float[4] y) <float[2] c = {{1, 2}}> {{ y = Concat<axis=0>({joined}) }}")
    assert (found["constants"], found["input.0"]) == (name, first)


def test_attributes_and_defaults():
    found = facts(
        "g (float[1,3,9,9] x) => (float[1,3,4,4] y)"
        "{ y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[0,0,1,0]>(x) }"
    )
    assert (found["kernel_shape"], found["strides"], found["pads"]) == (3, 2, "ends")
    assert (found["ceil_mode"], found["auto_pad"], found["version"]) == (0, "NOTSET", 12)
    assert (found["rank"], found["type"], found["inputs"], found["outputs"]) == (4, "float", 1, "0")


def test_kinds_of_inputs():
    found = facts("g (float[2] x, float low) => (float[2] y) <float high = {6.0}> { y = Clip(x, low, high) }")
    assert (found["input.1"], found["input.2"]) == ("computed", "constant")
    assert facts("g (float[2] x) => (float[2] y) { y = Clip(x) }")["input.2"] == "absent"


def test_inputs_of_another_version_are_absent():
    """At opset 17 ReduceMax has its axes as an attribute: no row about a computed second input is about it."""
    text = "g (float[2,3] x) => (float[2] y) { y = ReduceMax<axes=[1], keepdims=0>(x) }"
    assert facts(text, opset=17)["input.1"] == "absent"
    assert "input.2" not in facts(text, opset=17)


@pytest.mark.parametrize(("written", "name"), [("<upper=1>", "yes"), ("", "no")])
def test_whether_an_attribute_is_written(written, name):
    found = facts(f"g (float[2,3] x) => (float[2,3] y) {{ y = Trilu{written}(x) }}")
    assert (found["upper"], found["upper.written"]) == (1, name)


@pytest.mark.parametrize(("size", "name"), [("5", "fixed"), ("n", "dynamic")])
def test_whether_sizes_are_known(size, name):
    assert facts(f"g (float[2,{size}] x) => (float[2,{size}] y) {{ y = EyeLike(x) }}")["sizes"] == name


@pytest.mark.parametrize(
    ("a", "b", "shapes"),
    [
        ("1,3", "1,3", "equal"),
        ("n,3", "n,3", "equal"),
        ("1,3", "3", "broadcast"),
        ("n,1", "n,3", "broadcast"),
        ("n,1", "1,3", "mutual"),
        ("2,1,4", "3,1", "mutual"),
    ],
)
def test_shapes(a, b, shapes):
    assert facts(f"g (float[{a}] x, float[{b}] z) => (float[n,m] y) {{ y = Add(x, z) }}")["shapes"] == shapes


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("h = Conv(x, w)", "yes"),
        ("c = Conv(x, w) r = Relu(c) h = Add(x, r)", "yes"),
        ("c = Conv(x, w) h = Transpose<perm = [0, 2, 3, 1]>(c)", "no"),
        ("h = Relu(x)", "no"),
    ],
)
def test_image(before, name):
    text = f"g (float[1,2,4,4] x, float[2,2,1,1] w) => (float[1,2,4,4] y) {{ {before} y = Neg(h) }}"
    assert facts(text, -1)["image"] == name


@pytest.mark.parametrize(("scale", "name"), [("2.0", "whole"), ("1.5", "exact"), ("1.3", "rounded")])
def test_scales(scale, name):
    text = f"g (float[1,1,4,4] x) => (float[1,1,h,w] y) <float[4] s = {{1.0, 1.0, {scale}, {scale}}}>"
    assert facts(f'{text} {{ y = Resize(x, "", s) }}')["scales"] == name


@pytest.mark.parametrize(("size", "window"), [(9, "inside"), (10, "beyond"), (8, "padding")])
def test_last_window(size, window):
    kernel, stride, pad = (2, 3, 1) if window == "padding" else (3, 2, 0)
    pool = f"MaxPool<kernel_shape=[{kernel}], strides=[{stride}], pads=[{pad},{pad}], ceil_mode=1>"
    assert facts(f"g (float[1,1,{size}] x) => (float[1,1,n] y) {{ y = {pool}(x) }}")["last_window"] == window


def last_window(size, kernel, stride, dilation, pads):
    """The fact of a pool along one axis."""
    attributes = f"kernel_shape=[{kernel}], strides=[{stride}], dilations=[{dilation}], pads={list(pads)}, ceil_mode=1"
    return facts(f"g (float[1,1,{size}] x) => (float[1,1,n] y) {{ y = MaxPool<{attributes}>(x) }}").get("last_window")


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("pads", [(0, 0), (0, 1), (1, 1), (1, 0), (2, 2)])
def test_the_last_window_at_any_size(dilation, pads):
    """What is said of an axis that varies is the worst of its sizes; where that is padding, nothing is said."""
    for kernel, stride in itertools.product((1, 2, 3, 5), (1, 2, 3)):
        sizes = range(dilation * (kernel - 1) + 1, 24)
        found = {last_window(size, kernel, stride, dilation, pads) for size in sizes}
        worst = min(found, key=("padding", "beyond", "inside").index)
        assert last_window("n", kernel, stride, dilation, pads) == (None if worst == "padding" else worst)


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ("p = Pad(x, ends)", "Pad"),
        ("p = Pad(x, ends, zero)", "Pad"),
        ("p = Pad(x, ends, one)", "other"),
        ('p = Pad<mode = "edge">(x, ends)', "other"),
        ("p = Pad(x, ends) again = Neg(p)", "other"),
        ("p = Neg(x)", "other"),
    ],
)
def test_after_pad(nodes, name):
    held = "<int64[8] ends = {0, 0, 1, 1, 0, 0, 1, 1}, float zero = {0.0}, float one = {1.0}>"
    text = f"g (float[1,1,4,4] x, float[1,1,3,3] w) => (float[1,1,n,m] y) {held} {{ {nodes} y = Conv(p, w) }}"
    assert facts(text, -1)["after"] == name


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ("h = Identity(r)", "Reshape"),
        ("t = Transpose(r) h = Relu(t)", "Reshape"),
        ("h = Concat<axis = 1>(r, r)", "Reshape"),
        ("h = MatMul(r, r)", "other"),
        ("h = Neg(x)", "other"),
    ],
)
def test_selection_of_a_view(nodes, name):
    held = "<int64[2] s = {2, 2}, int64[1] zero = {0}, int64[1] one = {1}>"
    text = f"g (float[4] x) => (float[n, m] y) {held} {{ r = Reshape(x, s) {nodes} y = Slice(h, zero, one) }}"
    assert facts(text, -1)["after"] == name


@pytest.mark.parametrize(("size", "name"), [("9,3", "equal"), ("1,3", "equal"), ("2,2", "smaller")])
def test_index(size, name):
    text = f"g (float[2,3] x, int64[{size}] i) => (float[{size}] y) {{ y = GatherElements<axis = 0>(x, i) }}"
    assert facts(text)["index"] == name


@pytest.mark.parametrize(
    ("axis", "scale", "name"), [(-1, "4", "normalized"), (1, "3,4", "normalized"), (1, "4", "broadcast")]
)
def test_scale(axis, scale, name):
    text = f"g (float[2,3,4] x, float[{scale}] s) => (float[2,3,4] y)"
    assert facts(f"{text} {{ y = LayerNormalization<axis = {axis}>(x, s) }}")["scale"] == name


@pytest.mark.parametrize(("slope", "name"), [("1", "one"), ("3,1,1", "channel"), ("5", "other")])
def test_slope(slope, name):
    text = f"g (float[1,3,4,5] x, float[{slope}] s) => (float[1,3,4,5] y) {{ y = PRelu(x, s) }}"
    assert facts(text)["slope"] == name


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("h = Sigmoid(c)", "Sigmoid"),
        ("s = Sigmoid(c) h = Mul(c, s)", "Mul"),
        ("h = Identity(c)", "other"),
        ("h = Tanh(x)", "other"),
    ],
)
def test_after(before, name):
    text = (
        "g (float[1,1,3,3] x) => (float[1,1,3,3] y) <float[1,1,1,1] w = {2.0}, float[1] s1 = {1.0}, float[1] b = {0.0}>"
        f"{{ c = Conv(x, w) {before} y = BatchNormalization(h, s1, b, b, s1) }}"
    )
    assert facts(text, text.count(" = ") - 4)["after"] == name


@pytest.mark.parametrize(("axes", "name"), [("1", 1), ("-1", -1), ("0,2", "rising"), ("2,0", "mixed")])
def test_axes_that_are_an_input(axes, name):
    count = len(axes.split(","))
    text = f"g (float[2,3,4] x) => (y) <int64[{count}] a = {{{axes}}}> {{ y = ReduceMean(x, a) }}"
    assert facts(text)["axes"] == name
    fed = "g (float[2,3,4] x, int64[1] a) => (y) { y = ReduceMean(x, a) }"
    assert facts(fed)["axes"] == "computed"
    assert facts(fed.replace("int64[1]", "int64[0]"))["axes"] == "absent"


@pytest.mark.parametrize(("exponent", "name"), [("2.0", 2), ("0.5", 0.5), ("2.0, 3.0", "various"), ("", "computed")])
def test_exponent(exponent, name):
    weight = f"<float[{exponent.count(',') + 1}] e = {{{exponent}}}>" if exponent else ""
    given = "" if exponent else ", float[2] e"
    assert facts(f"g (float[2] x{given}) => (float[2] y) {weight} {{ y = Pow(x, e) }}")["exponent"] == name


@pytest.mark.parametrize(("kind", "name"), [("float", "equal"), ("int64", "mixed")])
def test_types_of_a_power(kind, name):
    assert facts(f"g (float[2] x, {kind}[2] e) => (float[2] y) {{ y = Pow(x, e) }}")["types"] == name


@pytest.mark.parametrize("y", ["float[2,6,1] y", "y"])
def test_rank_of_a_result(y):
    text = f"g (float[3,4] x) => ({y}) <int64[3] s = {{2, 6, 1}}> {{ y = Reshape(x, s) }}"
    assert facts(text)["rank.out"] == 3


@pytest.mark.parametrize(("heads", "grouped"), [(3, "no"), (1, "yes")])
def test_grouped(heads, grouped):
    k = f"float[1,{heads},4,8]"
    text = f"g (float[1,3,4,8] q, {k} k, {k} v) => (float[1,3,4,8] y) {{ y = Attention(q, k, v) }}"
    assert facts(text, opset=23)["grouped"] == grouped
    text = f"g (float[1,4,24] q, float[1,4,{8 * heads}] k, float[1,4,{8 * heads}] v) => (float[1,4,24] y) "
    text += f"{{ y = Attention<q_num_heads=3, kv_num_heads={heads}>(q, k, v) }}"
    assert facts(text, opset=23)["grouped"] == grouped


def test_gates():
    text = "g (float[2] x, float[2] z) => (float[2] y) { s = HardSigmoid(x) y = Mul(@, s) }"
    assert facts(text.replace("@", "z"))["gates"] == "another"
    assert facts(text.replace("@", "x"))["gates"] == "no"


def test_reused():
    text = "g (float[2] x) => (float[2] y, float[2] z) { h = Neg(x) y = Exp(h) z = @ }"
    assert facts(text.replace("@", "Abs(h)"), 1)["reused"] == "yes"
    assert facts(text.replace("@", "Abs(x)"), 1)["reused"] == "no"


def test_unknown_shapes_are_left_out():
    found = facts("g (float[2] x) => (y) { h = Foo(x) y = Neg(h) }", 1)
    assert "rank" not in found
    assert "type" not in found


@pytest.mark.parametrize(("steps", "name"), [("1", "1"), ("2", "more"), ("-1", "negative")])
def test_step(steps, name):
    text = "g (float[9] x) => (float[n] y) <int64[1] a = {0}, int64[1] b = {9}, int64[1] c = {0}, int64[1] d = {@}>"
    assert facts(f"{text} {{ y = Slice(x, a, b, c, d) }}".replace("@", steps))["step"] == name


def test_attributes_of_other_versions_are_absent():
    text = "g (float[1,4] x) => (float[1,2] y, float[1,2] z) { y, z = Split<num_outputs=2, axis=1>(x) }"
    assert facts(text)["num_outputs"] == 2
    assert facts(text.replace("num_outputs=2, ", ""), opset=13)["num_outputs"] == "absent"


@pytest.mark.parametrize(("axes", "name"), [("0,2", "rising"), ("2,0", "mixed"), ("2", 2)])
def test_axes(axes, name):
    assert facts(f"g (float[2,3,4] x) => (y) {{ y = ReduceL1<axes=[{axes}]>(x) }}", opset=17)["axes"] == name


def test_outputs_that_are_used():
    text = "g (float[1,1,4] x) => (float[1,1,2] y, int64[1,1,2] i) { y, i = MaxPool<kernel_shape=[3]>(x) }"
    assert facts(text)["outputs"] == "0, 1"
    assert facts(text.replace("float[1,1,2] y, ", ""))["outputs"] == "1"


@pytest.mark.parametrize(
    ("x", "y", "name"), [("2", "0", "output"), ("0", "1", "input"), ("2", "1", "no"), ("n", "m", "no")]
)
def test_empty(x, y, name):
    assert facts(f"g (float[{x}] x) => (float[{y}] y) {{ y = ReduceSum(x) }}")["empty"] == name


def test_axis_of_a_dft():
    constant = 'g (float[1,8,1] x) => (y) <int64 axis = {1}> { y = DFT(x, "", axis) }'
    assert facts(constant, opset=20)["axis"] == 1
    assert facts('g (float[1,8,1] x, int64 axis) => (y) { y = DFT(x, "", axis) }', opset=20)["axis"] == "absent"


def test_axes_of_an_image():
    text = (
        "g (float[1,4,9] x) => (y) <int64[2] image = {5, 5}, int64[2] block = {2, 2}> { y = Col2Im(x, image, block) }"
    )
    assert facts(text)["axes"] == 2


def test_mask():
    text = "g (float[1,2,4,8] q, bool[4,4] m) => (y) { y = Attention(q, q, q@) }"
    assert facts(text.replace("@", ", m"), opset=23)["mask"] == "bool"
    assert facts(text.replace("@", ""), opset=23)["mask"] == "absent"


@pytest.mark.parametrize(
    ("pads", "name"),
    [
        ("1, 2, 1, 1, 1, 1, 1, 1", "channels"),
        ("0, 0, 1, 2, 0, 0, 1, 1", "image"),
        ("0, 0, 0, 0, 0, 0, 1, 1", "sides"),
        ("0, 0, 0, 0, 0, 0, 0, 0", "nothing"),
    ],
)
def test_padded(pads, name):
    text = f"g (float[1,3,4,4] x) => (float[a,b,c,d] y) <int64[8] p = {{{pads}}}>"
    assert facts(f"{text} {{ y = Pad(x, p) }}")["padded"] == name


def test_padded_of_named_axes():
    text = "g (float[1,3,4,4] x) => (float[a,b,c,d] y) <int64[4] p = {1, 1, 1, 1}, int64[2] axes = {AXES}>"
    node = '{ y = Pad(x, p, "", axes) }'
    found = [facts(f"{text.replace('AXES', axes)} {node}")["padded"] for axes in ("2, -1", "1, 2")]
    assert found == ["image", "channels"]


@pytest.mark.parametrize(
    ("divided", "by", "name"),
    [("x", "c", "norm"), ("x", "e", "repeated norm"), ("o", "e", "other"), ("x", "o", "other")],
)
def test_divisor(divided, by, name):
    text = "g (float[1,3,4] x, float[1,3,4] o) => (float[1,3,4] y) <float least = {0.1}, int64[3] s = {1, 3, 4}>"
    nodes = f"n = ReduceL2<axes = [2]>(x) c = Clip(n, least) e = Expand(c, s) y = Div({divided}, {by})"
    assert facts(f"{text} {{ {nodes} }}", 3, opset=17)["divisor"] == name


@pytest.mark.parametrize(("queries", "name"), [(1, "one"), (5, "more")])
def test_queries(queries, name):
    text = f"g (float[2,{queries},4] q, float[2,4,6] k, float[2,6,4] v, float b) => (float[2,{queries},4] y)"
    head = "m = MatMul(q, k) s = Mul(m, b) p = Softmax(s)"
    typed = f"{text} <float[2,{queries},6] m, float[2,{queries},6] s>"
    assert facts(f"{typed} {{ {head} y = MatMul(p, v) }}", 2)["queries"] == name
    assert facts(f"{typed} {{ {head} y = Add(p, b) }}", 2)["queries"] == "none"


@pytest.mark.parametrize(("mode", "name"), [("linear", "unused"), ("nearest", "floor")])
def test_nearest_mode(mode, name):
    text = "g (float[1,1,4,4] x) => (float[1,1,h,w] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}>"
    node = f'y = Resize<mode = "{mode}", nearest_mode = "floor">(x, "", s)'
    assert facts(f"{text} {{ {node} }}")["nearest_mode"] == name


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ("a = Gemm(x, w) b = MatMul(x, w)", "twin products"),
        ("a = MatMul(x, w) c = MatMul(x, w) b = Mul(c, two)", "twin products"),
        ("a = MatMul(x, w) c = MatMul(x, w) b = Mul(c, z)", "other"),  # not scaled by a constant
        ("a = MatMul(x, w) c = MatMul(x, w) b = Relu(c)", "other"),
        ("a = MatMul(x, w) c = Neg(x) b = MatMul(c, w)", "other"),
        ("a = MatMul(x, w) c = BatchNormalization(x, v, v, v, v) b = MatMul(c, w)", "twin products"),
        ("a = MatMul(x, w) b = Constant<value_float = 1.0>()", "other"),
        ("a = MatMul(x, w) b = MatMul(x, w) again = Neg(b)", "other"),  # whose result is needed besides
    ],
)
def test_terms(nodes, name):
    weights = "<float[2,2] w = {1.0, 2.0, 3.0, 4.0}, float two = {2.0}, float[2] v = {1, 2}>"
    text = f"g (float[1,2] x, float[1,2] z) => (float[1,2] y) {weights} {{ {nodes} y = Add(a, b) }}"
    assert facts(text, -1)["terms"] == name


@pytest.mark.parametrize(
    ("nodes", "index", "batch"),
    [
        ("c = Conv(x, w)  y = Reshape(c, s)", 1, "one"),
        ("c = Conv(x, w)  r = Relu(c)  y = Reshape(r, s)", 2, "one"),
        ("y = Reshape(x, s)", 0, "other"),
        ("c = Conv(x, w)  y = Reshape(c, free)", 1, "other"),
        ("c = Conv(x, w)  r = Reshape(c, s)  y = Transpose<perm=[0,2,1,3,4]>(r)", 2, "one"),
        ("c = Conv(x, w)  r = Reshape(c, s)  y = Transpose<perm=[2,0,1,3,4]>(r)", 2, "other"),
        ("c = Conv(x, w)  t = Transpose<perm=[1,0,2,3]>(c)  y = Reshape(t, s)", 2, "other"),
        ("y = Transpose<perm=[0,2,1,3]>(x)", 0, "few"),
    ],
)
def test_batch(nodes, index, batch):
    text = "g (float[1,4,3,3] x) => (y) <float[4,4,1,1] w = {1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1},"
    text += f" int64[5] s = {{1,2,2,3,3}}, int64[5] free = {{-1,2,2,3,3}}> {{ {nodes} }}"
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')
    infer_model(model)
    assert node_facts(model.graph[index], 17)["batch"] == batch


@pytest.mark.parametrize(
    ("shape", "scale", "epsilon", "groups"),
    [
        ("0, 2, -1", "1, 1", "<epsilon=0.001>", "yes"),
        ("1, 2, 18", "1, 1", "<epsilon=0.001>", "no"),
        ("0, 2, -1", "1, 2", "<epsilon=0.001>", "no"),
        ("0, 2, -1", "1, 1", "", "no"),
    ],
)
def test_groups(shape, scale, epsilon, groups):
    text = (
        f"g (float[1,4,3,3] x) => (y) <int64[3] s = {{{shape}}}, int64[4] back = {{1,4,3,3}}, float[2] a = {{{scale}}},"
    )
    text += f" float[2] b = {{0, 0}}> {{ h = Reshape(x, s)  n = InstanceNormalization{epsilon}(h, a, b)"
    assert facts(f"{text}  y = Reshape(n, back) }}", 1)["groups"] == groups
    assert facts(f"{text}  y = Relu(n) }}", 1)["groups"] == "no"


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("0, 0, -1, 2", "0, 0, 0, -1", "regrouped"),
        ("0, 3, -1, 2", "0, 0, -1", "regrouped"),
        ("0, 0, -1, 2", "0, 0, -1", "given"),
        ("0, 0, -1, 2", "-1, 4", "given"),
    ],
)
def test_what_a_reshape_copies(first, second, name):
    text = f"""g (float[n, 3, 8] x) => (float[N] y)
    <int64[{first.count(",") + 1}] s = {{{first}}}, int64[{second.count(",") + 1}] t = {{{second}}}>
    {{ u = Reshape(x, s)  y = Reshape(u, t) }}"""
    assert (facts(text, 0)["copies"], facts(text, 1)["copies"]) == ("given", name)


@pytest.mark.parametrize(
    ("nodes", "kind", "name"),
    [
        ("y = Shape(x)", "int64[2]", "output"),
        ("s = Shape(x)  y = Concat<axis=0>(s, one)", "int64[3]", "output"),
        ("s = Shape(x)  y = Cast<to=1>(s)", "float[2]", "inner"),
        ("s = Shape(x)  y = Reshape(x, s)", "float[n, 3]", "inner"),
        ("s = Shape(x)  t = Add(s, one)  y = Reshape(x, t)", "float[n, 3]", "inner"),
    ],
)
def test_whether_the_model_yields_its_sizes(nodes, kind, name):
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g (float[n, 3] x) => ({kind} y)
    <int64[1] one = {{1}}> {{ {nodes} }}"""
    model = ir.from_onnx_text(text)
    infer_model(model)
    assert node_facts(model.graph[0], 18)["result"] == name


@pytest.mark.parametrize(
    ("axes", "states", "layout", "sizes"),
    [("t, 2", "", 0, "fixed"), ("4, b", ", , , h", 0, "dynamic"), ("4, t", "", 1, "fixed"), ("b, 4", "", 1, "dynamic")],
)
def test_state_and_batch_of_a_recurrent_operator(axes, states, layout, sizes):
    found = facts(f"""g (float[{axes}, 3] x, float[1, 5, 3] w, float[1, 5, 5] r, float[1, b, 5] h)
    => (float[k, l, m, n] y) {{ y = RNN<hidden_size = 5, layout = {layout}>(x, w, r{states}) }}""")
    assert (found["sizes"], found["state"]) == (sizes, "given" if states else "absent")


STATES = """g (float[4, 2, 3] x, float[COUNT, 5, 3] w, float[COUNT, 5, 5] r, float[COUNT, 2, 5] h) => (float[4, 2, m] y)
<int64[1] one = {1}, int64[3] joined = {0, 0, -1}, float[COUNT, 2, 5] z = {ZEROS}> { BODY }"""


@pytest.mark.parametrize(
    ("body", "state", "frame"),
    [
        ("a, b = RNN<hidden_size = 5>(x, w, r, , , h)  y = Squeeze(a, one)", "given", "torch's"),
        ("a, b = RNN<hidden_size = 5>(x, w, r, , , z)  y = Squeeze(b, one)", "zeros", "other"),
        ("a = RNN<hidden_size = 5>(x, w, r)  c = Relu(a)  y = Squeeze(c, one)", "absent", "other"),
        (
            "a = RNN<hidden_size = 5, direction = 'bidirectional'>(x, w, r, , , z)"
            "  t = Transpose<perm = [0, 2, 1, 3]>(a)  y = Reshape(t, joined)",
            "zeros",
            "torch's",
        ),
        (
            "a = RNN<hidden_size = 5, direction = 'bidirectional'>(x, w, r, , , z)"
            "  t = Transpose<perm = [2, 0, 1, 3]>(a)  y = Reshape(t, joined)",
            "zeros",
            "other",
        ),
    ],
)
def test_what_stands_around_a_recurrent_operator(body, state, frame):
    count = 2 if "bidirectional" in body else 1
    text = STATES.replace("ZEROS", ", ".join(["0"] * 10 * count)).replace("COUNT", str(count))
    found = facts(text.replace("BODY", body.replace("'", '"')))
    assert (found["state"], found["frame"]) == (state, frame)


@pytest.mark.parametrize(
    ("data", "index", "name"),
    [("3,5", "3,40", "larger"), ("n,5", "n,5", "other"), ("3,5", "3,t", "larger"), ("3,t", "3,5", "other")],
)
def test_index_of_scatter_elements(data, index, name):
    text = f"g (float[{data}] x, int64[{index}] i, float[{index}] u) => (float[{data}] y)"
    assert facts(f"{text} {{ y = ScatterElements<axis = 1>(x, i, u) }}")["index"] == name


@pytest.mark.parametrize("made", ["ConstantOfShape(sizes)", "Expand(one, sizes)"])
def test_index_of_scatter_elements_into_what_is_filled(made):
    text = f"""g (int64[n,9] i, float[n,9] u) => (float[n,5] y)
    <int64[1] zero = {{0}}, int64[1] five = {{5}}, float one = {{1}}> {{
        shape = Shape(i) n = Gather(shape, zero) sizes = Concat<axis = 0>(n, five) x = {made}
        y = ScatterElements<axis = 1>(x, i, u)
    }}"""
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}')
    infer_model(model)
    for node in list(model.graph)[2:4]:
        if node.op_type != "Concat":
            node.outputs[0].shape = ir.Shape([None, None])
    assert node_facts(model.graph[4], 18)["index"] == "larger"


IF = "g (float[2,t] x, bool c) => (float[2,t] y) {{ y = If(c) <then_branch = a () => ({u}) {{ u = Exp(x) }}, {rest}>}}"


@pytest.mark.parametrize(
    ("branch", "name"),
    [
        ("v = Neg(x)", "other"),
        ("v = Add(x, x)", "arithmetic"),
        ("h = MatMul(x, x) v = Neg(h)", "arithmetic"),
        ("k = Constant<value = float {2.0}>() v = Pow(x, k)", "other"),
        ("v = Pow(x, x)", "arithmetic"),
    ],
)
def test_branches(branch, name):
    rest = f"else_branch = b () => (float[2,t] v) {{ {branch} }}"
    assert facts(IF.format(u="float[2,t] u", rest=rest))["branches"] == name


@pytest.mark.parametrize(
    ("sizes", "before", "after", "found"),
    [
        ("2,t", "h = Exp(x)", "y = Relu(z)", ("vary", "none")),
        ("2,3", "h = Exp(x)", "y = Softmax(z)", ("known", "compute")),
        ("2,t", "h = Softmax(x)", "y = Add(z, x)", ("vary", "none")),
        ("2,t", "h = Exp(x)", "y = Softmax(z)", ("vary", "compute")),
        ("2,t", "h = Exp(x)", "s = Softmax(x) y = Mul(s, z)", ("vary", "compute")),
    ],
)
def test_what_runs_after_branches(sizes, before, after, found):
    branches = ", ".join(
        f"{n} = {n}() => (float[{sizes}] {n}r) {{ {n}r = Neg(h) }}" for n in ("then_branch", "else_branch")
    )
    text = f"g (float[{sizes}] x, bool c) => (float[{sizes}] y) {{ {before} z = If(c) <{branches}> {after} }}"
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}')
    infer_model(model)
    facts = node_facts(next(node for node in model.graph if node.op_type == "If"), 18)
    assert (facts["result_sizes"], facts["later_nodes"]) == found


@pytest.mark.parametrize(("declared", "name"), [("float[a,b] u", "known"), ("float[] u", "unknown")])
def test_ranks_of_branches(declared, name):
    text = IF.format(u=declared, rest="else_branch = b () => (float[2,t] v) { v = Neg(x) }")
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}')
    if name == "unknown":
        model.graph[0].attributes["then_branch"].as_graph().outputs[0].shape = None
    assert node_facts(model.graph[0], 18)["ranks"] == name


@pytest.mark.parametrize(
    ("begins", "body", "condition", "carried"),
    [
        ("c", "so = Tanh(s) r = ReduceSum(so) on = Cast<to = 9>(r)", "computed", "read"),
        ("c", "so = Tanh(s) on = Identity(goes)", "computed", "unread"),
        ("c", "so = Tanh(s) yes = Constant<value = bool {1}>() on = Identity(yes)", "constant", "unread"),
        ("true", "so = Tanh(s) r = ReduceSum(so) on = Cast<to = 9>(r)", "constant", "read"),
    ],
)
def test_loops(begins, body, condition, carried):
    loop = f"Loop(n, {begins}, x) <body = b (int64 i, bool goes, float[2] s) => (bool on, float[2] so) {{ {body} }}>"
    found = facts(f"g (float[2] x, int64 n, bool c) => (float[2] y) <bool true = {{1}}> {{ y = {loop} }}")
    assert (found["condition"], found["carried"]) == (condition, carried)


TWO, ALL = "SequenceConstruct(x, x)", "ConcatFromSequence<axis = 0>(s)"
OTHER = "else_branch = b () => ({kind} q) {{ q = {name}(x) }}"


@pytest.mark.parametrize(
    ("kind", "outside", "inside", "other", "last", "name"),
    [
        ("float[n]", "", f"s = {TWO} p = {ALL}", "Identity", "Identity(r)", "near"),
        ("float[n]", f"s = {TWO}", f"p = {ALL}", "Identity", "Identity(r)", "far"),
        ("seq(float)", "", f"p = {TWO}", "SequenceConstruct", ALL.replace("s)", "r)"), "far"),
    ],
)
def test_where_a_sequence_comes_from(kind, outside, inside, other, last, name):
    branches = f"then_branch = a () => ({kind} p) {{ {inside} }}, {OTHER.format(kind=kind, name=other)}"
    text = f"g (float[t] x, bool c) => (float[u] y) {{ {outside} r = If(c) <{branches}> y = {last} }}"
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}')
    (reader,) = (n for n in ir.traversal.RecursiveGraphIterator(model.graph) if n.op_type == "ConcatFromSequence")
    assert node_facts(reader, 18)["sequence"] == name


@pytest.mark.parametrize(("scale", "name"), [("1.7", "by inverse"), ("1.3", "by any way"), ("3.0", "by any way")])
@pytest.mark.parametrize("height", ["12", "h"])
def test_cells(height, scale, name):
    """Output 17 by 1.7 stands where cell 10 begins, which 17 * (1 / 1.7) misses in float32."""
    kind = 'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
    sizes = f"(float[1,3,{height},5] x) => (float[1,3,d,5] y) <float[4] s = {{1, 1, {scale}, 1}}>"
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 17]> g {sizes} {{ y = Resize<{kind}>(x, , s) }}')
    infer_model(model)
    assert node_facts(model.graph[0], 17)["cells"] == name
