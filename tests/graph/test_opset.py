"""convert(): what it promises whatever the rules are."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.graph.opset.convert import convert
from torch_onnx_compat.graph.opset.lowering import RULES, lowering

SCOPES = {"pkg.torch.onnx.name_scopes": "['', 'encoder', 'encoder.norm', 'layer_norm']"}
GELU_NORM = """(float[2,4] x, float[4] s) => (float[2,4] y) {
    h = Gelu(x)
    y = LayerNormalization(h, s)}"""


def test_same_opset_changes_nothing(oracle):
    proto = oracle.parse(20, GELU_NORM)
    assert oracle.converted(proto, 20) == ir.to_proto(ir.from_proto(proto))


@pytest.mark.parametrize("opset", range(11, 20))
def test_every_opset_is_reached_exactly(oracle, opset):
    lowered = oracle.assert_same_numbers(oracle.parse(20, GELU_NORM), opset, eps=16)
    assert [value.name for value in lowered.graph.output] == ["y"]


@pytest.mark.parametrize(
    ("opset", "ir_version"), [(22, 10), (20, 9), (19, 9), (18, 8), (17, 8), (15, 8), (14, 7), (12, 7), (11, 6)]
)
def test_ir_version_is_that_of_the_opset(oracle, opset, ir_version):
    proto = oracle.parse(23, "(float[2] x) => (float[2] y) {y = Abs(x)}")
    assert oracle.converted(proto, opset).ir_version == ir_version


@pytest.mark.parametrize("opset", [23, 17])
def test_ir_version_is_never_raised(oracle, opset):
    proto = oracle.parse(20, "(float[2] x) => (float[2] y) {y = Abs(x)}")
    proto.ir_version = 8
    assert oracle.converted(proto, opset).ir_version == 8


def test_nodes_carry_the_opset_and_the_places(oracle):
    model = ir.from_proto(oracle.parse(20, GELU_NORM))
    for node in model.graph:
        node.version = 20
    model.graph[1].metadata_props.update(SCOPES)
    convert(model, 11)
    assert {node.version for node in model.graph} == {11}
    norm = [node for node in model.graph if node.metadata_props]
    assert {node.op_type for node in norm} >= {"ReduceMean", "Pow", "Sqrt", "Div"}
    assert all(node.metadata_props == SCOPES for node in norm)
    assert not any(node.metadata_props for node in model.graph if node.op_type == "Erf")


def test_names_are_unique_and_avoid_those_in_use(oracle):
    graph = """(float[2,4] constant, float[4] y_Erf) => (float[2,4] y) {
        h = Gelu(constant)
        k = Gelu(h)
        y = Add(k, y_Erf)}"""
    lowered = oracle.assert_same_numbers(oracle.parse(20, graph), 13, eps=8)
    names = [o for n in lowered.graph.node for o in n.output]
    names += [v.name for v in (*lowered.graph.input, *lowered.graph.initializer)]
    assert len(set(names)) == len(names)
    nodes = [n.name for n in lowered.graph.node]
    assert len(set(nodes)) == len(nodes)


def test_constants_are_shared_and_unused_ones_removed(oracle):
    graph = """(float[2,4] x) => (float[2,4] y) <int64[1] axes = {0}> {
        a = Gelu(x) b = Gelu(a) c = Unsqueeze(b, axes) y = Squeeze(c, axes)}"""
    lowered = oracle.converted(oracle.parse(20, graph), 11)
    values = sorted(float(onnx.numpy_helper.to_array(t)) for t in lowered.graph.initializer)
    np.testing.assert_allclose(values, [0.5, 1, np.sqrt(2)], rtol=1e-6)


def test_weights_are_never_read(oracle):
    def read():
        raise AssertionError("the weights were read")

    model = ir.from_proto(oracle.parse(20, "(float[2,99] x) => (float[2,99] y) <float[99,99] w> {y = MatMul(x, w)}"))
    old = next(iter(model.graph.initializers.values()), None) or model.graph[0].inputs[1]
    lazy = ir.LazyTensor(read, dtype=ir.DataType.FLOAT, shape=ir.Shape([99, 99]), name="w")
    old.const_value = lazy
    model.graph.register_initializer(old)
    model.graph[0].outputs[0].shape = None  # inference has something to do
    convert(model, 11)
    assert model.graph.initializers["w"].const_value is lazy


@pytest.mark.parametrize("opset", [17, 13, 11])
def test_subgraphs_are_converted(oracle, opset):
    graph = """(bool c, float[2,4] x, float[4] s) => (float[2,4] y) {
        h = Gelu(x)
        y = If(c) <
            then_branch = a () => (float[2,4] u) {u = LayerNormalization(h, s)},
            else_branch = b () => (float[2,4] v) {
                t = Constant<value_ints = [1]>() m = ReduceMean(h, t) v = Add(m, x)}>}"""
    proto = oracle.parse(20, graph)
    for c in (True, False):
        oracle.assert_same_numbers(proto, opset, eps=16, feeds={"c": np.array(c)})


@pytest.mark.parametrize("opset", [17, 12, 11])
def test_loop_bodies_are_converted(oracle, opset):
    graph = """(float[2,4] x) => (float[2,4] y) {
        n = Constant<value_int = 3>()
        t = Constant<value = bool {1}>()
        y = Loop(n, t, x) <body = b (int64 i, bool go, float[2,4] u) => (bool on, float[2,4] v) {
            on = Identity(go) v = Gelu(u)}>}"""
    oracle.assert_same_numbers(oracle.parse(20, graph), opset, eps=16)


@pytest.mark.parametrize("opset", [22, 17, 11])
def test_functions_are_inlined(oracle, opset):
    text = """<ir_version: 10, opset_import: ["" : 20, "my" : 1]>
        g (float[2,5] x) => (float[5,2] y) {h = my.activate<a = 1>(x) y = Transpose(h)}
        <domain: "my", opset_import: ["" : 20]> activate<a> (x) => (y) {g = Gelu(x) y = Softmax<axis: int = @a>(g)}"""
    proto = onnx.parser.parse_model(text)
    lowered = oracle.assert_same_numbers(proto, opset, eps=16)
    assert not lowered.functions


def test_functions_of_another_opset_are_refused(oracle):
    text = """<ir_version: 10, opset_import: ["" : 20, "my" : 1]> g (float[2] x) => (float[2] y) {y = my.f(x)}
        <domain: "my", opset_import: ["" : 18]> f (x) => (y) {y = Mish(x)}"""
    with pytest.raises(UnsupportedError, match=r"a function of the model cannot be inlined.*20 .*18"):
        oracle.converted(onnx.parser.parse_model(text), 17)


def test_other_domains_are_left_alone(oracle):
    text = """<ir_version: 10, opset_import: ["" : 20, "my" : 3]>
        g (float[2] x) => (float[2] y) <float[2] h> {h = my.Gelu<antialias = 0>(x) y = Gelu(h)}"""
    lowered = oracle.converted(onnx.parser.parse_model(text), 11)
    assert lowered.graph.node[0].op_type == "Gelu"
    assert {o.domain: o.version for o in lowered.opset_import} == {"": 11, "my": 3}


def test_types_are_inferred_where_missing(oracle):
    graph = "(float[2,N,5] x) => (float[2,N,5] y) {h = Neg(x) y = Softmax<axis = 1>(h)}"
    proto = oracle.parse(20, graph)
    assert not proto.graph.value_info
    oracle.assert_same_numbers(proto, 11, eps=4)


def test_the_net_catches_a_broken_rule(oracle, monkeypatch):
    monkeypatch.setitem(RULES["Gelu"], 20, lambda op, node: op.Mish(op.Gelu(node.inputs[0])))
    with pytest.raises(UnsupportedError, match=r"Gelu, 1 node, .*: no such operator before opset 20"):
        oracle.converted(oracle.parse(20, GELU_NORM), 19)


def test_the_net_catches_a_missing_rule(oracle, monkeypatch):
    monkeypatch.delitem(RULES["Squeeze"], 13)
    with pytest.raises(
        UnsupportedError, match=r"Squeeze, 1 node, .*: 2 inputs are more than the 1 that the opset allows"
    ):
        oracle.converted(oracle.parse(20, "(float[1,2] x) => (float[2] y) <int64[1] a = {0}> {y = Squeeze(x, a)}"), 11)


def test_a_second_rule_for_an_opset_is_refused():
    with pytest.raises(ValueError, match="Gelu has a rule for opset 20 already: gelu"):
        lowering("Gelu", below=20)(lambda op, node: None)
