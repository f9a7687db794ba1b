"""Splits of a dynamic size become slices, right at every size."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.graph.tidy.sequences import slice_split_sequences

SPLIT = """<ir_version: 10, opset_import: ["" : 20]>
agraph (float[n, 2] x, int64 size) => (float[a, 2] y, float[b, 2] z) {
  zero = Constant<value = int64 {0}>() one = Constant<value = int64 {1}>()
  parts = SplitToSequence<axis = 0>(x, size) y = SequenceAt(parts, zero) z = SequenceAt(parts, one)
}"""


def run(model, size):
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    x = np.arange(14, dtype=np.float32).reshape(7, 2)
    return session.run(None, {"x": x, "size": np.asarray(size, np.int64)})


@pytest.mark.parametrize("size", [4, 5, 3])
def test_the_same_values(size):
    model = ir.from_onnx_text(SPLIT)
    before = run(model, size)
    slice_split_sequences(model)
    assert not any(n.outputs[0].uses() for n in model.graph if n.op_type == "SplitToSequence")
    assert {"Slice"} <= {n.op_type for n in model.graph}
    for a, b in zip(before, run(model, size), strict=True):
        np.testing.assert_array_equal(a, b)


def test_other_sequences_are_left_alone():
    model = ir.from_onnx_text(SPLIT.replace("int64 {1}", "int64 {-1}"))
    slice_split_sequences(model)
    assert "Slice" not in {n.op_type for n in model.graph}


def test_a_list_of_one_size_is_left_alone():
    """As torch.export writes the split of a jacobian; a list of sizes is no single size."""
    model = ir.from_onnx_text(
        """<ir_version: 10, opset_import: ["" : 20]> agraph (float[n, 2] x) => (float[a, 2] y) {
        zero = Constant<value = int64 {0}>() sizes = Constant<value = int64[1] {7}>()
        parts = SplitToSequence<axis = 0>(x, sizes) y = SequenceAt(parts, zero) }"""
    )
    slice_split_sequences(model)
    assert "SplitToSequence" in {n.op_type for n in model.graph}


class Halves(nn.Module):
    def forward(self, x, y):
        one, other = torch.split(torch.cat([x, y]), x.shape[0])
        return one * 2 + other


def test_a_model_that_splits_by_its_batch():
    """TorchScript freezes the split, which verification finds; dynamo writes the sequence."""
    result = export_compat(Halves(), (torch.rand(2, 3), torch.rand(2, 3)), dynamic="batch")
    assert result.exporter == "dynamo"
    assert not result.nodes.keys() & {"SplitToSequence", "SequenceAt"}


def test_a_map_over_known_parts_is_unrolled():
    """hstack asks for the rank of every part in a SequenceMap, whose body onnxruntime cannot read constants from."""

    class Stack(torch.nn.Module):
        def forward(self, x):
            return torch.hstack((x, x * 2)), torch.column_stack((x[:, 0], x))

    result = export_compat(Stack(), (torch.rand(3, 4),), dynamic="batch", exporter="dynamo")
    assert result.table
    assert not {"SequenceMap", "SequenceConstruct"} & set(result.nodes)
