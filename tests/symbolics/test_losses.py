"""Losses, in rows."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_onnx_compat.symbolics.losses import (
    cross_entropy_to_log_softmax,
    gaussian_nll_loss_to_log,
    huber_loss,
    l1_loss_to_abs,
    smooth_l1_loss_to_where,
)

from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.testing import Example, assert_entry

FINITE = (torch.tensor([[0.2, 1.5, 3.0], [2.0, 0.5, 9.0]]), torch.tensor([[0.5, 0.4, 7.0], [1.0, 5.5, 2.0]]))
ARGS = (torch.tensor([[0.0, 1.5, -3.0], [2.0, 0.5, 100.0]]), torch.tensor([[0.5, 0.5, 1.0], [1.0, 0.5, float("inf")]]))


def rounded_soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """As stock dynamo writes it."""
    loss = torch.log(1 + torch.exp(-target * input))
    return loss.mean() if reduction == "mean" else loss


def weightless_mean(input, target, weight=None, *args, reduction="mean", **kwargs):
    """Divided by the number of labels, whatever they weigh."""
    losses = cross_entropy_to_log_softmax(input, target, weight, *args, reduction="none", **kwargs)
    return losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses


LOGITS = torch.tensor([[0.2, 1.5, -3.0], [2.0, 0.5, 9.0], [0.0, 0.1, 0.2], [1.0, 7.0, 0.0]])
OF_CLASSES = torch.tensor([0.5, 2.0, 1.0])
SMOOTH = (
    partial(F.cross_entropy, label_smoothing=0.1),
    partial(F.cross_entropy, label_smoothing=0.1, ignore_index=0),
    partial(F.cross_entropy, label_smoothing=0.3, ignore_index=1, weight=OF_CLASSES),
)

EXAMPLES = [
    Example(
        "huber_loss",
        lambda x, y: (
            F.huber_loss(x, y, reduction="none"),
            F.huber_loss(x[:, :2], y[:, :2]),
            nn.HuberLoss(delta=0.3)(x, x * 2),
            F.huber_loss(x, x * 2, reduction="sum", delta=2.5),
            F.huber_loss(x.double(), x, reduction="none"),
        ),
        ARGS,
        broken=lambda op, self, target, reduction=1, delta=1.0: huber_loss(op, self, target, reduction),
        leaves=lambda x, y: F.mse_loss(x, y),
    ),
    Example(
        "soft_margin_loss_to_log",
        lambda x, y: (F.soft_margin_loss(x + 9, y + 1), F.soft_margin_loss(x + 9, y + 1, reduction="none")),
        FINITE,
        broken=rounded_soft_margin_loss,
        leaves=lambda x, y: x * y,
    ),
    Example(
        "soft_margin_loss_to_log",
        lambda x, y: (F.soft_margin_loss(x, -y, reduction="sum"), F.soft_margin_loss(x[0, 0], y[0, 0])),
        FINITE,
        claims=("torchscript",),
    ),
    *(
        Example(
            name,
            lambda x, y, f=f: (
                f(x, y),
                f(x, y, reduction="none"),
                f(x * 1e-3, y, reduction="sum"),
                f(x[0, 0], y[0, 0]),
            ),
            FINITE,
            leaves=lambda x, y: F.mse_loss(x, y),
        )
        for name, f in (
            ("l1_loss_to_abs", F.l1_loss),
            ("smooth_l1_loss_to_where", F.smooth_l1_loss),
            ("smooth_l1_loss_to_where", partial(F.smooth_l1_loss, beta=0.3)),
            ("smooth_l1_loss_to_where", partial(F.smooth_l1_loss, beta=0.0)),
            ("poisson_nll_loss_to_exp", F.poisson_nll_loss),
            ("poisson_nll_loss_to_exp", partial(F.poisson_nll_loss, log_input=False, full=True)),
        )
    ),
    Example(
        "gaussian_nll_loss_to_log",
        lambda x, y: (
            F.gaussian_nll_loss(x, y, y),
            F.gaussian_nll_loss(x, y, x - 0.2, full=True, eps=0.5, reduction="none"),
            nn.GaussianNLLLoss(reduction="sum")(x, y, y[:, :1]),
            F.gaussian_nll_loss(x, y, y[:, 0]),
            F.gaussian_nll_loss(x, y, torch.full_like(y, 0.25)),
        ),
        FINITE,
        leaves=lambda x, y: F.mse_loss(x, y),
    ),
    Example(
        "cross_entropy_to_log_softmax",
        lambda x, y: (
            *(smooth(x, y, reduction=reduction) for reduction in ("mean", "sum", "none") for smooth in SMOOTH),
            nn.CrossEntropyLoss(label_smoothing=0.2)(x.reshape(-1, 3, 2), y.reshape(-1, 2)),
            F.cross_entropy(x, x.exp()),
            F.cross_entropy(x, x.exp(), weight=OF_CLASSES, label_smoothing=0.1, reduction="none"),
            F.cross_entropy(x[0], y[0], weight=OF_CLASSES),
        ),
        (LOGITS, torch.tensor([2, 0, 1, 2])),
        broken=weightless_mean,
        leaves=lambda x, y: F.nll_loss(x.log_softmax(1), y, ignore_index=1),
    ),
]


def test_huber_loss_takes_one_mean():
    result = assert_entry("huber_loss", lambda x, y: F.huber_loss(x, y), ARGS, "torchscript")
    assert result.nodes["Where"] == result.nodes["ReduceMean"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size_average": False}, "size_average and reduce are torch's old names; give reduction instead"),
        ({"reduction": "median"}, "reduction must be none, mean or sum, got 'median'"),
    ],
)
def test_losses_decline(options, message):
    with pytest.raises(Declined, match=message):
        smooth_l1_loss_to_where(*FINITE, **options)


def test_l1_loss_declines_a_weight():
    with pytest.raises(Declined, match="weight must be None, got a tensor"):
        l1_loss_to_abs(*FINITE, weight=FINITE[0])


def test_gaussian_nll_loss_takes_a_number_for_the_variance():
    x, y = FINITE
    assert torch.equal(gaussian_nll_loss_to_log(x, y, 0.3), F.gaussian_nll_loss(x, y, torch.full_like(x, 0.3)))


def test_gaussian_nll_loss_declines():
    with pytest.raises(Declined, match="var must have 2 axes as the input, or one less, got 0"):
        gaussian_nll_loss_to_log(*FINITE, torch.tensor(1.0))
