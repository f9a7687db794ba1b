"""torch.export raises where values decide: a model that catches this error must not take it for its own."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat


class ByNumber(nn.Module):
    def forward(self, x):
        try:
            if x.flatten()[-1].item() != 1.5:
                raise RuntimeError("bad")
            x = x.roll(1, 0)
        except RuntimeError:
            x = torch.sigmoid(x)
        return x - 3


class ByTensor(nn.Module):
    def forward(self, x):
        try:
            if x.sum(-1).max() > 500:
                raise RuntimeError("bad")
            x = x * 2
        except RuntimeError:
            return x.clamp(-3, 3)
        return x + 1


class InFunction(nn.Module):
    def check(self, x):
        return x * 2 if int(x.abs().max()) < 100 else x - 1

    def forward(self, x):
        try:
            return self.check(x)
        except Exception:  # a model that catches all is what is tested
            return x + 7


class Caught(nn.Module):
    """The error of another statement is caught; nothing depends on values."""

    def forward(self, x):
        try:
            y = x.view(x.shape[0], 3, -1)
        except RuntimeError:
            y = x[..., None]
        return y * 2


INPUTS = [torch.full((4, 8), 1.5), torch.full((4, 8), 100.0), torch.full((3, 8), -200.0), torch.randn(5, 8)]


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("kind", [ByNumber, ByTensor, InFunction])
def test_the_file_is_right_or_there_is_none(kind, verify):
    model = kind().eval()
    try:
        result = export_compat(model, (torch.randn(4, 8),), exporter="dynamo", dynamic="batch", verify=verify)
    except CompatError:
        return
    for x in INPUTS:
        torch.testing.assert_close(result(x)[0], model(x))


def test_what_no_values_decide_is_exported():
    model = Caught().eval()
    result = export_compat(model, (torch.randn(4, 8),), exporter="dynamo", dynamic="batch")
    for x in INPUTS:
        torch.testing.assert_close(result(x)[0], model(x))
