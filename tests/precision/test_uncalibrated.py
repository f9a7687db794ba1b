"""Dynamic(...) and WeightOnly(...): what is in few bits, judged, kept and refused."""

import logging
import subprocess
import sys

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, Dynamic, WeightOnly, export_compat
from torch_onnx_compat.errors import ArgumentError


class Text(nn.Module):
    """Attention, linear layers of two and three axes, an LSTM."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
        self.lstm, self.head = nn.LSTM(32, 24, batch_first=True), nn.Linear(24, 6)

    def forward(self, x):
        return self.head(self.lstm(self.layer(x))[0][:, -1])


class Wild(nn.Module):
    """The layer `wild` has one channel whose weights are a thousand times the others, of which little is left."""

    def __init__(self):
        super().__init__()
        self.first, self.wild, self.last = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 4)
        with torch.no_grad():
            self.first.weight[0] *= 1e-6
            self.first.bias[0] = 0.0
            self.wild.weight[:, 0] *= 1e4

    def forward(self, x):
        return self.last(self.wild(self.first(x)).tanh())


class Flow(nn.Module):
    """A layer before, one in and one after a loop of the file."""

    def __init__(self):
        super().__init__()
        self.before, self.inside, self.after = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        y = x = self.before(x).relu()
        for _ in range(int(x.shape[0])):
            y = torch.tanh(self.inside(y)) + x
        return self.after(y)


FORMS = [Dynamic(), WeightOnly(), WeightOnly(bits=4)]
ROWS = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(0))
by_name = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)


@pytest.fixture(scope="module")
def text():
    torch.manual_seed(0)
    return Text().eval()


@by_name
def test_the_file_is_smaller_and_near(text, exporter, form):
    result = export_compat(text, ROWS, dynamic="batch", exporter=exporter, precision=form)
    told = result.precision
    assert told.format == form.name
    assert 1e-4 < told.final.worst <= told.limit == 0.1
    assert told.calibrated_on == 0
    assert not [layer for layer in told.layers if layer.kept and layer.why != "it multiplies no weights"]
    plain = export_compat(text, ROWS, dynamic="batch", exporter=exporter)
    assert len(result.model_bytes) < 0.75 * len(plain.model_bytes)
    x = torch.randn(3, 5, 32)
    (found,) = result.session().run(None, {"x": x.numpy()})
    wanted = text(x).detach()
    assert 1e-4 < float((torch.from_numpy(found) - wanted).norm() / wanted.norm()) < 0.15


@pytest.mark.parametrize(
    ("form", "operators"),
    [
        (Dynamic(), {"MatMulInteger", "com.microsoft::DynamicQuantizeLSTM"}),
        (WeightOnly(bits=8), {"com.microsoft::MatMulNBits", "LSTM"}),
    ],
    ids=["dynamic", "weights"],
)
def test_its_operators(text, form, operators):
    assert operators <= set(export_compat(text, ROWS, precision=form).nodes)


def test_the_layer_that_loses_most_stays_in_float32():
    torch.manual_seed(0)
    model, x = Wild().eval(), torch.randn(8, 32)
    told = export_compat(model, x, precision=WeightOnly(bits=8, limit=0.1)).precision
    assert [layer.place.strip("/").split("/")[0] for layer in told.kept] == ["wild"]
    assert told.kept[0].effect == max(layer.effect for layer in told.layers)
    assert told.final.worst <= 0.1 < told.trials[0].worst


def test_places_that_are_kept(text):
    told = export_compat(text, ROWS, precision=Dynamic(keep=["head", "LSTM"])).precision
    assert [layer.op_type for layer in told.kept if layer.why == "keep"] == ["LSTM", "MatMul"]


def test_a_limit_that_nothing_holds(text):
    result = export_compat(text, ROWS, precision=WeightOnly(bits=4, limit=1e-5))
    assert "nothing is in int4-weights: no layer could be, or none within the limit." in result.precision.notes
    assert "com.microsoft::MatMulNBits" not in result.nodes


def test_a_metric_of_the_callers(text):
    seen = []

    def metric(outputs, wanted):
        seen.append(len(outputs))
        return 0.0

    assert export_compat(text, ROWS, precision=Dynamic(metric=metric)).precision.metric == "the caller's metric"
    assert set(seen) == {1}


@by_name
def test_layers_in_a_loop_stay(form):
    torch.manual_seed(0)
    model, x = Flow().eval(), torch.randn(3, 16)
    result = export_compat(model, x, dynamic="batch", precision=form)
    assert [layer.kept for layer in result.precision.layers] == [False, False]
    assert any("in branches, loops and functions stay in float32" in note for note in result.precision.notes)


def test_blocks_before_a_product(text):
    result = export_compat(text, ROWS, target="openvino", precision=WeightOnly(bits=4))
    assert result.nodes["DequantizeLinear"] == sum(not layer.kept for layer in result.precision.layers) >= 5
    assert result.opset == 21


@pytest.mark.parametrize(
    ("form", "options", "message"),
    [
        (Dynamic(), {"target": "opencv"}, r"'opencv' does not offer it \(quantization.dynamic\)"),
        (WeightOnly(), {"target": "openvino"}, r"'openvino' does not offer it \(quantization.weight_only_bits\)"),
        (WeightOnly(bits=4), {"target": "ncnn"}, "'ncnn' does not offer it"),
        (WeightOnly(bits=4), {"target": "openvino", "opset_version": 18}, "needs opset 21 or later, not 18"),
    ],
)
def test_what_a_target_does_not_offer(text, form, options, message):
    with pytest.raises(ArgumentError, match=message):
        export_compat(text, ROWS, precision=form, **options)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (Dynamic, {"metric": "top5"}, r"Dynamic\(metric='top5'\): wanted 'top1'"),
        (Dynamic, {"limit": 0}, "wanted a number above 0"),
        (Dynamic, {"keep": "head"}, "wanted a list"),
        (Dynamic, {"samples": "x"}, "wanted a list"),
        (WeightOnly, {"bits": 3}, "wanted 8 or 4"),
        (WeightOnly, {"block_size": 33}, "wanted one of"),
    ],
)
def test_bad_arguments(kind, arguments, message):
    with pytest.raises(CompatError, match=message):
        kind(**arguments)


def test_the_logging_is_left_alone():
    """onnxruntime's library configures the root logger when it is imported."""
    code = (
        "import logging, torch\n"
        "from torch_onnx_compat import export_compat\n"
        "before = logging.getLogger().level, list(logging.getLogger().handlers)\n"
        "export_compat(torch.nn.Linear(32, 4), torch.ones(1, 32), precision='int4-weights')\n"
        "assert before == (logging.getLogger().level, list(logging.getLogger().handlers))\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert logging.getLogger("onnxruntime.quantization").level == logging.NOTSET


def test_the_result_is_text_and_data(text):
    told = export_compat(text, ROWS, precision="int8-weights").precision
    assert "judged on 2 inputs" in str(told)
    assert "; nothing was calibrated" in str(told)
    assert told.to_dict()["format"] == "int8-weights"


def test_other_sizes_are_judged_too(text):
    told = export_compat(text, ROWS, dynamic="batch", precision="int8-dynamic").precision
    known = told.sizes["batch"]
    assert {found.size for found in told.elsewhere} >= {1, 2, 2 * known[-1]}
    assert f"of batch={known[0]}" in told.verdict
