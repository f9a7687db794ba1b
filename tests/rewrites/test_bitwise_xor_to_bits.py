import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "bitwise_xor_to_bits"
NEEDED_ON = ("torchscript",)
ARGS = (
    torch.tensor([[2, -3, 4], [99, -(2**62) - 5, 2**62 + 9]]),
    torch.tensor([[7, -6, 1], [-(2**63), 1, 2**62 + 12]]),
)


def many(i, j):
    return (
        torch.bitwise_xor(i, j),
        i ^ j,
        i ^ 6,
        -5 ^ i,
        i.int() ^ j.to(torch.int8),
        (i > 0) ^ j,
        i.clamp(0, 99).byte() ^ 15,
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["i", "j"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=40, deadline=None)
def test_equals_eager(a, b):
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        x, y = torch.tensor([a, b]).to(dtype), torch.tensor([b, b]).to(dtype)
        assert torch.equal(catalogue()[NAME].body(x, y), x ^ y)


def test_booleans_take_one_node(exporter):
    result = assert_same_outputs(lambda i, j: (i > 0) ^ (j > 0), ARGS, exporter)
    assert result.nodes["Xor"] == 1
    assert set(result.nodes) <= {"Cast", "Constant", "Greater", "Xor"}


def test_sentinel():
    @rewrite(torch.bitwise_xor, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] + args[1]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, j: torch.bitwise_xor(i, j), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
