"""Branches whose results have one shape at the example, and whose sizes values decide."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat


class Normalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x, mask):
        chosen = torch.nonzero(mask).flatten()
        rows = x[chosen]
        return self.norm(rows) if chosen.numel() > 0 else rows


def test_a_refusal_tells_that_values_decide_the_sizes():
    axes = {"x": {0: "rows"}, "mask": {0: "rows"}}
    with pytest.raises(CompatError, match=r"in both branches here, but values decide its sizes"):
        export_compat(Normalized().eval(), (torch.rand(6, 4), torch.rand(6) > 0.3), dynamic=axes, exporter="dynamo")
