"""Decisions on sizes that padding to whole windows makes equal at many sizes, at several scales of one model."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.candidates import Candidates


class Scales(nn.Module):
    """The shorter of two axes is one window at some scales; the example and a longer picture have two windows each."""

    def shift(self, x, stride):
        cells = x[::stride, ::stride]
        below, right = ((7 - size % 7) % 7 for size in cells.shape)
        height, width = nn.functional.pad(cells, (0, right, 0, below)).shape
        if height <= 7:
            x = x * 2
        if width <= 7:
            x = x - stride
        return x

    def forward(self, x):
        for stride in (4, 8, 16):
            x = self.shift(x, stride)
        return x


SIZES = [(112, 128), (112, 4), (4, 128), (112, 64), (60, 128), (177, 193), (16, 16), (300, 20)]


@pytest.mark.parametrize("sizes", [(112, 128), (128, 112), (193, 64)])
def test_each_decision_is_in_the_first_file_of_both(sizes, monkeypatch):
    rejected = []
    reject = Candidates.reject
    monkeypatch.setattr(Candidates, "reject", lambda self, error: rejected.append(type(error)) or reject(self, error))
    dynamic = {"x": {0: "height", 1: "width"}}
    result = export_compat(Scales(), torch.rand(sizes), exporter="torchscript", dynamic=dynamic)
    assert len(rejected) == 1  # the file with nothing rewritten
    for other in SIZES:
        x = torch.rand(other)
        torch.testing.assert_close(result(x)[0], Scales()(x))
