import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "batch_norm_of_batch"
X = torch.randn(3, 4, 5, 6) * 3 + 1
DYNAMIC = {"input": {0: "batch", 2: "height", 3: "width"}}


class Norms(nn.Module):
    """Two layers that keep no statistics, with and without weights, and one of rows."""

    def __init__(self):
        super().__init__()
        self.first = nn.BatchNorm2d(4, track_running_stats=False)
        self.second = nn.BatchNorm2d(4, eps=0.1, affine=False, track_running_stats=False)
        self.rows = nn.BatchNorm1d(4, track_running_stats=False)
        nn.init.normal_(self.first.weight)
        nn.init.normal_(self.first.bias)

    def forward(self, input):
        return self.second(self.first(input).square()), self.rows(input[:, :, 0])


def test_matches(exporter):
    assert_entry(NAME, Norms().eval(), X, exporter, dynamic=DYNAMIC)


def test_one_size(exporter):
    assert_same_outputs(Norms().eval(), X, exporter)


def test_running_statistics_are_left_alone(exporter):
    result = assert_same_outputs(nn.BatchNorm2d(4).eval(), X, exporter, dynamic=DYNAMIC)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(F.batch_norm, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, *args, **options):
        return input - input.mean((0, 2, 3), keepdim=True)

    model = nn.BatchNorm2d(4, track_running_stats=False).eval()
    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(model, X, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Norms().eval(), X, exporter, dynamic=DYNAMIC)
