"""Models that round each layer to eight bits: what they decide otherwise after a rounding, and real errors beside."""

import pytest
import torch
from onnx import numpy_helper
from torch import nn
from torch.ao import quantization
from torch.ao.quantization import quantize_fx

from torch_onnx_compat import Verify, export_compat
from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.quantized import is_quantized
from torch_onnx_compat.check.rounding import compare_outputs
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import prepare
from torch_onnx_compat.session import open_session

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


def test_knows_graphs_that_round_to_steps():
    """As PT2E and FX write them: torch.fx modules without any module of torch.ao."""

    class Steps(nn.Module):
        def forward(self, x):
            steps = torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8)
            return torch.ops.quantized_decomposed.dequantize_per_tensor(steps, 0.1, 0, -128, 127, torch.int8)

    class Floats(nn.Module):
        def forward(self, x):
            return torch.relu(x).to(torch.float64)

    assert is_quantized(nn.Sequential(torch.fx.symbolic_trace(Steps())))
    assert not is_quantized(torch.fx.symbolic_trace(Floats()))


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


def mlp():
    """Layers without a skip, by FX: one value in a hundred falls to another step in an engine's integer kernels."""
    rows = [torch.randn(4, 64, generator=torch.Generator().manual_seed(n)) for n in range(8)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        floating = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)).eval()
    prepared = quantize_fx.prepare_fx(floating, quantization.get_default_qconfig_mapping("fbgemm"), (rows[0],))
    for batch in rows:
        prepared(batch)
    return quantize_fx.convert_fx(prepared), rows[0]


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_values_that_fall_to_other_steps_at_large_batches_pass(exporter):
    quantized, rows = mlp()
    result = export_compat(quantized, rows, dynamic="batch", exporter=exporter)
    assert any(row.case.startswith("batch=") and "eager torch's own" in row.detail for row in result.table)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_bias_that_is_off_by_steps_does_not_pass(steps):
    """In one layer of the file; the verdict is that of a batch of 128."""
    quantized, rows = mlp()
    proto = export_compat(quantized, rows, dynamic="batch", exporter="dynamo").model_proto
    gemms = [node for node in proto.graph.node if node.op_type == "Gemm"]
    (scale,) = _scales(proto, gemms[0])
    tensors = {t.name: t for t in proto.graph.initializer}
    bias = tensors[gemms[0].input[2]]
    off = numpy_helper.to_array(bias) + steps * float(numpy_helper.to_array(tensors[scale]).reshape(-1)[0])
    bias.CopyFrom(numpy_helper.from_array(off.astype("float32"), bias.name))
    inputs = torch.randn(128, 64, generator=torch.Generator().manual_seed(9))
    prepared = prepare(quantized, (inputs,))
    observation = Observation(prepared)
    case = Case("example", prepared.inputs, observation.reference("example", prepared.inputs))
    found = open_session(proto.SerializeToString()).run(None, {proto.graph.input[0].name: inputs.numpy()})
    (row,) = compare_outputs(["output"], found, case, Verify(), observation)
    assert not row.ok


def _scales(proto, gemm):
    """Names of the scales of the QuantizeLinear behind a product and its ReLU."""
    names = {gemm.output[0]}
    for node in proto.graph.node:
        if node.op_type == "Relu" and node.input[0] in names:
            names.add(node.output[0])
    return [node.input[1] for node in proto.graph.node if node.op_type == "QuantizeLinear" and node.input[0] in names]
