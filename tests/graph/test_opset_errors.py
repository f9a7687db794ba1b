"""What convert() cannot do: every obstacle in one error, with place, reason and remedy."""

import re

import onnx
import onnx_ir as ir
import pytest

from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.graph.opset.convert import convert

HIGHEST = max(row[2] for row in onnx.helper.VERSION_TABLE)

REFUSALS = [
    # graph, opset, converted to, the line of the error
    (
        "(float[1,1,5,4] x, float[1,6,7,2] g) => (float[1,1,6,7] y) {y = GridSample(x, g)}",
        20,
        15,
        "GridSample, 1 node, e.g. at 'y': no such operator before opset 16; "
        "ask for opset_version >= 16, or apply the rewrite 'grid_sample_to_gather'.",
    ),
    (
        "(float[1,1,3,5,4] x, float[1,2,6,7,3] g) => (float[1,1,2,6,7] y) {y = GridSample(x, g)}",
        20,
        19,
        "GridSample, 1 node, e.g. at 'y': an input of 5 dimensions; ask for opset_version >= 20.",
    ),
    (
        "(float[1,1,4,4] x, float[2] s) => (float[1,1,A,B] y) "
        '{y = Resize<mode = "linear", antialias = 1, axes = [2, 3]>(x, , s)}',
        20,
        17,
        "Resize, 1 node, e.g. at 'y': attribute antialias=1 is newer than the opset; ask for opset_version >= 18.",
    ),
    (
        "(float[1,1,4,4] x, float[4] s) => (float[1,1,A,B] y) "
        '{y = Resize<mode = "linear", coordinate_transformation_mode = "half_pixel_symmetric">(x, , s)}',
        20,
        18,
        "Resize, 1 node, e.g. at 'y': coordinate_transformation_mode 'half_pixel_symmetric'; "
        "ask for opset_version >= 19.",
    ),
    (
        "(float[2,3] x, int64[1] axes) => (float[A,B] y) {y = ReduceSum(x, axes)}",
        20,
        11,
        "ReduceSum, 1 node, e.g. at 'y': its axes, computed at run time, must be constant for the opset; "
        "ask for opset_version >= 13.",
    ),
    (
        '(float[4] x, int64[4] p) => (float[A] y) {y = Pad<mode = "wrap">(x, p)}',
        20,
        18,
        "Pad, 1 node, e.g. at 'y': padding mode 'wrap'; ask for opset_version >= 19.",
    ),
    (
        '(float[4] x, int64[2,1] i, float[2] u) => (float[4] y) {y = ScatterND<reduction = "max">(x, i, u)}',
        20,
        17,
        "ScatterND, 1 node, e.g. at 'y': reduction 'max'; ask for opset_version >= 18.",
    ),
    (
        '(float[4] x, int64[2,1] i, float[2] u) => (float[4] y) {y = ScatterND<reduction = "add">(x, i, u)}',
        20,
        15,
        "ScatterND, 1 node, e.g. at 'y': attribute reduction='add' is newer than the opset; "
        "ask for opset_version >= 16.",
    ),
    (
        "(bfloat16[2] x) => (bfloat16[2] y) {y = Add(x, x)}",
        20,
        12,
        "Add, 1 node, e.g. at 'y': tensor(bfloat16) is not among the types that the opset allows for A; "
        "ask for opset_version >= 13.",
    ),
    (
        "(int8[2] x) => (int8[2] y) {y = Add(x, x)}",
        20,
        13,
        "Add, 1 node, e.g. at 'y': tensor(int8) is not among the types that the opset allows for A; "
        "ask for opset_version >= 14.",
    ),
    (
        "(int64[2] x, int64[2] n) => (int64[2] y) {y = Pow(x, n)}",
        20,
        11,
        "Pow, 1 node, e.g. at 'y': an integer to a power other than a constant 1..4; ask for opset_version >= 12.",
    ),
    (
        "(int32[2] x) => (int32[2] y) {y = BitwiseAnd(x, x)}",
        20,
        17,
        "BitwiseAnd, 1 node, e.g. at 'y': no such operator before opset 18; ask for opset_version >= 18.",
    ),
    (
        "(float[1,1,9,9] x, float[1,4] r, int64[1] b) => (float[1,1,1,1] y) {y = RoiAlign(x, r, b)}",
        20,
        15,
        "RoiAlign, 1 node, e.g. at 'y': coordinate_transformation_mode 'half_pixel'; "
        "ask for opset_version >= 16, or use aligned=False.",
    ),
    (
        "(float[2,4] x, float[4] s, uint8[4] z) => (uint8[2,4] y) {y = QuantizeLinear(x, s, z)}",
        20,
        12,
        "QuantizeLinear, 1 node, e.g. at 'y': a scale per channel; ask for opset_version >= 13.",
    ),
    (
        '(float[2,2,2] x, float[2,2,2] z) => (float[2,2] y) {y = Einsum<equation = "bii,bij->bj">(x, z)}',
        20,
        11,
        "Einsum, 1 node, e.g. at 'y': equation 'bii,bij->bj'; ask for opset_version >= 12.",
    ),
    (
        "(float[1,1,7,7] x) => (float[1,1,2,4] y) "
        "{y = MaxPool<kernel_shape = [2, 2], strides = [4, 2], pads = [1, 0, 1, 0], ceil_mode = 1>(x)}",
        22,
        21,
        "MaxPool, 1 node, e.g. at 'y': ceil_mode with a last window that starts on the padding; "
        "ask for opset_version >= 22.",
    ),
    (
        "(float[2] x, float[2] z) => (float[2] y) {y = Mod(x, z)}",
        28,
        26,
        "Mod, 1 node, e.g. at 'y': a remainder of floating-point numbers with fmod=0; ask for opset_version >= 28.",
    ),
    (
        "(float[2] x, float r, bool t) => (float[2] y) {y = Dropout(x, r, t)}",
        20,
        11,
        "Dropout, 1 node, e.g. at 'y': its training_mode, computed at run time, must be constant for the opset; "
        "ask for opset_version >= 12.",
    ),
    (
        "(float[2] x) => (float[2] y) <float r = {0.5}, bool t = {1}> {y = Dropout(x, r, t)}",
        20,
        11,
        "Dropout, 1 node, e.g. at 'y': training_mode=True; ask for opset_version >= 12.",
    ),
    (
        "(float[2] x) => (float[2] y, bool[2] m) {y, m = Dropout(x)}",
        20,
        11,
        "Dropout, 1 node, e.g. at 'y': its output 'm'; ask for opset_version >= 12.",
    ),
    (
        "(float[5] x) => (float[A] a, float[B] b, float[C] c, float[D] d) {a, b, c, d = Split<num_outputs = 4>(x)}",
        20,
        17,
        "Split, 1 node, e.g. at 'a': num_outputs=4 of 5 elements leaves -1 for the last part; "
        "ask for opset_version >= 18.",
    ),
]


@pytest.mark.parametrize(
    ("graph", "source", "opset", "line"), REFUSALS, ids=[line.partition("; ")[0] for *_, line in REFUSALS]
)
def test_refusal(oracle, graph, source, opset, line):
    with pytest.raises(UnsupportedError) as caught:
        oracle.converted(oracle.parse(source, graph), opset)
    head, *lines = str(caught.value).splitlines()
    assert head == (
        f"opset_version={opset}: the model, written for opset {source}, has operators that cannot be converted:"
    )
    assert [one.strip() for one in lines] == [line]


@pytest.mark.parametrize(("graph", "source", "opset", "line"), REFUSALS, ids=range(len(REFUSALS)))
def test_remedy_holds(oracle, graph, source, opset, line):
    needed = int(re.search(r"opset_version >= (\d+)", line).group(1))
    assert needed > opset
    held = oracle.converted(oracle.parse(source, graph), needed)
    onnx.checker.check_model(held, full_check=True)
    assert held.opset_import[0].version == needed


def test_all_obstacles_are_listed_with_count_and_first_place(oracle):
    graph = """(float[1,1,4,4] x, float[1,4,4,2] g, float[1,1,4,4] u, int64[1,1,4,4] i) => (float[1,1,4,4] y) {
        a = GridSample(x, g) b = GridSample(a, g) c = Gelu(b)
        d = ScatterElements<reduction = "max">(c, i, u) y = ScatterElements<reduction = "mul">(d, i, u)}"""
    model = ir.from_proto(oracle.parse(20, graph))
    model.graph[0].metadata_props["pkg.torch.onnx.name_scopes"] = "['', 'decoder', 'decoder.sampler', 'grid_sampler']"
    model.graph[3].metadata_props["pkg.torch.onnx.name_scopes"] = "['', 'aten.scatter', 'node']"
    model.graph[4].name = "/head/Scatter"
    with pytest.raises(UnsupportedError) as caught:
        convert(model, 13)
    lines = [line.partition(";")[0].strip() for line in str(caught.value).splitlines()[1:]]
    assert lines == [
        "ScatterElements, 1 node, e.g. at 'aten.scatter': reduction 'max'",
        "GridSample, 2 nodes, e.g. at 'decoder.sampler': no such operator before opset 16",
        "ScatterElements, 1 node, e.g. at '/head/Scatter': attribute reduction='mul' is newer than the opset",
    ]


def test_obstacles_in_subgraphs_are_found(oracle):
    graph = """(bool c, float[2] x) => (float[2] y) {
        y = If(c) <then_branch = a () => (float[2] u) {u = my.Unknown(x)},
                   else_branch = b () => (float[2] v) {v = TensorScatter(x, x)}>}"""
    with pytest.raises(UnsupportedError, match=r"TensorScatter, 1 node, e.g. at 'v': no such operator before opset 24"):
        oracle.converted(oracle.parse(24, graph), 22)


def test_unknown_rank_is_an_obstacle_only_where_a_rule_needs_it(oracle):
    text = """<ir_version: 10, opset_import: ["" : 20, "my" : 1]>
        g (float[2,3] x) => (float y) <float h> {h = my.f(x) y = %s(h)}"""
    for op, opset in (("Softmax", 11), ("Gelu", 11)):
        model = ir.from_proto(onnx.parser.parse_model(text % op))
        for value in model.graph[0].outputs:
            value.shape = None
        convert(model, opset)
        assert model.opset_imports[""] == opset
    model = ir.from_proto(onnx.parser.parse_model(text % "Softmax<axis = 1>"))
    model.graph[0].outputs[0].shape = None
    with pytest.raises(UnsupportedError, match=r"Softmax, 1 node, e.g. at 'y': the rank of 'h' is unknown"):
        convert(model, 11)


def test_unknown_element_type_is_an_obstacle_only_where_a_rule_needs_it(oracle):
    text = '<ir_version: 10, opset_import: ["" : 20, "my" : 1]> g (float[2] x) => (float[2] y) {h = my.f(x) y = %s(h)}'
    assert oracle.converted(onnx.parser.parse_model(text % "Neg"), 11)
    with pytest.raises(UnsupportedError, match=r"Gelu, 1 node, e.g. at 'y': the element type of 'h' is unknown"):
        oracle.converted(onnx.parser.parse_model(text % "Gelu"), 11)


@pytest.mark.parametrize("opset", [10, HIGHEST + 1])
def test_opset_out_of_range(oracle, opset):
    with pytest.raises(UnsupportedError, match=rf"opset_version={opset}: out of range, .* 11\.\.{HIGHEST}"):
        oracle.converted(oracle.parse(20, "(float[2] x) => (float[2] y) {y = Abs(x)}"), opset)
