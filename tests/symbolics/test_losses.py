"""Losses, in rows."""

import torch
from torch import nn
from torch.nn import functional as F
from torch_onnx_compat.symbolics.losses import huber_loss

from torch_onnx_compat.testing import Example, assert_entry

ARGS = (torch.tensor([[0.0, 1.5, -3.0], [2.0, 0.5, 100.0]]), torch.tensor([[0.5, 0.5, 1.0], [1.0, 0.5, float("inf")]]))

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
    )
]


def test_huber_loss_takes_one_mean():
    result = assert_entry("huber_loss", lambda x, y: F.huber_loss(x, y), ARGS, "torchscript")
    assert result.nodes["Where"] == result.nodes["ReduceMean"] == 1
