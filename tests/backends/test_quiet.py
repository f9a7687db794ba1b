"""A failing export says one readable thing, and what the model itself prints comes through."""

import sys

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat


class Decides(nn.Module):
    def forward(self, x):
        print("the model's own line", file=sys.stderr)
        if x[x > 0].sum() > 1:
            return x + 1
        return x - 1


def test_torch_export_prints_no_program(capsys):
    with pytest.raises(CompatError):
        export_compat(Decides(), torch.randn(3, 4), exporter="dynamo", control_flow=False)
    printed = capsys.readouterr().err
    assert "def forward" not in printed
    assert set(printed.splitlines()) == {"the model's own line"}


def test_the_streams_are_put_back():
    before = sys.stderr
    with pytest.raises(CompatError):
        export_compat(Decides(), torch.randn(3, 4), exporter="dynamo", control_flow=False)
    assert sys.stderr is before
