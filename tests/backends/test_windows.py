"""Windowed attention of a map that is padded to whole windows and rolled, with every size dynamic."""

import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import export_compat

SIDE, SHIFT = 4, 2


def partition(x):
    batch, height, width, channels = x.shape
    windows = x.view(batch, height // SIDE, SIDE, width // SIDE, SIDE, channels)
    return windows.permute(0, 1, 3, 2, 4, 5).reshape(-1, SIDE * SIDE, channels)


class Windows(nn.Module):
    """A Swin block: attention inside of windows of 4 x 4, of a map that may be rolled by half a window."""

    def __init__(self, channels, rolled):
        super().__init__()
        self.rolled = rolled
        self.norm, self.qkv = nn.LayerNorm(channels), nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)

    def mask(self, height, width):
        regions, number = torch.zeros(1, height, width, 1), 0
        parts = (slice(0, -SIDE), slice(-SIDE, -SHIFT), slice(-SHIFT, None))
        for rows in parts:
            for columns in parts:
                regions[:, rows, columns, :] = number
                number += 1
        windows = partition(regions).view(-1, SIDE * SIDE)
        difference = windows.unsqueeze(1) - windows.unsqueeze(2)
        return difference.masked_fill(difference != 0, -100.0).masked_fill(difference == 0, 0.0)

    def forward(self, x):
        batch, height, width, channels = x.shape
        below, right = (SIDE - height % SIDE) % SIDE, (SIDE - width % SIDE) % SIDE
        padded = F.pad(self.norm(x), (0, 0, 0, right, 0, below))
        rows, columns = height + below, width + right
        if self.rolled:
            padded = torch.roll(padded, (-SHIFT, -SHIFT), (1, 2))
        q, k, v = self.qkv(partition(padded)).chunk(3, -1)
        weights = q @ k.transpose(1, 2) / channels**0.5
        if self.rolled:
            weights = (weights.view(batch, -1, SIDE**2, SIDE**2) + self.mask(rows, columns)).view(-1, SIDE**2, SIDE**2)
        y = self.out(weights.softmax(-1) @ v)
        y = y.view(batch, rows // SIDE, columns // SIDE, SIDE, SIDE, channels).permute(0, 1, 3, 2, 4, 5)
        y = y.reshape(batch, rows, columns, channels)
        if self.rolled:
            y = torch.roll(y, (SHIFT, SHIFT), (1, 2))
        return x + y[:, :height, :width]


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.blocks = nn.Sequential(Windows(16, rolled=False), Windows(16, rolled=True))

    def forward(self, x):
        return self.blocks(self.patches(x).permute(0, 2, 3, 1))


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_windows_of_any_map(exporter, tmp_path):
    torch.manual_seed(0)
    model, path = Blocks().eval(), tmp_path / "model.onnx"
    dynamic = {"x": {0: "batch", 2: "height", 3: "width"}}
    result = export_compat(model, torch.randn(2, 3, 40, 56), path, dynamic=dynamic, exporter=exporter)
    # Guards that operators leave behind would be asked about, each at sizes of its own, and slow each other down.
    assert str(result).count("torch.export asks whether") <= 9  # three axes, and three of their questions at most
    session = onnxruntime.InferenceSession(path)
    for sizes in ((1, 4, 4), (2, 16, 20), (3, 41, 15), (1, 60, 64)):
        x = torch.randn(sizes[0], 3, *sizes[1:])
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x).detach())


class Stages(nn.Module):
    """Pads to whole windows at each of three stages, and halves the map after it."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for stage in self.stages:
            batch, height, width, channels = x.shape
            x = F.pad(x, (0, 0, 0, (SIDE - width % SIDE) % SIDE, 0, (SIDE - height % SIDE) % SIDE))
            rows, columns = x.shape[1] // SIDE, x.shape[2] // SIDE
            windows = stage(partition(x)).view(batch, rows, columns, SIDE, SIDE, channels)
            x = windows.permute(0, 1, 3, 2, 4, 5).reshape(batch, rows * SIDE, columns * SIDE, channels)
            x = x[:, :height, :width].permute(0, 3, 1, 2)
            x = F.max_pool2d(F.pad(x, (0, width % 2, 0, height % 2)), 2).permute(0, 2, 3, 1)
        return x


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_windows_at_three_stages(exporter, tmp_path):
    """torch.export alone does not come to an end in minutes, as each size holds the one before three times."""
    torch.manual_seed(0)
    model, path = Stages().eval(), tmp_path / "model.onnx"
    export_compat(model, torch.randn(2, 30, 45, 4), path, dynamic={"x": {0: "n", 1: "h", 2: "w"}}, exporter=exporter)
    session = onnxruntime.InferenceSession(path)
    for sizes in ((1, 17, 18), (2, 64, 33), (3, 100, 19), (1, 1, 1)):
        x = torch.randn(*sizes, 4)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x).detach())
