"""The net under the rules, and the one thing that it takes for granted."""

import onnx
import onnx_ir as ir
import pytest

from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.graph import schema
from torch_onnx_compat.graph.opset.lowering import RULES

REVIEWED_UP_TO = 26
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
MEANS_AS_BEFORE = {
    12: {"ArgMax.select_last_index", "ArgMin.select_last_index", "GatherND.batch_dims"},
    13: {"ReduceSum.noop_with_empty_axes"},
    14: {"BatchNormalization.training_mode", "GRU.layout", "LSTM.layout", "RNN.layout", "Reshape.allowzero"},
    15: {"Shape.start"},
    16: {"ScatterElements.reduction", "ScatterND.reduction"},
    18: {
        "LpPool.ceil_mode",
        *(f"Reduce{name}.noop_with_empty_axes" for name in REDUCTIONS),
        "Resize.antialias",
        "Resize.keep_aspect_ratio_policy",
    },
    19: {"Cast.saturate", "CastLike.saturate", "QuantizeLinear.saturate"},
    21: {
        "DequantizeLinear.block_size",
        "GroupNormalization.stash_type",
        "QuantizeLinear.block_size",
        "QuantizeLinear.output_dtype",
    },
    23: {"DequantizeLinear.output_dtype", "QuantizeLinear.precision"},
    24: {"Cast.round_mode", "CastLike.round_mode"},
    25: {"Attention.left_window_size", "Attention.right_window_size"},
}
"""New attributes whose default says what the operator did before them."""
SAID_BY_A_RULE = {13: {"DequantizeLinear.axis", "QuantizeLinear.axis"}, 16: {"RoiAlign.coordinate_transformation_mode"}}
"""New attributes whose default does not; a rule must look at them."""


@pytest.mark.parametrize("opset", range(12, REVIEWED_UP_TO + 1))
def test_every_new_default_has_been_reviewed(opset):
    if opset > onnx.defs.onnx_opset_version():
        pytest.skip("the installed onnx does not know this opset")
    names = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""}
    versions = [(name, schema.find(name, opset - 1), schema.find(name, opset)) for name in sorted(names)]
    new = {
        f"{name}.{attribute}"
        for name, before, after in versions
        if before is not None and after is not None
        for attribute, known in after.attributes.items()
        if attribute not in before.attributes and known.default_value.name
    }
    assert new == MEANS_AS_BEFORE.get(opset, set()) | SAID_BY_A_RULE.get(opset, set())
    assert all(opset in RULES[name.partition(".")[0]] for name in SAID_BY_A_RULE.get(opset, ()))


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (ir.TensorType(ir.DataType.BFLOAT16), "tensor(bfloat16)"),
        (ir.SequenceType(ir.TensorType(ir.DataType.INT64)), "seq(tensor(int64))"),
        (ir.OptionalType(ir.SequenceType(ir.TensorType(ir.DataType.FLOAT))), "optional(seq(tensor(float)))"),
        (ir.SparseTensorType(ir.DataType.DOUBLE), "sparse_tensor(double)"),
    ],
)
def test_types_are_spelt_as_in_schemas(of, name):
    assert schema.type_name(of) == name


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (
            "(float[2] x) => (float[2] y) {y = Nonsense(x)}",
            "no such operator in ONNX; change the model there",
        ),
        ("(float[2] x) => (float[2] y) {y = Elu<nonsense = 1>(x)}", "attribute nonsense=1 is newer than the opset"),
        ("(float[2] x) => (int64[2] y) {y = Cast(x)}", "attribute to is missing"),
        ("(float[2] x) => (float[2] y) {y = Add(x)}", "input B is missing"),
        ("(float[2] x, int64[2] z) => (float[2] y) {y = Add(x, z)}", "tensor.float. beside tensor.int64. for B"),
        ("(float[2] x) => (float[2] y, float[2] z) {y, z = Neg(x)}", "2 outputs are more than the 1"),
    ],
)
def test_what_no_opset_accepts(oracle, graph, reason):
    with pytest.raises(UnsupportedError, match=reason):
        oracle.converted(oracle.parse(20, graph), 19)


@pytest.mark.parametrize("opset", [15, 11])
def test_sequences_keep_their_types(oracle, opset):
    graph = """(float[4,2] x) => (float[2,2] y) {
        s = SplitToSequence(x, two) i = Constant<value_int = 1>() y = SequenceAt(s, i)}""".replace(
        "=> (float[2,2] y) {", "=> (float[2,2] y) <int64 two = {2}> {"
    )
    oracle.assert_same_numbers(oracle.parse(20, graph), opset)
