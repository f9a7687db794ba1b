"""Slices whose ends may lie beyond the axis: the file holds on both sides, whichever side the example is on."""

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch.torch_version import TorchVersion

from torch_onnx_compat import export_compat


def fill(x):
    y = x[:, -6:]
    return torch.cat([torch.zeros(y.shape[0], 6 - y.shape[1], 4), y], 1)


def pad(x):
    y = x[:, :6]
    return F.pad(y, (0, 0, 6 - y.shape[1], 0))


def average(x):
    y = x[:, -6:]
    return y.sum(1) / y.shape[1]


def count(x):
    y = x[:, 1:6]
    return (y + torch.arange(y.shape[1])[:, None]).flatten(1)


def decide(x):
    y = x[:, :6]
    return y.sum(1) if y.shape[1] == 6 else y.amax(1)


def middle(x):
    return x[:, 2:-2].sum(1), x[:, ::2], x[:, 3:7:2].sum(1)


@pytest.mark.skipif(TorchVersion(torch.__version__) < (2, 14), reason="older captures hold on the example's side")
@pytest.mark.parametrize("length", [4, 9])
@pytest.mark.parametrize(
    "function", [fill, pad, average, count, decide, middle], ids=lambda function: function.__name__
)
def test_both_sides_of_the_end(function, length, tmp_path):
    path = tmp_path / "model.onnx"
    export_compat(function, torch.randn(2, length, 4), path, dynamic={"x": {0: "n", 1: "t"}}, exporter="dynamo")
    session = onnxruntime.InferenceSession(path)
    for size in (1, 2, 5, 6, 7, 11):
        x = torch.randn(3, size, 4)
        wanted = function(x)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for found, right in zip(session.run(None, {"x": x.numpy()}), wanted, strict=True):
            np.testing.assert_allclose(found, right.numpy(), rtol=1e-5, atol=1e-6)
