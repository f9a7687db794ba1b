import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "adaptive_avg_pool3d_to_matmul"
DYNAMIC = {"x": {0: "batch", 2: "depth", 3: "height", 4: "width"}}


class Pools(nn.Module):
    def __init__(self, *outputs):
        super().__init__()
        self.outputs = outputs

    def forward(self, x):
        return tuple(F.adaptive_avg_pool3d(x, output) for output in self.outputs)


class ManySizes(nn.Module):
    def forward(self, x):
        outputs = [2, (2, 3, 2), (7, None, 3), (None, 3, 1), (2, 7, 9), (1, 1, 3)]
        inputs = [x, x[0], x[:, :, :4, :4].double(), x.repeat(1, 1, 1, 3, 3)]
        return tuple(F.adaptive_avg_pool3d(one, output) for one in inputs for output in outputs)


def test_matches(exporter):
    assert_same_outputs(ManySizes(), torch.rand(2, 3, 4, 6, 8), exporter, dynamic="batch", uses=(NAME,))


def test_matches_at_dynamic_sizes(exporter):
    assert_same_outputs(
        Pools((3, 2, None), (2, 1, 5)), torch.rand(2, 3, 4, 5, 6), exporter, dynamic=DYNAMIC, uses=(NAME,)
    )


def test_equal_windows_take_one_pool(exporter):
    result = assert_same_outputs(Pools(2), torch.rand(2, 3, 4, 6, 8), exporter, dynamic="batch", uses=(NAME,))
    assert set(result.nodes) == {"AveragePool"}


def test_declines_single_cell(exporter):
    result = assert_same_outputs(Pools(1), torch.rand(2, 3, 4, 5, 6), exporter, dynamic=DYNAMIC)
    assert not result.applied
    assert [n.reason for n in result.declined] == ["a single cell is a mean, which torch exports for every size"]


def test_sentinel(exporter):
    @rewrite(F.adaptive_avg_pool3d, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, output_size):
        return F.avg_pool3d(input, 3, 2)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Pools(3), torch.rand(2, 3, 8, 8, 8), exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Pools((2, 3, 2)), torch.rand(2, 3, 5, 7, 4), exporter)
