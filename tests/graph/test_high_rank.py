"""Tensors of more than four axes: written with fewer, with the same numbers."""

from itertools import permutations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from torch_onnx_compat.engines.compare import reference
from torch_onnx_compat.graph.adapt.adapt import adapt_to_target
from torch_onnx_compat.graph.adapt.reordering import LOW, moves
from torch_onnx_compat.targets import Row, Target

HIGH = [5, 6, 7, 8]
NARROW = Target(
    "narrow",
    rows=(
        Row("Reshape", "refused", {"rank.out": HIGH}),
        *(Row(op, "refused", {"rank": HIGH}) for op in ("Transpose", "Add", "MatMul", "Softmax", "Mul", "Concat")),
    ),
)


def graph(inputs, output, nodes, held=""):
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({output}) <{held}> {{ {nodes} }}"""
    model = onnx.parser.parse_model(text)
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


QKV = "int64[5] s = {2, 6, 3, 2, 4}, int64 one = {1}, int64[3] ones = {1, 1, 1}, int64[1] zero = {0}"
CASES = {
    "qkv by Gather": graph(
        "float[2, 6, 24] x",
        "float[2, 2, 6, 4] y",
        "r = Reshape(x, s) t = Transpose<perm = [2, 0, 3, 1, 4]>(r) y = Gather<axis = 0>(t, one)",
        QKV,
    ),
    "qkv by Split": graph(
        "float[2, 6, 24] x",
        "float[2, 2, 6, 4] y",
        "r = Reshape(x, s) t = Transpose<perm = [2, 0, 3, 1, 4]>(r) "
        "a, b, c = Split<axis = 0>(t, ones) q = Squeeze(a, zero) k = Squeeze(b, zero) v = Squeeze(c, zero) "
        "m = Mul(q, k) y = Add(m, v)",
        QKV,
    ),
    "qkv of any batch": graph(
        "float[n, 6, 24] x",
        "float[n, 2, 6, 4] y",
        "r = Reshape(x, s) t = Transpose<perm = [2, 0, 3, 1, 4]>(r) y = Gather<axis = 0>(t, one)",
        QKV.replace("{2, 6", "{-1, 6"),
    ),
    "windows": graph(
        "float[1, 6, 4, 3] x",
        "float[6, 2, 2, 3] y",
        "r = Reshape(x, s) t = Transpose<perm = [0, 1, 3, 2, 4, 5]>(r) y = Reshape(t, w)",
        "int64[6] s = {1, 3, 2, 2, 2, 3}, int64[4] w = {6, 2, 2, 3}",
    ),
    "shuffle": graph(
        "float[2, 6, 4, 3] x",
        "float[2, 6, 4, 3] y",
        "r = Reshape(x, s) t = Transpose<perm = [0, 2, 1, 3, 4]>(r) y = Reshape(t, w)",
        "int64[5] s = {2, 2, 3, 4, 3}, int64[4] w = {2, 6, 4, 3}",
    ),
    "scattered": graph(
        "float[2, 60, 7] x",
        "float[60, 14] y",
        "r = Reshape(x, s) t = Transpose<perm = [4, 2, 0, 3, 1]>(r) y = Reshape(t, w)",
        "int64[5] s = {2, 3, 4, 5, 7}, int64[2] w = {60, 14}",
    ),
    "mask": graph(
        "float[12, 2, 4, 4] x, float[3, 4, 4] m",
        "float[12, 2, 4, 4] y",
        "r = Reshape(x, s) u = Unsqueeze(m, at) a = Add(r, u) p = Softmax<axis = 4>(a) y = Reshape(p, w)",
        "int64[5] s = {4, 3, 2, 4, 4}, int64[4] w = {12, 2, 4, 4}, int64[2] at = {0, 2}",
    ),
    "matrices": graph(
        "float[2, 12, 5] x, float[12, 5, 2] z",
        "float[12, 4] y",
        "r = Reshape(x, s) v = Reshape(z, q) a = MatMul(r, v) y = Reshape(a, w)",
        "int64[5] s = {2, 3, 2, 2, 5}, int64[5] q = {2, 3, 2, 5, 2}, int64[2] w = {12, 4}",
    ),
    "parts": graph(
        "float[2, 12, 5] x",
        "float[2, 12, 10] y",
        "r = Reshape(x, s) c = Concat<axis = 3>(r, r) "
        "d = Slice(c, from, to, at) e = Concat<axis = 3>(d, d) f = Relu(e) y = Reshape(f, w)",
        "int64[5] s = {2, 3, 2, 2, 5}, int64[3] w = {2, 12, 10}, int64[1] from = {1}, int64[1] to = {3}, "
        "int64[1] at = {3}",
    ),
}


def highest(model):
    return max(
        len(v.shape) for n in model.graph for v in (*n.inputs, *n.outputs) if v is not None and v.shape is not None
    )


def fed(model):
    random = np.random.default_rng(0)
    for value in model.graph.input:
        shape = [d.dim_value or 3 for d in value.type.tensor_type.shape.dim]
        yield value.name, random.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("name", CASES)
def test_computes_the_same_with_few_axes(name):
    whole = CASES[name]
    model = ir.from_proto(whole)
    assert highest(model) > LOW
    assert adapt_to_target(model, NARROW) == {"tensors of many axes": 1}
    assert highest(model) <= LOW
    feeds = dict(fed(whole))
    wanted, found = (reference(m.SerializeToString(), feeds)[0] for m in (whole, ir.to_proto(model)))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_selection_is_made_before_the_transposition():
    model = ir.from_proto(CASES["qkv by Gather"])
    adapt_to_target(model, NARROW)
    assert [node.op_type for node in model.graph] == ["Slice", "Reshape", "Transpose"]


def test_what_the_target_runs_stays():
    model = ir.from_proto(CASES["windows"])
    assert not adapt_to_target(model, Target("wide", rows=(Row("Softplus", "wrong"),)))
    assert highest(model) == 6


def test_operator_without_a_rule_keeps_the_whole_part():
    whole = graph(
        "float[2, 12, 5] x",
        "float[2, 12, 5] y",
        "r = Reshape(x, s) c = CumSum(r, at) y = Reshape(c, w)",
        "int64[5] s = {2, 3, 2, 2, 5}, int64[3] w = {2, 12, 5}, int64 at = {3}",
    )
    model = ir.from_proto(whole)
    assert not adapt_to_target(model, NARROW)
    assert [node.op_type for node in model.graph] == ["Reshape", "CumSum", "Reshape"]
    assert len(model.graph.inputs[0].uses()) == 1


@pytest.mark.parametrize("rank", [2, 3, 4, 5, 6])
def test_moves_bring_every_order_about(rank):
    for perm in permutations(range(rank)):
        order = list(range(rank))
        for blocks in moves(perm):
            assert len(blocks) <= LOW
            assert sorted(place for block in blocks for place in block) == list(range(rank))
            assert all(list(block) == list(range(block[0], block[0] + len(block))) for block in blocks)
            order = [order[place] for block in blocks for place in block]
        assert tuple(order) == perm
