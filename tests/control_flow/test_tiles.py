"""A picture that is computed tile by tile, as decoders do that would fill the memory: loops inside of loops."""

import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import export_compat

TILE = 4
SIZES = [(1, 1), (4, 8), (5, 7), (9, 3), (16, 13)]


class InOneExpression(nn.Module):
    """Both loops are in one line."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def decode(self, tile):
        return F.interpolate(self.conv(tile), scale_factor=2.0)

    def cell(self, x, i, j):
        return self.decode(x[:, :, i : i + TILE, j : j + TILE])

    def forward(self, x):
        n, m, k = *x.shape[2:], TILE
        return torch.cat([torch.cat([self.cell(x, i, j) for j in range(0, m, k)], 3) for i in range(0, n, k)], 2)


class SideBySide(nn.Module):
    """Two loops in one line, of which each has a shorter last piece on another axis."""

    def rows(self, x, i):
        return x[:, :, i : i + TILE] * 2

    def columns(self, x, i):
        return x[..., i : i + TILE] * 3

    def forward(self, x):
        n, m, k = *x.shape[2:], TILE
        down, right = [self.rows(x, i) for i in range(0, n, k)], [self.columns(x, i) for i in range(0, m, k)]
        return torch.cat(down, 2) + torch.cat(right, 3)


class InLoops(InOneExpression):
    def forward(self, x):
        rows = []
        for i in range(0, x.shape[2], TILE):
            row = []
            for j in range(0, x.shape[3], TILE):
                row.append(self.decode(x[:, :, i : i + TILE, j : j + TILE]))
            rows.append(torch.cat(row, 3))
        return torch.cat(rows, 2)


@pytest.mark.parametrize("kind", [InOneExpression, SideBySide, InLoops])
def test_tiles(kind, tmp_path):
    torch.manual_seed(0)
    model, path = kind().eval(), tmp_path / "model.onnx"
    dynamic = {"x": {0: "batch", 2: "height", 3: "width"}}
    export_compat(model, torch.randn(2, 3, 8, 12), path, dynamic=dynamic, exporter="torchscript")
    session = onnxruntime.InferenceSession(path)
    for seed, size in enumerate(SIZES):
        torch.manual_seed(seed)
        x = torch.randn(1 + seed % 3, 3, *size)
        found = torch.from_numpy(session.run(None, {"x": x.numpy()})[0])
        torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-5)
