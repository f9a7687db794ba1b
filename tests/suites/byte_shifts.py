"""Shifts of bytes."""

import pytest
import torch

from torch_onnx_compat import symbolic
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

ARGS = (
    torch.tensor([[0, 9, 200], [25, 255, 128]], dtype=torch.uint8),
    torch.tensor([[0, 1, 3], [9, 1, 7]], dtype=torch.uint8),
)


class ByteShiftTests:
    name: str

    def shift(self, x, y):
        return getattr(torch, self.name)(x, y)

    def many(self, x, y):
        return self.shift(x, y), self.shift(x, 2), self.shift(x, 1), self.shift(x, 11)

    def test_matches(self, exporter):
        assert_entry(self.name, self.many, ARGS, exporter, dynamic={"x": {0: "batch"}, "y": {0: "batch"}})

    def test_applied(self):
        result = assert_same_outputs(self.shift, ARGS, "dynamo", uses=(self.name,))
        assert result.nodes["BitShift"] == 1

    def test_near_misses_are_left_alone(self):
        result = assert_same_outputs(lambda x, y: self.shift(x.int(), y.int()), ARGS, "dynamo")
        assert self.name not in {note.entry for note in result.applied}

    def test_sentinel(self):
        @symbolic(f"aten::{self.name}", name=self.name, needed_on=("dynamo",), registry=None)
        def broken(op, self, other):
            return op.Identity(self)

        with pytest.raises(VerificationError, match="does not compute what the model computes"):
            assert_same_outputs(self.shift, ARGS, "dynamo", symbolics=[broken])

    def test_still_needed(self, exporter):
        assert_still_needed(self.name, self.many, ARGS, exporter)
