import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "rot90_to_flip"
X = torch.randn(2, 3, 4, 5)
DYNAMIC = {"x": {0: "batch", 2: "height"}}


def many(x):
    unchanged = x.rot90(4, (1, 2))
    unchanged += 1
    turns = (torch.rot90(x, k, dims) for k in (1, 2, 3, -1, 5) for dims in ((2, 3), (-1, -3)))
    return *turns, unchanged, x.rot90(), torch.rot90(x, dims=[0, 2]), (x > 0).rot90(1, (1, 2))


def test_matches(exporter):
    assert_entry(NAME, many, (X,), exporter, dynamic=DYNAMIC)


def test_takes_two_nodes():
    result = assert_same_outputs(lambda x: x.rot90(1, (2, 3)), (X,), "torchscript", dynamic=DYNAMIC, uses=(NAME,))
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == {"Slice": 1, "Transpose": 1}


def test_flip_is_left_alone():
    assert not assert_same_outputs(lambda x: x.flip(1), (X,), "torchscript").applied


def test_sentinel():
    @rewrite(torch.rot90, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, k=1, dims=(0, 1)):
        return input.flip(dims[0]).transpose(*dims)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x.rot90(1, (2, 3)), (X,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="aten::rot90"):
        assert_same_outputs(lambda x: x.rot90(1, (2, 3)), (X,), "torchscript", exclude=[NAME])
