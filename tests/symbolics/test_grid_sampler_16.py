import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import UnsupportedError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "grid_sampler_16"
CASES = tuple(itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)))
DYNAMIC = {"image": {0: "batch", 2: "height", 3: "width"}, "grid": {0: "batch", 1: "rows", 2: "columns"}}


def image():
    return torch.rand(2, 3, 6, 7) + 0.5, torch.rand(2, 5, 4, 2) * 2.6 - 1.3


def volume():
    return torch.rand(2, 3, 4, 5, 6) + 0.5, torch.rand(2, 3, 4, 5, 3) * 2.6 - 1.3


def sample(image, grid):
    return F.grid_sample(image, grid, align_corners=False)


class Samples(nn.Module):
    def forward(self, image, grid):
        return tuple(F.grid_sample(image, grid, *case) for case in CASES)


def test_matches(exporter):
    options = {"dynamic": DYNAMIC, "opset": 16, "include": [NAME]}
    result = assert_same_outputs(Samples(), image(), exporter, uses=(NAME,), **options)
    assert result.nodes["GridSample"] == len(CASES)


@pytest.mark.parametrize("opset", [17, 19])
def test_matches_up_to_its_last_opset(exporter, opset):
    assert_same_outputs(sample, image(), exporter, opset=opset, include=[NAME], uses=(NAME,))


def test_refuses_volumes(exporter):
    options = {"include": [NAME], "exclude": ["grid_sample_3d_to_gather"]}
    with pytest.raises(UnsupportedError, match=r"of a volume needs opset 20 or later, got 1[78]; raise opset_version"):
        assert_same_outputs(sample, volume(), exporter, opset=17, **options)


def test_sentinel(exporter):
    @symbolic("aten::grid_sampler", name=NAME, needed_on=EXPORTERS, opset=(16, 19), registry=None)
    def broken(
        op: Ops, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Value:
        return op.GridSample(input, grid, mode="bilinear", align_corners=1 - int(align_corners))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(sample, image(), exporter, opset=17, symbolics=[broken])


def test_still_needed_for_dynamo():
    """Stock dynamo writes a volume's GridSample at an opset that has none, without a word."""
    exclude = [NAME, "grid_sample_3d_to_gather"]
    stock = assert_same_outputs(sample, volume(), "dynamo", opset=17, exclude=exclude)
    assert stock.nodes["GridSample"] == 1
