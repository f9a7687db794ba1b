"""Tables of positions that a vision transformer adds as they are, or resized to the picture, as its size decides."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import export_compat

CELLS, WIDTH = 4, 8
DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}
SIZES = [(16, 16), (24, 20), (8, 32), (32, 8), (40, 16), (12, 16), (4, 64)]
"""Four have as many cells as the table, of which the first has its proportions."""


class Patches(nn.Module):
    def __init__(self, tokens_before=0):
        super().__init__()
        self.proj = nn.Conv2d(3, WIDTH, 4, 4)
        self.table = nn.Parameter(torch.randn(1, tokens_before + CELLS * CELLS, WIDTH))

    def forward(self, x):
        x = self.proj(x)
        return self.tokens(x.flatten(2).transpose(1, 2), *x.shape[-2:])

    def resized(self, table, height, width, mode="bilinear"):
        side = int(math.sqrt(table.shape[1]))
        picture = table.reshape(1, side, side, -1).permute(0, 3, 1, 2)
        return F.interpolate(picture, size=(height, width), mode=mode).flatten(2).transpose(1, 2)


class ByProduct(Patches):
    """Whoever calls gets the table back, unless the number of cells is another."""

    def tokens(self, x, height, width):
        return x + self.table_for(height, width)

    def table_for(self, height, width):
        if height * width == self.table.shape[1]:
            return self.table
        return self.resized(self.table, height, width)


class ByTokens(Patches):
    """Each branch adds; the branch that adds the table runs at some sizes only."""

    def tokens(self, x, height, width):
        if x.size(1) != self.table.size(1):
            side = int(self.table.size(1) ** 0.5)
            picture = self.table.transpose(1, 2).unsqueeze(0).reshape(1, WIDTH, side, side)
            x = x + F.interpolate(picture, size=(height, width), mode="nearest").flatten(2).transpose(1, 2)
        else:
            x = x + self.table
        return x


class BySides(Patches):
    def tokens(self, x, height, width):
        side = int(math.sqrt(self.table.shape[1]))
        if side != height or side != width:
            table = self.resized(self.table, height, width, "bicubic").transpose(1, 2).reshape(1, -1, height, width)
            table = table.permute(0, 2, 3, 1)
        else:
            table = self.table.reshape(1, height, width, -1)
        return x.reshape(x.shape[0], height, width, -1) + table


class ByTokensAndSides(Patches):
    """With a token in front, which is not resized."""

    def __init__(self):
        super().__init__(tokens_before=1)

    def tokens(self, x, height, width):
        x = torch.cat([x.mean(1, keepdim=True), x], 1)
        return x + self.table_for(self.table, x.shape[1], height, width)

    def table_for(self, table, count, height, width):
        known = table.shape[1]
        if count == known and height == width:
            return table
        first, rest = table[:, :1], table[:, 1:]
        side = int(math.sqrt(known - 1))
        assert side * side == known - 1
        return torch.cat([first, self.resized(rest, height, width, "bicubic")], 1)


class ByScales(ByTokensAndSides):
    """Resizes by factors to which a tenth of a cell is added, so that their floor is right."""

    def resized(self, table, height, width, mode="bilinear"):
        side = math.sqrt(table.shape[1])
        picture = table.reshape(1, int(side), int(side), -1).permute(0, 3, 1, 2)
        picture = F.interpolate(picture, scale_factor=((height + 0.1) / side, (width + 0.1) / side), mode="bicubic")
        assert (height, width) == (picture.shape[-2], picture.shape[-1])
        return picture.flatten(2).transpose(1, 2)


class Line(nn.Module):
    """A table along a line: as it is, cut, or resized."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, WIDTH, 16))

    def forward(self, x):
        length = x.shape[2]
        if length == 16:
            x = x + self.table
        elif length < 16:
            x = x + self.table[:, :, :length]
        else:
            x = x + F.interpolate(self.table, size=length, mode="linear", align_corners=True)
        return x * 2


def assert_right(model, example, others, dynamic, exporter):
    result = export_compat(model, example, exporter=exporter, dynamic=dynamic)
    for x in (example, *others):
        torch.testing.assert_close(result(x)[0], model(x), rtol=1e-4, atol=1e-4)
    return result


@pytest.mark.parametrize(
    ("form", "example", "exporter"),
    [
        (ByProduct, (16, 16), "dynamo"),
        (ByProduct, (24, 20), "torchscript"),
        (ByTokens, (16, 16), "torchscript"),
        (ByTokens, (16, 16), "dynamo"),
        (ByTokens, (24, 20), "torchscript"),
        (ByTokens, (24, 20), "dynamo"),
        (ByTokens, (8, 32), "dynamo"),
        (BySides, (24, 20), "torchscript"),
        (BySides, (16, 16), "dynamo"),
        (ByTokensAndSides, (16, 16), "torchscript"),
        (ByTokensAndSides, (16, 16), "dynamo"),
        (ByScales, (24, 20), "torchscript"),
    ],
)
def test_a_table_is_resized_where_the_model_resizes_it(form, example, exporter):
    torch.manual_seed(0)
    others = [torch.randn(2, 3, *size) for size in SIZES]
    assert_right(form(), torch.randn(1, 3, *example), others, DYNAMIC, exporter)


@pytest.mark.parametrize("length", [7, 16, 20])
def test_a_table_along_a_line(length):
    torch.manual_seed(0)
    others = [torch.randn(2, WIDTH, n) for n in (1, 7, 15, 16, 17, 20, 40)]
    dynamic = {"x": {0: "batch", 2: "length"}}
    assert_right(Line(), torch.randn(1, WIDTH, length), others, dynamic, "torchscript")


def test_the_result_says_at_which_sizes_a_model_was_traced_instead():
    result = export_compat(ByTokens(), torch.randn(1, 3, 24, 20), exporter="torchscript", dynamic=DYNAMIC)
    (note,) = [note for note in result.notes if "was traced at" in note]
    assert "test_tables_of_positions.py" in note
    assert "does not run" in note
