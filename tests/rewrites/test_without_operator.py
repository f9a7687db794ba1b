import pytest
import torch

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "without_operator"
REASON = "compute its result outside and pass it to the model as an input"
X = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.1, -0.3]])


def test_declines(exporter):
    with pytest.raises(CompatError, match=REASON):
        assert_same_outputs(lambda x: torch.nextafter(x, x + 1), X, exporter)


def test_near_misses_are_left_alone(exporter):
    result = assert_same_outputs(lambda x: torch.lerp(x, x + 1, 0.5), X, exporter)
    assert not result.declined


def test_still_needed():
    with pytest.raises(CompatError) as caught:
        assert_same_outputs(lambda x: torch.nextafter(x, x + 1), X, "torchscript", exclude=[NAME])
    assert REASON not in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.gcd(x.long(), x.long() + 4),
        lambda x: torch.frexp(x)[0],
        lambda x: torch.polygamma(1, x.abs() + 1),
        lambda x: torch.special.ndtri(x.sigmoid()),
        lambda x: torch.special.i1(x),
    ],
)
def test_every_kind_declines(function):
    with pytest.raises(CompatError, match=REASON):
        assert_same_outputs(function, X, "torchscript")
