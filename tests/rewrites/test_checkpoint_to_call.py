import pytest
import torch
from torch import nn
from torch.utils import checkpoint as checkpoints
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

pytestmark = pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")

NAME = "checkpoint_to_call"
IMAGE = torch.randn(2, 3, 9, 8)
DYNAMIC = {"x": {0: "batch", 2: "height"}}


class Net(nn.Module):
    def __init__(self, reentrant=True):
        super().__init__()
        self.pool, self.rest = nn.MaxPool2d(3, 1), nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.Hardtanh())
        self.reentrant = reentrant

    def scaled(self, x, *, by):
        return self.pool(x) * by

    def forward(self, x):
        if self.reentrant:
            x = checkpoint(self.pool, x, use_reentrant=True, preserve_rng_state=False)
        else:
            x = checkpoints.checkpoint(self.scaled, x, use_reentrant=False, by=2.0)
        return checkpoint_sequential(self.rest, 2, x, use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [True, False])
def test_matches(exporter, reentrant):
    result = assert_entry(NAME, Net(reentrant).eval(), (IMAGE,), exporter, dynamic=DYNAMIC)
    assert result.nodes["MaxPool"] == 2


def test_the_function_is_put_back(exporter):
    before = checkpoints.checkpoint
    assert_entry(NAME, Net().eval(), (IMAGE,), exporter)
    assert checkpoints.checkpoint is before
    assert checkpoint is before


def test_oracle_bites():
    @rewrite("torch.utils.checkpoint.checkpoint", name=NAME, needed_on=("torchscript",), registry=None)
    def broken(function, *args, **kwargs):
        return function(*(arg * 2 for arg in args))

    with pytest.raises(VerificationError):
        assert_same_outputs(Net().eval(), (IMAGE,), "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Net().eval(), IMAGE, exporter)
