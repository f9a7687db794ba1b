import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "adaptive_avg_pool2d_to_matmul"


class Pools(nn.Module):
    def __init__(self, *outputs):
        super().__init__()
        self.outputs = outputs

    def forward(self, x):
        return tuple(F.adaptive_avg_pool2d(x, output) for output in self.outputs)


class ManySizes(nn.Module):
    """Crops a picture to many heights and widths and pools each."""

    def forward(self, x):
        crops = [(x[..., :h, :w], o) for h, w, o in [(1, 1, 3), (3, 4, 7), (13, 13, 6), (7, 5, (3, 4)), (9, 9, (9, 2))]]
        crops += [(x[..., :7, :5], (None, 3)), (x, (None, 3)), (x, (7, 5)), (x[0], (7, 5)), (x[0, :, :8, :6], (4, 3))]
        crops += [(x[0], 1), (x.double(), (20, 18)), (x, (1, 7)), (x[:, :, :3], (40, 1))]
        return tuple(F.adaptive_avg_pool2d(crop, output) for crop, output in crops)


def test_matches(exporter):
    assert_same_outputs(ManySizes(), torch.rand(2, 3, 40, 36), exporter, dynamic="batch", uses=(NAME,))


def test_matches_in_half_precision(exporter):
    result = assert_same_outputs(lambda x: F.adaptive_avg_pool2d(x, (6, 7)), torch.rand(2, 3, 8, 9).half(), exporter)
    assert [note.entry for note in result.applied] == [NAME]


DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


@pytest.mark.parametrize("example", [(2, 3, 8, 6), (2, 3, 10, 15)], ids=["neither divides", "both divide"])
def test_matches_at_dynamic_sizes(exporter, example):
    model = Pools((5, 3), (None, 4), (1, None), (4, 1), (3, 20))
    assert_same_outputs(model, torch.rand(example), exporter, dynamic=DYNAMIC, uses=(NAME,))


def test_matches_every_pair_of_sizes(exporter):
    model = Pools(3, 7)
    result = assert_same_outputs(
        model, torch.rand(1, 2, 8, 6), exporter, dynamic={"x": {2: "height", 3: "width"}}, uses=(NAME,)
    )
    session = result.session()
    for height, width in itertools.product(range(1, 25), (1, 5, 24)):
        x = torch.rand(1, 2, height, width)
        for found, wanted in zip(session.run(None, {"x": x.numpy()}), model(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=1e-5, atol=1e-6)


class Like(nn.Module):
    def forward(self, x, y):
        return F.adaptive_avg_pool2d(x, y.shape[-2:]), F.adaptive_avg_pool2d(x, (x.shape[2] // 2, 3))


@pytest.mark.parametrize("dynamic", [None, {"x": {2: "h"}, "y": {2: "rows", 3: "columns"}}], ids=["fixed", "dynamic"])
def test_matches_at_computed_outputs(exporter, dynamic):
    assert_same_outputs(
        Like(), (torch.rand(2, 3, 8, 7), torch.rand(1, 1, 5, 3)), exporter, dynamic=dynamic, uses=(NAME,)
    )


def test_matches_at_low_opset():
    model = Pools((5, 3), (None, 4), (3, 20))
    assert_same_outputs(model, torch.rand(2, 3, 8, 6), "torchscript", opset=13, dynamic=DYNAMIC, uses=(NAME,))


@pytest.mark.parametrize(
    ("shape", "output", "nodes"),
    [
        ((2, 64, 7, 7), 3, {"Reshape", "MatMul"}),
        ((2, 3, 40, 36), 7, {"MatMul"}),
        ((2, 3, 8, 6), (None, 4), {"MatMul"}),
        ((2, 3, 8, 6), (None, 3), {"AveragePool"}),
    ],
    ids=["one matrix", "two matrices", "one axis kept", "equal windows"],
)
def test_takes_few_nodes(exporter, shape, output, nodes):
    model = nn.Sequential(nn.AdaptiveAvgPool2d(output))
    result = assert_same_outputs(model, torch.rand(shape), exporter, dynamic="batch", uses=(NAME,))
    assert set(result.nodes) - {"Constant"} == nodes
    assert result.nodes.total() - result.nodes["Constant"] <= 3


NEAR_MISSES = [
    pytest.param(1, DYNAMIC, "a single cell is a mean, which torch exports for every size", id="one cell"),
    pytest.param((4, 3), "batch", "the output divides the input, which torch exports as AveragePool", id="divides"),
]


@pytest.mark.parametrize(("output", "dynamic", "reason"), NEAR_MISSES)
def test_declines_what_stock_exports_right(exporter, output, dynamic, reason):
    result = assert_same_outputs(Pools(output), torch.rand(2, 3, 8, 6), exporter, dynamic=dynamic)
    assert not result.applied
    assert [note.reason for note in result.declined] == [reason]
    assert set(result.nodes) <= {"AveragePool", "GlobalAveragePool", "ReduceMean", "Constant"}


def test_sentinel(exporter):
    @rewrite(F.adaptive_avg_pool2d, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, output_size):
        """The pool of stride h // o that many posts recommend."""
        kernel = (input.shape[-2] // output_size[0], input.shape[-1] // output_size[1])
        return F.avg_pool2d(input, kernel, kernel)[..., : output_size[0], : output_size[1]]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Pools((3, 4)), torch.rand(2, 3, 8, 6), exporter, rewrites=[broken])


STILL_NEEDED = {
    "torchscript": [((3, 4), None), ((4, 3), DYNAMIC), ((None, 3), "batch")],
    "dynamo": [((4, 3), DYNAMIC), ((1, 3), DYNAMIC)],
}


def test_still_needed(exporter):
    for output, dynamic in STILL_NEEDED[exporter]:
        with pytest.raises(CompatError):
            assert_same_outputs(Pools(output), torch.rand(2, 3, 8, 6), exporter, dynamic=dynamic, exclude=[NAME])
