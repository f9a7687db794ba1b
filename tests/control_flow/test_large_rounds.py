"""Rounds that no input at hand has make no tensors that fill the memory."""

import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.control_flow import large_rounds


class PrefixSums(nn.Module):
    """Sums in steps that double, as scans are written."""

    def forward(self, x):
        length, step = x.shape[1], 1
        while step < length:
            x = x + F.pad(x, (step, 0))[:, :length]
            step *= 2
        return x


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_steps_that_double(exporter, tmp_path, monkeypatch):
    largest = []
    plain = large_rounds.LargeRounds.watch

    def watch(self, func, args, kwargs):
        result = plain(self, func, args, kwargs)
        largest.append(result.untyped_storage().nbytes() if isinstance(result, torch.Tensor) else 0)
        return result

    monkeypatch.setattr(large_rounds.LargeRounds, "watch", watch)
    path, model = tmp_path / "model.onnx", PrefixSums().eval()
    export_compat(
        model,
        (torch.randn(2, 12),),
        str(path),
        input_names=["x"],
        dynamic_axes={"x": {0: "batch", 1: "length"}},
        exporter=exporter,
    )
    assert largest
    assert max(largest) <= 4 * large_rounds.LEAST
    session = ort.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    for shape in ((1, 1), (2, 7), (3, 64), (2, 100)):
        x = torch.randn(shape)
        found = torch.from_numpy(session.run(None, {"x": x.numpy()})[0])
        torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-4)
