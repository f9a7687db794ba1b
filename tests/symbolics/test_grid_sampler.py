import itertools

import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "grid_sampler"
MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
DYNAMIC = {"image": {0: "batch", 2: "height", 3: "width"}, "grid": {0: "batch", 1: "rows", 2: "columns"}}


def image():
    return torch.rand(2, 3, 6, 7) + 0.5, torch.rand(2, 5, 4, 2) * 2.6 - 1.3


def volume():
    return torch.rand(2, 3, 4, 5, 6) + 0.5, torch.rand(2, 3, 4, 5, 3) * 2.6 - 1.3


class Samples(nn.Module):
    def __init__(self, modes):
        super().__init__()
        self.cases = tuple(itertools.product(modes, PADDINGS, (False, True)))

    def forward(self, image, grid):
        return tuple(F.grid_sample(image, grid, *case) for case in self.cases)


def attributes(result):
    nodes = onnx.load_from_string(result.model_bytes).graph.node
    return [{a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} for node in nodes]


def test_matches_images(exporter):
    options = {"dynamic": DYNAMIC, "opset": 20, "include": [NAME]}
    result = assert_same_outputs(Samples(MODES), image(), exporter, uses=(NAME,), **options)
    assert result.nodes["GridSample"] == 18


def test_matches_volumes(exporter):
    result = assert_same_outputs(Samples(MODES[:2]), volume(), exporter, opset=22, include=[NAME], uses=(NAME,))
    assert result.nodes["GridSample"] == 12


def test_sentinel(exporter):
    @symbolic("aten::grid_sampler", name=NAME, needed_on=EXPORTERS, opset=(20, 99), registry=None)
    def broken(
        op: Ops, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Value:
        return op.GridSample(input, grid, mode="linear", align_corners=1 - int(align_corners))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Samples(MODES[:1]), image(), exporter, opset=20, symbolics=[broken])


def test_stock_is_right(exporter):
    """When this fails, the entry is needed on the exporter."""
    stock = assert_same_outputs(Samples(MODES), image(), exporter, opset=20)
    ours = assert_same_outputs(Samples(MODES), image(), exporter, opset=20, include=[NAME], uses=(NAME,))
    assert NAME not in {note.entry for note in stock.applied}
    assert attributes(ours) == attributes(stock)
