"""What people write when an exporter refuses an operator, to compare the catalogue's forms with."""

import torch
from torch import Tensor
from torch.nn import functional as F


def bilinear_by_corners(image: Tensor, grid: Tensor) -> Tensor:
    """F.grid_sample, bilinear with zeros outside: the padded image read four times at flat places."""
    count, channels, height, width = image.shape
    x, y = ((grid[..., 0] + 1) * width - 1) / 2, ((grid[..., 1] + 1) * height - 1) / 2
    left, top = x.floor(), y.floor()
    flat = F.pad(image, (1, 1, 1, 1)).reshape(count, channels, (height + 2) * (width + 2))
    total = torch.zeros(1)
    for dx in (0, 1):
        for dy in (0, 1):
            column, row = left + dx, top + dy
            weight = (1 - (x - column).abs()) * (1 - (y - row).abs())
            place = (row.clamp(-1, height) + 1) * (width + 2) + column.clamp(-1, width) + 1
            index = place.long().reshape(count, 1, -1).expand(-1, channels, -1)
            total = total + flat.gather(2, index).reshape(count, channels, *x.shape[1:]) * weight.unsqueeze(1)
    return total


def scatter_add_by_one_hot(x: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """x.scatter_add(1, index, values): every value put into a row of zeros, and the rows added."""
    return x + (F.one_hot(index, 4).to(x.dtype) * values.unsqueeze(-1)).sum(1)


def adaptive_avg_pool_by_cell(x: Tensor) -> Tensor:
    """F.adaptive_avg_pool2d(x, (3, 2)) of 7 x 5: a mean for every cell, one after the other."""
    rows = []
    for top, bottom in ((0, 3), (2, 5), (4, 7)):
        cells = [x[:, :, top:bottom, left:right].mean((2, 3)) for left, right in ((0, 3), (2, 5))]
        rows.append(torch.stack(cells, dim=-1))
    return torch.stack(rows, dim=-2)


def frames_by_slice(x: Tensor) -> Tensor:
    """x.unfold(1, 16, 4) of 40 samples: one slice for every frame."""
    return torch.stack([x[:, start : start + 16] for start in range(0, 25, 4)], dim=1)
