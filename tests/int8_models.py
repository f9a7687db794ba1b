"""A small network, and inputs for it, for the tests of precision=Int8."""

import torch
from torch import nn


class Net(nn.Module):
    """Convolutions, a depthwise one among them, a residual, a linear head."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise, self.norm = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.BatchNorm2d(8)
        self.point, self.head = nn.Conv2d(8, 8, 1), nn.Linear(8, 5)

    def forward(self, image):
        x = self.stem(image).relu()
        x = x + self.point(self.norm(self.depthwise(x)).relu())
        return self.head(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


def images(count=8, rows=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(rows, 3, 12, 12, generator=generator) for _ in range(count)]
