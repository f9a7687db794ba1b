"""Losses of regression and of classification."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Declaration, Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.functional.exponentials import log1p
from torch_onnx_compat.tracing import static_size

_NONE, _MEAN = 0, 1  # torch's numbers for reduction="none" and "mean"; "sum" is 2


@symbolic("aten::huber_loss", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def huber_loss(op: Ops, self: Value, target: Value, reduction: int = _MEAN, delta: float = 1.0) -> Value:
    """Loss that is quadratic near 0 and linear beyond; stock TorchScript has no symbolic for it.

    Math: with e = |input - target|: e^2 / 2 where e <= delta, else delta (e - delta / 2); mean, sum or neither of them.
    Schema: huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.HuberLoss.html
    """
    dtype, (input, target) = op.promoted(self, target)
    error = op.Abs(op.Sub(input, target))
    half, limit = op.constant(0.5, dtype), op.constant(delta, dtype)
    parabola = op.Mul(half, op.Mul(error, error))
    line = op.Mul(limit, op.Sub(error, op.constant(0.5 * delta, dtype)))
    loss = op.Where(op.Greater(error, limit), line, parabola)
    if reduction == _NONE:
        return loss
    return op.ReduceMean(loss, keepdims=0) if reduction == _MEAN else op.ReduceSum(loss, keepdims=0)


# Losses of torch's functions; stock TorchScript has no symbolic for them

OF_FUNCTION = Declaration(needed_on=("torchscript",), exactness=Exactness.ROUNDING)


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction not in ("none", "mean", "sum"):
        decline(f"reduction must be none, mean or sum, got {reduction!r}")
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _decline_averages(size_average: bool | None, reduce: bool | None) -> None:
    if size_average is not None or reduce is not None:
        decline("size_average and reduce are torch's old names; give reduction instead")


@decomposition(functional.l1_loss, **OF_FUNCTION)
def l1_loss_to_abs(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Magnitude of errors.

    Declines: size_average and reduce; a weight.

    Math:   |input - target|; mean, sum or neither of them.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.l1_loss.html
    """
    _decline_averages(size_average, reduce)
    if weight is not None:
        decline("weight must be None, got a tensor")
    return _reduced((input - target).abs(), reduction)


@decomposition(functional.smooth_l1_loss, **OF_FUNCTION)
def smooth_l1_loss_to_where(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Loss that is quadratic near 0 and linear beyond, of slope 1.

    Declines: size_average and reduce.

    Math:   with e = |input - target|: e^2 / (2 beta) where e < beta, else e - beta / 2; mean, sum or neither of them.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.smooth_l1_loss.html
    """
    _decline_averages(size_average, reduce)
    error = (input - target).abs()
    if beta == 0:
        return _reduced(error, reduction)
    return _reduced(torch.where(error < beta, 0.5 * error * error / beta, error - 0.5 * beta), reduction)


@decomposition(functional.soft_margin_loss, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def soft_margin_loss_to_log(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Logistic loss of labels 1 and -1; stock dynamo rounds 1 + exp(-y x).

    Declines: size_average and reduce.

    Math:   log(1 + exp(-y x)); mean, sum or neither of them.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.soft_margin_loss.html
    """
    _decline_averages(size_average, reduce)
    return _reduced(log1p(torch.exp(-target * input)), reduction)


@decomposition(functional.poisson_nll_loss, **OF_FUNCTION)
def poisson_nll_loss_to_exp(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative logarithm of the likelihood of a Poisson distribution.

    Declines: size_average and reduce.

    Math:   exp(x) - y x, or x - y log(x + eps); with Stirling's y log(y) - y + log(2 pi y) / 2 added where y > 1 if
            full; mean, sum or neither of them.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.poisson_nll_loss.html
    """
    _decline_averages(size_average, reduce)
    loss = torch.exp(input) - target * input if log_input else input - target * torch.log(input + eps)
    if full:
        rest = target * torch.log(target) - target + 0.5 * torch.log(2 * math.pi * target)
        loss = loss + torch.where(target <= 1, torch.zeros_like(rest), rest)
    return _reduced(loss, reduction)


@decomposition(functional.gaussian_nll_loss, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def gaussian_nll_loss_to_log(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative logarithm of the likelihood of a normal distribution; torch asks whether a variance is negative.

    The file has no such error: it takes eps for a negative variance. Variances (N, …) of an input (N, …, C) are those
    of all C.

    Declines: var with another number of axes than the input, or one less.

    Math:   (log v + (x - y)^2 / v) / 2 with v = max(var, eps); log(2 pi) / 2 added if full; mean, sum or neither of
            them.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.GaussianNLLLoss.html
    """
    if not isinstance(var, Tensor):
        var = var * torch.ones_like(input)
    missing = input.dim() - var.dim()
    if missing not in (0, 1):
        decline(f"var must have {input.dim()} axes as the input, or one less, got {var.dim()}")
    variance = (var.unsqueeze(-1) if missing else var).clamp(min=eps)
    loss = 0.5 * (torch.log(variance) + (input - target) ** 2 / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


@decomposition(functional.cross_entropy, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cross_entropy_to_log_softmax(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of smoothed labels, of probabilities, of one sample and of none, which ONNX's operator lacks.

    TorchScript refuses smoothed labels, and dynamo leaves the smoothing out. Labels of a fixed batch stay as they are.

    Declines: size_average and reduce.

    Math:   with l = log_softmax(input) over C classes of weights w, smoothing s: -sum_c w_c p_c l_c for probabilities,
            where p = (1 - s) target + s / C; -(1 - s) w_y l_y - s / C sum_c w_c l_c for a label y, 0 where it is
            ignored. The mean divides by the number of samples, or by the sum of w_y of the labels that are not ignored.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """
    is_label = not target.is_floating_point()
    if is_label and not label_smoothing and input.dim() > 1 and static_size(input, 0) is not None:
        return NotImplemented
    _decline_averages(size_average, reduce)
    axis = min(input.dim() - 1, 1)
    logs, classes = input.log_softmax(axis), input.shape[axis]
    weights = torch.ones_like(logs) if weight is None else weight.reshape(-1, *[1] * (input.dim() - axis - 1))
    if not is_label:
        smoothed = target * (1 - label_smoothing) + label_smoothing / classes
        return _reduced(-(logs * smoothed * weights).sum(axis), reduction)
    is_kept = target != ignore_index
    place = torch.where(is_kept, target, 0).unsqueeze(axis)
    share = torch.where(is_kept, weights.expand_as(logs).gather(axis, place).squeeze(axis), 0)
    loss = -share * logs.gather(axis, place).squeeze(axis)
    if label_smoothing:
        loss = loss * (1 - label_smoothing) - (logs * weights).sum(axis) * (label_smoothing / classes)
    loss = torch.where(is_kept, loss, 0)
    return loss.sum() / share.sum() if reduction == "mean" else _reduced(loss, reduction)
