"""What training leaves in a model, in rows; that torch's function is put back; every kind of dropout."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from torch.nn.utils.parametrize import is_parametrized, register_parametrization
from torch.onnx import TrainingMode
from torch.utils import checkpoint as checkpoints
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torch_onnx_compat.rewrites.training_leftovers import FixedWeight

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


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).T


class Weighted(nn.Module):
    """Uses a layer's weight where nothing is rounded otherwise."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return x.unsqueeze(2) * self.layer.weight


def parametrized(kind):
    layer = nn.Linear(12, 12)
    if kind == "own":
        register_parametrization(layer, "weight", Symmetric())
    elif kind in ("spectral_norm", "weight_norm"):
        getattr(parametrizations, kind)(layer)
    else:
        parametrizations.orthogonal(layer, orthogonal_map=kind)
    return Weighted(layer)


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
    Example(
        "parametrized_weight_to_constant",
        parametrized("matrix_exp").eval(),
        (torch.randn(2, 12),),
        dynamic={"x": {0: "batch"}},
        broken=lambda module: FixedWeight(module() * 2),
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


@pytest.mark.parametrize("kind", ["own", "spectral_norm", "weight_norm", "matrix_exp", "cayley", "householder"])
def test_parametrized_weights_are_constants(kind, exporter):
    model = parametrized(kind).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    result = assert_entry("parametrized_weight_to_constant", model, torch.randn(2, 12), exporter, dynamic="batch")
    assert result.nodes.total() <= 2
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert is_parametrized(model.layer)


def test_the_weight_of_a_model_that_trains_is_left_alone(exporter):
    model = parametrized("weight_norm").train()
    result = assert_same_outputs(model, torch.randn(2, 12), exporter, training=TrainingMode.PRESERVE)
    assert "parametrized_weight_to_constant" not in str(result)


class Gain(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = 1.0

    def forward(self, weight):
        return weight * self.gain


class SetsGain(nn.Module):
    """Sets what the parametrization of its weight reads."""

    def __init__(self):
        super().__init__()
        self.layer, self.parametrization = nn.Linear(4, 4), Gain()
        register_parametrization(self.layer, "weight", self.parametrization)

    def forward(self, x):
        self.parametrization.gain = x.abs().max()
        return x.unsqueeze(2) * self.layer.weight


def test_a_parametrization_that_forward_changes_is_left_alone():
    result = assert_same_outputs(SetsGain().eval(), torch.randn(2, 4), "torchscript", dynamic="batch")
    assert "parametrized_weight_to_constant" not in str(result)
