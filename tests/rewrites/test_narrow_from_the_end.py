import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "narrow_from_the_end"
X = torch.randn(2, 7, 5)
DYNAMIC = {"x": {0: "batch", 2: "length"}}


def many(x):
    return x.narrow(1, -3, 3), torch.narrow(x, -1, -5, 5), x.narrow(2, -1, 1), x.narrow(-2, -7, 0)


@pytest.mark.parametrize("dynamic", [None, "batch"])
def test_matches(dynamic):
    assert_same_outputs(many, (X,), "torchscript", dynamic=dynamic, uses=(NAME,))


def test_matches_at_dynamic_sizes():
    def call(x):
        return torch.cat([x, x, x], 2).narrow(2, -3, 3)

    assert_same_outputs(call, (X,), "torchscript", dynamic=DYNAMIC, uses=(NAME,))


def test_matches_with_dynamo():
    assert_same_outputs(many, (X,), "dynamo", dynamic="batch")


def test_other_pieces_are_left_alone():
    result = assert_same_outputs(
        lambda x: (x.narrow(1, 2, 3), x.narrow(1, -3, 2)), (X,), "torchscript", dynamic="batch"
    )
    assert set(result.nodes) - {"Constant"} == {"Slice"}
    assert not result.applied


def test_sentinel():
    @rewrite(torch.narrow, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, dim, start, length):
        return torch.narrow(input, dim, -start, length)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x.narrow(1, -3, 3), (X,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="shape"):
        assert_same_outputs(lambda x: x.narrow(1, -3, 3), (X,), "torchscript", exclude=[NAME])
