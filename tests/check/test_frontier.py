"""A batch of 1 is asked about once more only where the model's Python may go another way there."""

import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.questions.run import SymbolicRuns


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.conv, self.linear, self.function = nn.Conv2d(3, 4, 3), nn.Linear(4, 5), function

    def forward(self, x):
        return self.function(self, x)


def convolves(self, x):
    x = F.max_pool2d(F.relu(self.conv(x)), 2)
    return self.linear(x.mean((2, 3))).view(x.shape[0], -1) @ torch.ones(5, 2)


def decides(self, x):
    return self.conv(x) * 2 if x.shape[0] == 1 else self.conv(x)


def decides_late(self, x):
    x = self.conv(x)
    if x.shape[0] < 2 and x.sum() > 0:
        return x - 1
    return x


def squeezes(self, x):
    x = self.conv(x).mean((1, 2, 3), keepdim=True).squeeze()
    return x * 2 if x.dim() == 0 and x.sum() > 0 else x


@pytest.mark.parametrize(
    ("function", "again"), [(convolves, False), (decides, True), (decides_late, True), (squeezes, True)]
)
@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_runs_at_a_batch_of_one(function, again, exporter, tmp_path, monkeypatch):
    asked = []
    plain = SymbolicRuns.at
    monkeypatch.setattr(SymbolicRuns, "at", lambda self, sizes: asked.append(dict(sizes)) or plain(self, sizes))
    model = Model(function).eval()
    path = tmp_path / "model.onnx"
    try:
        export_compat(
            model,
            (torch.randn(1, 3, 8, 8),),
            str(path),
            input_names=["x"],
            dynamic_axes={"x": {0: "batch"}},
            exporter=exporter,
        )
    except CompatError:
        assert again, "refused"
        assert {"batch": 1} in asked
        return
    assert ({"batch": 1} in asked) == again
    session = ort.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    for batch in (1, 2, 3, 4, 7):
        for sign in (1, -1):
            x = sign * torch.randn(batch, 3, 8, 8).abs()
            torch.testing.assert_close(
                torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x).detach(), rtol=1e-4, atol=1e-5
            )
