import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "tensor_unfold_to_take"
X = torch.randn(3, 7, 9)
DYNAMIC = {"x": {0: "batch", 2: "length"}}


def many(x):
    """Every axis, overlapping or with gaps, one window, one cell, twice, other types."""
    return (
        *(x.unfold(-1, 3, 2), x.unfold(1, 4, 1), x.unfold(0, 2, 1), x.unfold(1, 2, 3), x.unfold(1, 7, 1)),
        *(
            x.unfold(2, 1, 2),
            x.unfold(1, 2, 2).unfold(2, 3, 3),
            (x * 9).long().unfold(1, 3, 2),
            (x > 0).unfold(-1, 2, 2),
        ),
    )


@pytest.mark.parametrize("dynamic", [None, DYNAMIC], ids=["fixed", "dynamic"])
def test_matches(dynamic):
    samples = [(torch.randn(2, 7, 12),)] if dynamic else []
    assert_same_outputs(many, (X,), "torchscript", dynamic=dynamic, samples=samples, uses=(NAME,))


def test_matches_with_dynamo():
    result = assert_same_outputs(lambda x: (x.unfold(-1, 3, 2), x.unfold(1, 4, 1)), (X,), "dynamo", dynamic="batch")
    assert not result.applied


@given(
    size=st.integers(1, 9), window=st.integers(1, 9), step=st.integers(1, 5), axis=st.sampled_from([0, 1, 2, -1, -2])
)
@settings(max_examples=100, deadline=None)
def test_equals_eager(size, window, step, axis):
    assume(window <= size)
    shape = [2, 3, 4]
    shape[axis] = size
    x = torch.randn(shape)
    assert torch.equal(catalogue()[NAME].body(x, axis, window, step), x.unfold(axis, window, step))


def test_takes_one_node_on_the_last_axis():
    result = assert_same_outputs(lambda x: x.unfold(-1, 3, 2), (X,), "torchscript", dynamic="batch", uses=(NAME,))
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == {"Gather": 1}


def test_unfold_of_images_is_left_alone():
    x = torch.randn(1, 2, 4, 5)
    result = assert_same_outputs(lambda x: torch.nn.functional.unfold(x, 2), (x,), "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.Tensor.unfold, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(self, dimension, size, step):
        return catalogue()[NAME].body(self, dimension, size, step).flip(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x.unfold(-1, 3, 2), (X,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(VerificationError, match="shape"):
        assert_same_outputs(lambda x: x.unfold(-1, 3, 2), (X,), "torchscript", exclude=[NAME])
    with pytest.raises(CompatError, match="input size not accessible"):
        assert_same_outputs(lambda x: x.unfold(-1, 3, 2), (X,), "torchscript", dynamic=DYNAMIC, exclude=[NAME])
