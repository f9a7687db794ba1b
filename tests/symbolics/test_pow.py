import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "pow"
ARGS = (torch.rand(2, 5) + 0.5, torch.tensor([[1, 2, 0, -1, 3], [4, 1, 2, 1, -2]]))
DYNAMIC = {"f": {0: "batch"}, "i": {0: "batch"}}


def many(f, i):
    short, small = i.int(), i.abs() + 1
    return (
        torch.pow(f, f.double() * 3),
        small**f,
        (short.abs() + 1) ** small,
        (f > 0.9) ** f,
        small[:, :1] ** f.double(),
        small[0, 0] ** f,
        f ** f.double()[0, 0],
    )


def one(f, i):
    return (i.abs() + 1) ** f


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC)


def test_halves(exporter):
    assert_same_outputs(lambda f, i: i.abs() ** f.half(), ARGS, exporter, dynamic=DYNAMIC)


def test_one_type_and_numbers_are_left_alone():
    result = assert_same_outputs(lambda f, i: (f**i, f**f, i**2, i**0.5, 2.5**i, 2**f, f**2), ARGS, "dynamo")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_oracle_bites():
    @symbolic("aten::pow", name=NAME, needed_on=("dynamo",), registry=None)
    def broken(op: Ops, self: Value, exponent: Value) -> Value:
        return op.Pow(self, exponent)

    with pytest.raises(VerificationError):
        assert_same_outputs(one, ARGS, "dynamo", symbolics=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, one, ARGS, exporter)
