import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "repeat_interleave_by_size"
X = torch.randn(2, 4, 3)
TIMES = torch.tensor([2, 0, 3, 1])


def by_size(x):
    return x[:, :2].repeat_interleave(x.shape[0], 1), x[0].repeat_interleave(x.shape[0]), x.repeat_interleave(0, -1)


def test_matches():
    assert_same_outputs(by_size, (X,), "dynamo", dynamic="batch", uses=(NAME,))


def test_matches_with_torchscript():
    assert_same_outputs(by_size, (X,), "torchscript", dynamic="batch")


def test_matches_with_output_size():
    result = assert_same_outputs(
        lambda x, times: torch.repeat_interleave(x, times, 1, output_size=6),
        (X, TIMES),
        "dynamo",
        dynamic={"x": {0: "batch"}},
        samples=[(torch.randn(3, 4, 3), torch.tensor([1, 1, 4, 0]))],
        uses=(NAME,),
    )
    assert "Gather" in result.nodes


def test_fixed_numbers_are_left_alone():
    result = assert_same_outputs(lambda x: x.repeat_interleave(2, 1), (X,), "dynamo", dynamic="batch")
    assert not result.applied


def test_sentinel():
    @rewrite(torch.repeat_interleave, name=NAME, needed_on=("dynamo",), registry=None)
    def broken(input, repeats=None, dim=None, *, output_size=None):
        return catalogue()[NAME].body(input.flip(dim), repeats, dim)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x: x[:, :2].repeat_interleave(x.shape[0], 1), (X,), "dynamo", dynamic="batch", rewrites=[broken]
        )


def test_still_needed():
    with pytest.raises(CompatError):
        assert_same_outputs(
            lambda x: x[:, :2].repeat_interleave(x.shape[0], 1), (X,), "dynamo", dynamic="batch", exclude=[NAME]
        )
