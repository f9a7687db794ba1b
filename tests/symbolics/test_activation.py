"""Activation functions, in rows; what is declined."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_same_outputs

INF, NAN = float("inf"), float("nan")
SHRUNK = (torch.tensor([[0.5, -2.0, NAN, -0.5], [INF, 0.0, -0.3, -INF]]),)
FLOATS = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]])
NUMBERS = torch.tensor([[2, -3, 4], [0, 5, 1]])

EXAMPLES = [
    *(
        Example(
            name,
            lambda x, f=f: (f(x), f(x * 1e-3)),
            (torch.linspace(-5, 5, 8, dtype=torch.float64).reshape(2, 4),),
            leaves=lambda x, f=f: f(x.float()),
        )
        for name, f in (
            ("elu_in_double", lambda x: F.elu(x, 0.7)),
            ("selu_in_double", F.selu),
            ("celu_to_exp", lambda x: F.celu(x, 0.7)),
            ("softplus_in_double", lambda x: F.softplus(x, 2.0, 3.0) + F.softplus(x)),
        )
    ),
    Example(
        "celu_to_exp",
        lambda x: F.celu(x.half(), 2.0),
        (FLOATS,),
        claims=("torchscript",),
    ),
    Example(
        "hardshrink_to_where",
        lambda x: (F.hardshrink(x), F.hardshrink(x, 0.2), x.double().hardshrink(1.5)),
        SHRUNK,
        broken=lambda input, lambd=0.5: torch.where(input.abs() > lambd, input, 0.0),  # loses NaN
        leaves=F.relu,
    ),
    Example(
        "softshrink_to_sub",
        lambda x: (F.softshrink(x), F.softshrink(x, 0.2), F.softshrink(x.double())),
        SHRUNK,
        broken=lambda x, lambd=0.5: torch.where(x.abs() > lambd, x - x.sign() * lambd, 0.0),  # loses NaN
        leaves=F.relu,
    ),
    Example(
        "threshold_to_where",
        lambda x, y: (F.threshold(x, 0.5, -3), nn.Threshold(-1.0, 20.0)(y)),
        (
            torch.tensor([[1.5, -2.0, 0.0, INF], [-INF, NAN, -0.0, 3.0]]),
            torch.tensor([[0.0, -0.0, 2.5, -INF], [-INF, 1.0, -0.0, -3.0]]),
        ),
        broken=lambda input, threshold, value, inplace=False: torch.where(input > threshold, input, value),
    ),
    Example(
        "softplus_threshold",
        lambda x, y: (F.softplus(x, 2.0, 1.0), F.softplus(y, 0.3, 0.5), nn.Softplus(1.5, 2.0)(x)),
        (
            torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]),
            torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]]),
        ),
        broken=lambda input, beta=1, threshold=20: F.softplus(input * beta) / beta,
        leaves=lambda x, y: F.softplus(x) + y,
    ),
    Example(
        "logsigmoid_to_softplus",
        lambda x: (F.logsigmoid(x), nn.LogSigmoid()(x * 2)),
        (torch.tensor([[1.5, -200.0, 0.0, INF], [-INF, 7.0, -95.0, 3.0]]),),
        broken=lambda input: torch.log(torch.sigmoid(input)),
    ),
    Example(
        "rrelu_to_leaky_relu",
        lambda x: (F.rrelu(x), F.rrelu(x, 0.2, 0.6), nn.RReLU().eval()(x)),
        (FLOATS,),
        broken=lambda input, lower=1 / 8, upper=1 / 3, training=False: F.leaky_relu(input, lower),
        leaves=F.leaky_relu,
        exporters=("dynamo", "torchscript"),
    ),
    *(
        Example(
            f"{function.__name__}_dtype",
            lambda x, i, function=function, special=special: (
                function(i, 1, dtype=torch.float32),
                function(x, 0, dtype=torch.float64),
                special(i, -1, dtype=torch.float32),
            ),
            (FLOATS, NUMBERS),
            broken=lambda input, dim, dtype, function=function: function(input.to(dtype), 0),
            leaves=lambda x, i, function=function: function(x, 1, dtype=torch.float32) + i,
        )
        for function, special in (
            (torch.softmax, torch.special.softmax),
            (torch.log_softmax, torch.special.log_softmax),
        )
    ),
]


@pytest.mark.parametrize(
    ("name", "exporter", "model", "inputs"),
    [
        ("hardshrink_to_where", "torchscript", F.hardshrink, SHRUNK),
        ("softshrink_to_sub", "torchscript", F.softshrink, SHRUNK),
        ("rrelu_to_leaky_relu", "dynamo", F.rrelu, (FLOATS,)),
        ("softmax_dtype", "torchscript", lambda i: F.softmax(i, 1, dtype=torch.float32), (NUMBERS,)),
        ("log_softmax_dtype", "torchscript", lambda i: F.log_softmax(i, 1, dtype=torch.float32), (NUMBERS,)),
    ],
)
def test_takes_no_loop(name, exporter, model, inputs):
    assert "Loop" not in assert_same_outputs(lambda x: model(x), inputs, exporter, uses=(name,)).nodes


def test_threshold_declines_in_place():
    with pytest.raises(Declined, match="inplace must be False"):
        catalogue()["threshold_to_where"].body(FLOATS, 0.5, 1.0, inplace=True)


def test_rrelu_declines_training():
    with pytest.raises(CompatError, match="random numbers differ from run to run; export in eval mode"):
        assert_same_outputs(lambda x: F.rrelu(x, training=True), FLOATS, "dynamo")
