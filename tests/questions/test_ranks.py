"""Sizes that decide together, by being 1, how many axes a tensor has: the example may be no witness of some ranks."""

import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat

AXES = {"x": {0: "b", 2: "h", 3: "w"}}


class AddsAnAxis(nn.Module):
    """Three axes are left where exactly one of the sizes is 1, and only then is there another one."""

    def forward(self, x):
        y = x.squeeze()
        if y.dim() == 3:
            y = y.unsqueeze(0)
        return y + 1


class AddsAnAxisLater(nn.Module):
    def forward(self, x):
        y = (x.squeeze(3) * 2).relu().squeeze(2).squeeze(0)
        return y.unsqueeze(0) if y.ndim == 3 else y


class KeepsTheRest(nn.Module):
    def forward(self, x):
        return x.squeeze() * 2


@pytest.mark.parametrize("model", [AddsAnAxis, AddsAnAxisLater])
def test_every_rank_is_tried(model, exporter):
    with pytest.raises(CompatError):
        export_compat(model().eval(), torch.randn(1, 3, 1, 1), dynamic=AXES, exporter=exporter)


def test_a_model_that_is_right_at_every_rank_stays_so(exporter):
    result = export_compat(KeepsTheRest().eval(), torch.randn(1, 3, 1, 1), dynamic=AXES, exporter=exporter)
    session = onnxruntime.InferenceSession(result.model_bytes)
    for shape in ((1, 3, 1, 1), (2, 3, 1, 1), (2, 3, 4, 1), (1, 3, 4, 5), (2, 3, 4, 5)):
        x = torch.randn(shape)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), x.squeeze() * 2)
