import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

USES = ("one_hot_of_largest",)
X = torch.tensor([[0, 3, 1], [2, 2, 0]])
OTHER = torch.tensor([[5, 0, 0], [1, 7, 3], [0, 0, 2]])


def many(x):
    return F.one_hot(x), F.one_hot(input=x[:, 0], num_classes=-1), F.one_hot(x.reshape(-1, 1, 3) % 2)


def test_matches(exporter):
    assert_same_outputs(many, X, exporter, dynamic="batch", samples=[(OTHER,)], uses=USES)


def test_applied():
    result = assert_same_outputs(lambda x: F.one_hot(x), X, "torchscript", uses=USES)
    assert "Equal" in result.nodes


def test_a_number_of_classes_is_left_alone(exporter):
    result = assert_same_outputs(lambda x: F.one_hot(x, 4), X, exporter, samples=[(X.flip(0),)], verify=False)
    assert not result.applied


def test_sentinel():
    @rewrite(F.one_hot, name="one_hot_of_largest", needed_on=EXPORTERS, registry=None)
    def broken(input, num_classes=-1):
        return (input.unsqueeze(-1) == torch.arange(4)).to(torch.int64)

    with pytest.raises(VerificationError):
        assert_same_outputs(many, X, "torchscript", dynamic="batch", samples=[(OTHER,)], rewrites=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError):
        assert_same_outputs(many, X, exporter, dynamic="batch", samples=[(OTHER,)], exclude=USES)
