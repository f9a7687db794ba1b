"""Models that round each layer to eight bits: what they decide otherwise after a rounding, and real errors beside."""

import pytest
import torch
from torch import nn
from torch.ao import quantization

from torch_onnx_compat import Verify
from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.quantized import is_quantized
from torch_onnx_compat.check.rounding import compare_outputs
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import prepare

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
X = torch.randn(1, 3, 24, 24, generator=torch.Generator().manual_seed(1))


def model():
    """A deep quantized network with random weights, whose steps depend on each other."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Conv2d(16 if i else 3, 16, 3, padding=1), nn.ReLU()) for i in range(8)]
        floating = quantization.QuantWrapper(nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 24 * 24, 200)))
    floating.eval().qconfig = quantization.QConfig(
        activation=quantization.default_observer, weight=quantization.default_per_channel_weight_observer
    )
    quantization.prepare(floating, inplace=True)
    with torch.no_grad():
        floating(X)
    return quantization.convert(floating).eval()


def verdict(change, how=None):
    prepared = prepare(model(), (X,))
    observation = Observation(prepared)
    case = Case("example", prepared.inputs, observation.reference("example", prepared.inputs))
    (wanted,) = case.reference.outputs
    (row,) = compare_outputs(["output"], [change(wanted.clone()).numpy()], case, how or Verify(), observation)
    return row


def step(output):
    values = output.unique()
    return (values[1:] - values[:-1]).min()


def nudged(share):
    def change(output):
        sign = torch.rand(output.shape, generator=torch.Generator().manual_seed(0))
        return output + step(output) * ((sign < share / 2).float() - (sign > 1 - share / 2).float())

    return change


def test_knows_quantized_models():
    assert is_quantized(model())
    assert not is_quantized(nn.Linear(2, 2))
    assert not is_quantized(torch.relu)


def test_steps_of_its_own_pass():
    row = verdict(nudged(0.1))
    assert row.ok
    assert "eager torch's own" in row.detail


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda o: o + 8 * step(o), id="all off by eight steps"),
        pytest.param(lambda o: o.flip(1), id="another order"),
        pytest.param(lambda o: o * 0, id="nothing"),
        pytest.param(lambda o: o[:, :-1], id="another shape"),
        pytest.param(lambda o: o / 0, id="not finite"),
    ],
)
def test_errors_do_not(change):
    assert not verdict(change).ok


def test_the_callers_tolerance_is_the_last_word():
    assert not verdict(nudged(0.1), Verify(rtol=1e-3)).ok
