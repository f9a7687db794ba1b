import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "random_to_input"
REASON = "draw them outside and pass them to the model as an input"
X = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.1, -0.3]])


def test_declines(exporter):
    with pytest.raises(CompatError, match=REASON):
        assert_same_outputs(lambda x: x + torch.rand_like(x), X, exporter)


def test_near_misses_are_left_alone(exporter):
    result = assert_same_outputs(lambda x: x + torch.zeros_like(x), X, exporter)
    assert not result.declined


def test_still_needed():
    with pytest.raises(CompatError) as caught:
        assert_same_outputs(lambda x: x + torch.rand_like(x), X, "torchscript", exclude=[NAME])
    assert REASON not in str(caught.value)


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: torch.multinomial(x.exp(), 2),
        lambda x: F.gumbel_softmax(x),
        lambda x: torch.bernoulli(x.sigmoid()),
        lambda x: x + torch.randn(3),
        lambda x: x.clone().uniform_(),
        lambda x: torch.normal(x, x.abs()),
    ],
)
def test_every_kind_declines(draw):
    with pytest.raises(CompatError, match=REASON):
        assert_same_outputs(draw, X, "torchscript")


def test_is_written_without_verification():
    result = assert_same_outputs(lambda x: x + torch.rand_like(x), X, "torchscript", verify=False)
    assert "RandomUniformLike" in result.nodes
