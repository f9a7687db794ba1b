"""Every form of an operator, on every probe of it: the operator goes, the numbers stay."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
import torch.nn.functional as F

from torch_onnx_compat import export_compat
from torch_onnx_compat.engines.compare import difference, reference
from torch_onnx_compat.engines.probes import own_probes
from torch_onnx_compat.graph.adapt.adapt import adapt_to_target
from torch_onnx_compat.graph.adapt.alternatives import ALTERNATIVES
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.targets import Row, Target

PROBES = defaultdict(list)
for _probe in own_probes():
    if _probe.model.graph.node[0].op_type != "Cast" or not _probe.position:  # onnxruntime lacks forms in double
        PROBES[_probe.op_type].append(_probe)

# Their other forms are the same operator with other attributes or shapes.
ALIKE = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Max", "Min", "Pad"}
ALIKE |= {"Gather", "GatherElements", "GatherND", "RoiAlign"}
ALIKE |= {"ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "InstanceNormalization", "MatMul", "Mul", "Softmax"}
ALIKE |= {"Div", "Reshape"}
ALIKE |= {"GRU", "LSTM", "RNN", "Gemm"}
ALIKE |= {"If"}  # a probe's branches read nothing; see tests/targets/test_branches_in_openvino.py
TOLERANCE = (1e-4, 1e-4)


def suited(probe, *rows):
    model = ir.from_proto(probe.model)
    counts = adapt_to_target(model, Target("picky", rows=rows))
    return ir.to_proto(model), counts


@pytest.mark.parametrize("op_type", sorted(ALTERNATIVES))
def test_other_form_computes_the_same(op_type):
    replaced = 0
    for probe in PROBES[op_type]:
        model, counts = suited(probe, Row(op_type, "refused"))
        if not counts:
            continue
        replaced += 1
        assert op_type not in {node.op_type for node in model.graph.node}, probe.name
        wanted = reference(probe.model.SerializeToString(), probe.feeds)
        found = reference(model.SerializeToString(), probe.feeds)
        for a, b in zip(found, wanted, strict=True):
            assert not difference(a, b, TOLERANCE), probe.name
    assert replaced or op_type in ALIKE


CONDITIONS = {
    "Add": [Row("Add", "refused", {"terms": "twin products"})],
    "BatchNormalization": [Row("BatchNormalization", "wrong", {"after": ["Sigmoid", "Mul"]})],
    "Conv": [
        Row("Conv", "wrong", {"auto_pad": ["SAME_UPPER", "SAME_LOWER", "VALID"]}),
        Row("Conv", "wrong", {"rank": 3}),
        Row("Conv", "refused", {"after": "Pad"}),
    ],
    "ConvTranspose": [Row("ConvTranspose", "wrong", {"rank": 3})],
    "GatherElements": [Row("GatherElements", "refused", {"index": "smaller"})],
    "GatherND": [Row("GatherND", "wrong", {"type": "bool"})],
    "MaxPool": [Row("MaxPool", "wrong", {"ceil_mode": 1}), Row("MaxPool", "wrong", {"rank": 3})],
    "AveragePool": [
        Row("AveragePool", "wrong", {"ceil_mode": 1}),
        Row("AveragePool", "wrong", {"count_include_pad": 1}),
        Row("AveragePool", "wrong", {"rank": 3}),
        Row("AveragePool", "refused", {"after": "Pad"}),
    ],
    "GRU": [Row("GRU", "wrong", {"omitted": "yes"}), Row("GRU", "wrong", {"state": "zeros"})],
    "Gemm": [Row("Gemm", "wrong", {"input.2": "absent", "alpha": {"not": [1.0]}})],
    "LSTM": [Row("LSTM", "wrong", {"omitted": "yes"}), Row("LSTM", "wrong", {"state": "zeros"})],
    "ReduceL2": [Row("ReduceL2", "wrong", {"keepdims.written": "no"})],
    "ReduceSum": [Row("ReduceSum", "wrong", {"keepdims.written": "no"})],
    "Reshape": [Row("Reshape", "wrong", {"copies": "regrouped"})],
    "Resize": [
        Row("Resize", "wrong", {"input.2": "constant"}),
        Row("Resize", "wrong", {"input.3": "constant"}),
        Row("Resize", "wrong", {"mode.written": "no"}),
    ],
    "Max": [Row("Max", "wrong", {"inputs": 3})],
    "Min": [Row("Min", "wrong", {"inputs": 3})],
    "Div": [Row("Div", "wrong", {"divisor": "repeated norm"})],
    "InstanceNormalization": [Row("InstanceNormalization", "refused", {"rank": 3})],
    "MatMul": [Row("MatMul", "slow", {"scaled": "queries"}), Row("MatMul", "wrong", {"scaled": "queries"})],
    "Pad": [
        Row("Pad", "wrong", {"pads_sign": "negative"}),
        Row("Pad", "refused", {"padded": "nothing"}),
        Row("Pad", "refused", {"padded": ["channels", "sides"], "mode": "constant", "pads_sign": "positive"}),
        Row("Pad", "refused", {"input.2": "constant", "mode": "constant"}),
    ],
    "Softmax": [Row("Softmax", "wrong", {"queries": "one"})],
    "ReduceMean": [Row("ReduceMean", "wrong", {"keepdims": 0}), Row("ReduceMean", "wrong", {"rank": 4})],
    "Split": [Row("Split", "wrong", {"num_outputs": [2, 3]})],
}


@pytest.mark.parametrize(("op_type", "index"), [(op, i) for op, rows in CONDITIONS.items() for i in range(len(rows))])
def test_form_without_the_condition(op_type, index):
    row = CONDITIONS[op_type][index]
    target = Target("picky", rows=(row,))
    replaced = 0
    for probe in PROBES[op_type]:
        model, counts = suited(probe, row)
        if not counts:
            continue
        replaced += 1
        wanted = reference(probe.model.SerializeToString(), probe.feeds)
        for a, b in zip(reference(model.SerializeToString(), probe.feeds), wanted, strict=True):
            assert not difference(a, b, TOLERANCE), probe.name
        assert not adapt_to_target(ir.from_proto(model), target), probe.name
    assert replaced


SLICES = [
    ((1, 5, 7), 1, 0, 5, 2),
    ((2, 6), 1, 0, 6, 2),
    ((2, 7, 3), 1, 2, 7, 3),
    ((9,), 0, 1, 2, 4),
    ((8, 2), 0, 7, 8, 3),
]


@pytest.mark.parametrize(("shape", "axis", "start", "end", "step"), SLICES)
def test_strided_slice_is_grouped(shape, axis, start, end, step):
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[{",".join(map(str, shape))}] x) => (float[n, m, k] y)
    <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] a = {{{axis}}}, int64[1] k = {{{step}}}>
    {{ y = Slice(x, s, e, a, k) }}"""
    whole = onnx.parser.parse_model(text.replace("float[n, m, k] y", f"float[{','.join('nmk'[: len(shape)])}] y"))
    model = ir.from_proto(whole)
    assert adapt_to_target(
        model, Target("picky", rows=(Row("Slice", "refused", {"step": "more"}), Row("Gather", "refused")))
    )
    x = np.random.default_rng(0).random(shape, np.float32)
    wanted, found = (reference(m.SerializeToString(), {"x": x})[0] for m in (whole, ir.to_proto(model)))
    assert "Gather" not in {node.op_type for node in model.graph}
    np.testing.assert_array_equal(found, wanted)


CONSTANTS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[2, 3] y)
<float[1, 3] c = {0.5, 1.0, 2.0}, int64[2] twice = {2, 1}>
{ s = Sin(c)  t = Tile(s, twice)  y = Add(x, t) }"""


def test_bad_node_of_constants_is_computed():
    model = ir.from_proto(onnx.parser.parse_model(CONSTANTS))
    adapt_to_target(model, Target("picky", rows=(Row("Tile", "refused"),)))
    assert [node.op_type for node in model.graph] == ["Add"]
    x = np.zeros((2, 3), np.float32)
    np.testing.assert_allclose(reference(ir.to_proto(model).SerializeToString(), {"x": x})[0][1], np.sin([0.5, 1, 2]))


def test_good_nodes_of_constants_stay():
    model = ir.from_proto(onnx.parser.parse_model(CONSTANTS))
    adapt_to_target(model, Target("picky", rows=(Row("Softplus", "refused"),)))
    assert [node.op_type for node in model.graph] == ["Sin", "Tile", "Add"]


def test_sizes_that_are_known_are_constants():
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2, SIZE] x) => (float[n, m] y) <int64[1] one = {1}>
    { z = Softplus(x)  s = Shape(z)  e = Gather(s, one)  t = Concat<axis=0>(e, one)  y = Reshape(z, t) }"""
    for size, left in (("3", []), ("k", ["Shape", "Gather", "Concat"])):
        model = ir.from_proto(onnx.parser.parse_model(text.replace("SIZE", size)))
        adapt_to_target(model, Target("picky", rows=(Row("Shape", "wrong"),)))
        assert [node.op_type for node in model.graph] == ["Softplus", *left, "Reshape"]


SCORES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, QUERIES, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v) => (float[1, 2, QUERIES, 4] y)
<float c = {0.36}> { a = SCALED  t = Transpose<perm=[0, 1, 3, 2]>(k)  s = MatMul(a, t)  w = Softmax(s)
y = MatMul(w, v) }"""


@pytest.mark.parametrize("scaled", ["Mul(q, c)", "Mul(c, q)", "Div(q, c)"])
def test_slow_attention_scales_both(scaled):
    whole = onnx.parser.parse_model(SCORES.replace("SCALED", scaled).replace("QUERIES", "3"))
    model = ir.from_proto(whole)
    target = Target("picky", rows=(Row("MatMul", "slow", {"scaled": "queries"}),))
    assert adapt_to_target(model, target) == {"MatMul": 1}
    assert [node_facts(node, 17)["scaled"] for node in model.graph if node.op_type == "MatMul"] == ["both", "other"]
    assert not adapt_to_target(model, target)
    random = np.random.default_rng(0)
    feeds = {n: random.random((1, 2, 3 if n == "q" else 5, 4), np.float32) for n in "qkv"}
    found, wanted = (reference(m.SerializeToString(), feeds)[0] for m in (ir.to_proto(model), whole))
    assert not difference(found, wanted, TOLERANCE)


def test_slow_node_whose_other_form_is_bad_stays():
    whole = onnx.parser.parse_model(SCORES.replace("SCALED", "Mul(q, c)").replace("QUERIES", "3"))
    model = ir.from_proto(whole)
    assert not adapt_to_target(
        model, Target("picky", rows=(Row("MatMul", "slow", {"scaled": "queries"}), Row("Mul", "refused")))
    )
    assert [node.op_type for node in model.graph] == ["Mul", "Transpose", "MatMul", "Softmax", "MatMul"]


def test_slow_is_no_objection():
    target = Target("picky", rows=(Row("MatMul", "slow"),))
    assert target.has_better_form("MatMul", 17, {})
    assert target.judge("MatMul", 17, {}) is None
    assert target.verdict("MatMul", 17, {}) == "works"


CONVOLUTION = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 4, 6, 7] x) => (float[n, m, h, w] y)
<float[6, CHANNELS, 3, 3] k = {NUMBERS}, float[6] b = {1, 2, 3, 4, 5, 6}>
{ y = Conv<kernel_shape = [3, 3], pads = [1, 0, 2, 1], group = GROUP, strides = STRIDES>(x, k, b) }"""


@pytest.mark.parametrize(
    ("group", "strides", "kernels"), [(1, [1, 1], (3, 4)), (2, [2, 1], (3, 4)), (1, [1, 2], (3, 3))]
)
def test_rough_convolution_gets_a_kernel_that_is_not_square(group, strides, kernels):
    numbers = np.random.default_rng(0).random(6 * 4 // group * 9).round(3).tolist()
    filled = {"CHANNELS": 4 // group, "GROUP": group, "STRIDES": strides, "NUMBERS": str(numbers)[1:-1]}
    text = CONVOLUTION
    for name, value in filled.items():
        text = text.replace(name, str(value))
    whole = onnx.parser.parse_model(text)
    target = Target("picky", rows=(Row("Conv", "rough", {"kernel_shape": [2, 3]}),))
    model = ir.from_proto(whole)
    assert not adapt_to_target(model, target)  # only where that is asked for: the other form takes longer
    adapt_to_target(model, replace(target, exact=True))
    (node,) = model.graph
    assert tuple(node.attributes["kernel_shape"].as_ints()) == kernels
    x = {"x": np.random.default_rng(0).random((1, 4, 6, 7), np.float32)}
    found, wanted = (reference(m.SerializeToString(), x)[0] for m in (ir.to_proto(model), whole))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


GELU = """<ir_version: 8, opset_import: ["" : 17]> g (float[5, 3] x) => (float[5, 3] y)
<float r = {1.4142135}, float one = {1}, float half = {0.5}>
{ d = Div(x, r)  e = Erf(d)  s = Add(e, one)  p = PRODUCT  y = HALF }"""


@pytest.mark.parametrize(("product", "half"), [("Mul(x, s)", "Mul(p, half)"), ("Mul(s, x)", "Mul(half, p)")])
def test_rough_gelu_is_multiplied_in_another_order(product, half):
    whole = onnx.parser.parse_model(GELU.replace("PRODUCT", product).replace("HALF", half))
    model = ir.from_proto(whole)
    target = Target("picky", rows=(Row("Mul", "rough", {"forms": "gelu"}),), exact=True)
    assert adapt_to_target(model, target) == {"Mul": 1}
    assert not adapt_to_target(model, target)
    x = {"x": np.linspace(-5, 5, 15, dtype=np.float32).reshape(5, 3)}
    found, wanted = (reference(m.SerializeToString(), x)[0] for m in (ir.to_proto(model), whole))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


def test_sizes_that_a_file_declares_say_nothing_of_scales_that_are_computed():
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 1, 4, 4] x, float[4] s) => (float[1, 1, 3, 3] y) { y = Resize<mode = "cubic">(x, , s) }"""
    model = ir.from_proto(onnx.parser.parse_model(text))
    assert not adapt_to_target(model, Target("picky", rows=(Row("Resize", "refused", {"input.2": "computed"}),)))


@pytest.mark.parametrize(
    ("scaled", "queries", "name"),
    [("Mul(q, c)", 3, "queries"), ("Relu(q)", 3, "no"), ("Mul(q, c)", 1, "other"), ("Mul(q, q)", 3, "no")],
)
def test_what_an_attention_scales(scaled, queries, name):
    model = ir.from_proto(onnx.parser.parse_model(SCORES.replace("SCALED", scaled).replace("QUERIES", str(queries))))
    infer_model(model)
    assert node_facts(model.graph[2], 17)["scaled"] == name


def test_what_the_target_runs_stays():
    probe = PROBES["Softplus"][0]
    model, counts = suited(probe, Row("Softplus", "wrong", {"rank": 7}))
    assert not counts
    assert [node.op_type for node in model.graph.node] == ["Softplus"]


def test_node_without_another_form_stays():
    probe = PROBES["TopK"][0]
    model, counts = suited(probe, Row("TopK", "wrong"))
    assert not counts
    assert "TopK" in {node.op_type for node in model.graph.node}


def test_form_that_the_target_runs_is_preferred():
    probe = PROBES["HardSwish"][0]
    model, _ = suited(probe, Row("HardSwish", "wrong"), Row("Clip", "wrong"))
    assert {node.op_type for node in model.graph.node} == {"HardSigmoid", "Mul"}


def test_oracle_bites():
    probe = PROBES["Softplus"][0]
    wanted = reference(probe.model.SerializeToString(), probe.feeds)[0]
    assert difference(np.abs(wanted) + np.float32(0.1), wanted, TOLERANCE)


RESIZES = {
    "one cell": lambda x: F.interpolate(F.adaptive_avg_pool2d(x, 1), (12, 9), mode="bilinear"),
    "half": lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear"),
    "odd size": lambda x: F.interpolate(x, (13, 17), mode="bicubic", align_corners=True),
    "nearest": lambda x: F.interpolate(x, (5, 16), mode="nearest"),
}


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_resize_of_one_cell_to_a_size_that_varies(exporter):
    def spread(x):
        return F.interpolate(F.adaptive_avg_pool2d(x, 1), x.shape[2:], mode="bilinear")

    x = torch.rand(2, 3, 8, 12)
    dynamic = {0: "batch", 2: "height", 3: "width"}
    file = export_compat(spread, (x,), exporter=exporter, dynamic={"x": dynamic}, opset_version=17)
    model = ir.serde.from_proto(onnx.load_model_from_string(file.model_bytes))
    infer_model(model)
    node = next(node for node in model.graph if node.op_type == "Resize")
    assert node_facts(node, 17)["scales"] == "exact"
    assert adapt_to_target(model, Target("picky", rows=(Row("Resize", "wrong", {"rows": "one"}),)))
    proto = ir.to_proto(model)
    assert "Resize" not in {node.op_type for node in proto.graph.node}
    for shape in ((1, 3, 5, 4), (2, 3, 8, 12), (3, 3, 1, 9)):
        x = torch.rand(shape)
        found = reference(proto.SerializeToString(), {proto.graph.input[0].name: x.numpy()})[0]
        assert not difference(found, spread(x).numpy(), TOLERANCE)


@pytest.mark.parametrize("name", RESIZES)
@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_resize_of_a_batch_that_varies(name, exporter):
    """torch says the sizes by the batch's own, so the whole shape is known to nobody."""
    x = torch.rand(2, 3, 8, 12)
    file = export_compat(RESIZES[name], (x,), exporter=exporter, dynamic="batch", opset_version=17)
    model = ir.serde.from_proto(onnx.load_model_from_string(file.model_bytes))
    assert adapt_to_target(model, Target("picky", rows=(Row("Resize", "refused"),)))
    proto = ir.to_proto(model)
    assert not {"Resize", "Shape"} & {node.op_type for node in proto.graph.node}
    for batch in (1, 2, 5):
        x = torch.rand(batch, 3, 8, 12)
        found = reference(proto.SerializeToString(), {proto.graph.input[0].name: x.numpy()})[0]
        assert not difference(found, RESIZES[name](x).numpy(), TOLERANCE)


@pytest.mark.parametrize(
    ("size", "scales"), [((16, 24), "whole"), ((4, 6), "exact"), ((13, 17), "exact"), ((2, 24), "exact")]
)
def test_scales_of_a_batch_that_varies(size, scales):
    x = torch.rand(2, 3, 8, 12)
    file = export_compat(lambda x: F.interpolate(x, size), (x,), dynamic="batch", opset_version=17)
    model = ir.serde.from_proto(onnx.load_model_from_string(file.model_bytes))
    infer_model(model)
    node = next(node for node in model.graph if node.op_type == "Resize")
    assert node_facts(node, 17)["scales"] == scales


def test_gathered_data_is_cropped_at_sizes_that_are_only_known_at_run_time():
    """BERT's token types: the table is as long as the longest text, the index as long as this one."""
    model = ir.from_onnx_text(
        '<ir_version: 8, opset_import: ["" : 18]> '
        "g (float[n, 6, k] x, int64[b, s, k] i) => (float[b, s, k] y) { y = GatherElements<axis=1>(x, i) }"
    )
    before = ir.to_proto(model)
    row = Row("GatherElements", "refused", {"index": "smaller"})
    assert adapt_to_target(model, Target("picky", rows=(row,))) == {"GatherElements": 1}
    (node,) = [node for node in model.graph if node.op_type == "GatherElements"]
    assert node_facts(node, 18)["index"] == "equal"
    random = np.random.default_rng(0)
    for batch, length in ((2, 6), (3, 4), (1, 1)):
        x = random.standard_normal((3, 6, 2)).astype(np.float32)
        feeds = {"x": x, "i": random.integers(0, 6, (batch, length, 2))}
        wanted, found = (reference(m.SerializeToString(), feeds) for m in (before, ir.to_proto(model)))
        assert np.array_equal(found[0], wanted[0])
