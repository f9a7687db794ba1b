"""What training leaves in a model, in rows; that torch's function is put back; every kind of dropout."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import checkpoint as checkpoints
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

IMAGE = torch.randn(2, 3, 9, 8)
DYNAMIC = {"x": {0: "batch", 2: "height"}}
ROWS = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.1, -0.3]])
REASON = "export in eval mode, or multiply by a mask that is an input"


class Net(nn.Module):
    def __init__(self, reentrant=True):
        super().__init__()
        self.pool, self.rest = nn.MaxPool2d(3, 1), nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.Hardtanh())
        self.reentrant = reentrant

    def scaled(self, x, *, by):
        return self.pool(x) * by

    def forward(self, x):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "None of the inputs have requires_grad")  # the caller trains nothing
            return self.checkpointed(x)

    def checkpointed(self, x):
        if self.reentrant:
            x = self.call(self.pool, x, use_reentrant=True, preserve_rng_state=False)
        else:
            x = self.call(self.scaled, x, use_reentrant=False, by=2.0)
        return checkpoint_sequential(self.rest, 2, x, use_reentrant=self.reentrant)

    def call(self, *args, **options):
        return checkpoints.checkpoint(*args, **options)


class Imported(Net):
    """Calls the function by a name of this module's own."""

    def call(self, *args, **options):
        return checkpoint(*args, **options)


EXAMPLES = [
    Example(
        "checkpoint_to_call",
        Net().eval(),
        (IMAGE,),
        dynamic=DYNAMIC,
        broken=lambda function, *args, **kwargs: function(*(arg * 2 for arg in args)),
    ),
    Example(
        "dropout_in_training",
        lambda x: F.dropout(x, 0.5, training=True),
        (ROWS,),
        declines=REASON,
        leaves=lambda x: F.dropout(x, 0.5, training=False) + F.dropout(x, 0.0, training=True),
    ),
]


@pytest.mark.parametrize("model", [Net(), Imported(), Net(False)], ids=["reentrant", "imported", "other"])
def test_checkpoints_leave_the_pools(exporter, model):
    result = assert_entry("checkpoint_to_call", model.eval(), (IMAGE,), exporter, dynamic=DYNAMIC)
    assert result.nodes["MaxPool"] == 2


def test_the_function_is_put_back(exporter):
    before = checkpoints.checkpoint
    assert_entry("checkpoint_to_call", Imported().eval(), (IMAGE,), exporter)
    assert checkpoints.checkpoint is before
    assert checkpoint is before


@pytest.mark.parametrize("drop", [F.dropout, F.alpha_dropout, F.feature_alpha_dropout, F.dropout1d])
def test_every_dropout_declines(drop):
    model = lambda x: drop(x, 0.5, training=True)  # noqa: E731
    with pytest.raises(CompatError, match=REASON):
        assert_same_outputs(model, ROWS, "torchscript")


def test_stock_says_less_of_dropout():
    model = lambda x: F.dropout(x, 0.5, training=True)  # noqa: E731
    with pytest.raises(CompatError) as caught:
        assert_same_outputs(model, ROWS, "torchscript", exclude=["dropout_in_training"])
    assert REASON not in str(caught.value)


def test_a_checkpoint_s_function_is_run_without_the_entry_too(exporter):
    assert_same_outputs(Imported().eval(), (IMAGE,), exporter, exclude=["checkpoint_to_call"])
