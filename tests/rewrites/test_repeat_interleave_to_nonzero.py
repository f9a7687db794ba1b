import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "repeat_interleave_to_nonzero"
X = torch.randn(2, 4, 3)
TIMES = torch.tensor([2, 0, 3, 1])
DYNAMIC = {"x": {0: "batch", 2: "width"}}


def many(x, times):
    return (
        *(x.repeat_interleave(times, 1), torch.repeat_interleave(x, times, dim=-2), torch.repeat_interleave(times)),
        *(x[0, :, 0].repeat_interleave(times), x.repeat_interleave(torch.tensor([2, 0, 1, 1]), 1)),
        *(torch.repeat_interleave(x, times, 1, output_size=6), (x > 0).repeat_interleave(times.int(), 1)),
    )


def test_matches():
    samples = [(torch.randn(3, 4, 5), torch.tensor([0, 5, 1, 0]))]
    assert_same_outputs(many, (X, TIMES), "torchscript", dynamic=DYNAMIC, samples=samples, uses=(NAME,))


def test_matches_on_an_axis_that_varies():
    dynamic = {"x": {1: "n"}, "times": {0: "n"}}
    samples = [(torch.randn(2, 6, 3), torch.tensor([1, 0, 0, 4, 1, 2]))]
    assert_same_outputs(
        lambda x, times: x.repeat_interleave(times, 1),
        (X, TIMES),
        "torchscript",
        dynamic=dynamic,
        samples=samples,
        uses=(NAME,),
    )


def test_matches_with_dynamo():
    result = assert_same_outputs(lambda x, times: x.repeat_interleave(times, 1), (X, TIMES), "dynamo", dynamic=DYNAMIC)
    assert NAME not in {note.entry for note in result.applied}


@given(times=st.lists(st.integers(0, 4), max_size=6))
@settings(max_examples=100, deadline=None)
def test_equals_eager(times):
    repeats = torch.tensor(times, dtype=torch.int64)
    x = torch.randn(2, len(times), 3)
    if len(times) != 1:
        assert torch.equal(catalogue()[NAME].body(x, repeats, 1), x.repeat_interleave(repeats, 1))
    assert torch.equal(catalogue()[NAME].body(repeats), torch.repeat_interleave(repeats))


def test_takes_few_nodes():
    result = assert_same_outputs(
        lambda x, times: x.repeat_interleave(times, 1), (X, TIMES), "torchscript", dynamic=DYNAMIC, uses=(NAME,)
    )
    assert result.nodes.total() - result.nodes["Constant"] <= 10
    assert not {"Loop", "SplitToSequence"} & set(result.nodes)


def test_one_number_is_left_alone():
    result = assert_same_outputs(
        lambda x: (x.repeat_interleave(2, 1), x.repeat_interleave(torch.tensor([2]), 1)), (X,), "torchscript"
    )
    assert not result.applied
    assert not result.declined


def test_sentinel():
    @rewrite(torch.repeat_interleave, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, repeats=None, dim=None, *, output_size=None):
        return catalogue()[NAME].body(input.flip(dim), repeats, dim)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, times: x.repeat_interleave(times, 1), (X, TIMES), "torchscript", rewrites=[broken]
        )


def test_still_needed():
    with pytest.raises(CompatError, match="shape"):
        assert_same_outputs(
            lambda x: x.repeat_interleave(torch.tensor([2, 0, 1, 1]), 1), (X,), "torchscript", exclude=[NAME]
        )
