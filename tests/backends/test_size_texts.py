"""Texts of sizes: messages and keys of caches are harmless, other texts decide something that a file cannot hold."""

import logging

import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat


class Tells(nn.Module):
    def forward(self, x):
        logging.getLogger("model").info("%s %s", x.shape, f"{x.shape[0]}")
        if x.shape[1] == 0:
            raise ValueError(f"no columns: {x.shape}")
        return x * 2


class Stores(nn.Module):
    def __init__(self):
        super().__init__()
        self.ramps = {}

    def forward(self, x):
        key = f"{x.shape[0]}x{x.shape[1]}"
        if key not in self.ramps:
            self.ramps[key] = torch.arange(x.shape[1])
        return x + self.ramps[key]


class LooksUp(nn.Module):
    """The example has no entry, and few sizes have."""

    def forward(self, x):
        return x * {"16": 3.0}.get(str(x.shape[1]), 1.0)


def export(model, exporter="dynamo"):
    return export_compat(model.eval(), torch.randn(3, 12), dynamic={"x": {0: "b", 1: "w"}}, exporter=exporter)


@pytest.mark.parametrize("kind", [Tells, Stores])
def test_harmless_texts(kind):
    session = onnxruntime.InferenceSession(export(kind()).model_bytes)
    for shape in ((1, 3), (3, 12), (4, 16), (2, 31)):
        x = torch.randn(shape)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), kind()(x))


def test_a_text_that_is_looked_up(exporter):
    with pytest.raises(CompatError, match="would freeze"):
        export(LooksUp(), exporter)
