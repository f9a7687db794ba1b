"""Activation functions: shrinkage, thresholds, softplus, softmax and what is made of them."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Declaration, Exactness, decline, decomposition
from torch_onnx_compat.functional import exponentials

# Shrinkage and thresholds


@decomposition(torch.hardshrink, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def hardshrink_to_where(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Hard shrinkage, in fewer nodes than stock TorchScript's, which loses NaN.

    Math:   0 where abs(x) <= lambda, else x. The comparison is false for NaN, which stays.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hardshrink.html
    """
    return torch.where(input.abs() <= lambd, torch.zeros((), dtype=input.dtype), input)


@decomposition(functional.softshrink, always=True, exactness=Exactness.BITWISE)
def softshrink_to_sub(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Soft shrinkage, in fewer nodes than stock's, which loses NaN.

    Math: x - lambda above lambda, x + lambda below -lambda, x - x between; NaN stays.
    """
    return input - input.clamp(-lambd, lambd)


@decomposition(functional.threshold, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def threshold_to_where(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Replaces values up to a threshold; stock TorchScript takes a threshold of 0 only.

    Declines: inplace=True.

    Math: the value where x <= threshold, else x. The comparison is false for NaN, which stays.
    """
    if inplace:
        decline("inplace must be False")
    return torch.where(input <= threshold, torch.full_like(input, value), input)


# Softplus


@decomposition(functional.softplus, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def softplus_in_double(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Softplus of float64, for which onnxruntime has no kernel.

    Math: x where beta x > threshold, else log(1 + exp(beta x)) / beta.
    """
    if input.dtype != torch.float64:
        return NotImplemented
    scaled = input if beta == 1 else input * beta
    result = exponentials.softplus(scaled)
    return torch.where(scaled > threshold, input, result if beta == 1 else result / beta)


@decomposition(functional.softplus, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def softplus_threshold(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Softplus with its threshold, which stock TorchScript leaves out.

    Math: x where beta x > threshold, else log(1 + exp(beta x)) / beta.
    """
    if threshold >= 17:  # from there on the two agree in float32
        return NotImplemented
    scaled = input * beta
    return torch.where(scaled > threshold, input, functional.softplus(scaled) / beta)


@decomposition(functional.logsigmoid, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logsigmoid_to_softplus(input: Tensor) -> Tensor:
    """Logarithm of the sigmoid; stock takes the logarithm of 0 below -88.

    Math: log(1 / (1 + exp(-x))) = -log(1 + exp(-x)), which does not underflow.
    """
    return -(exponentials.softplus(-input) if input.dtype == torch.float64 else functional.softplus(-input))


# Exponential linear units

WITHOUT_KERNEL = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
"""onnxruntime has no kernel for float64 here; stock rounds to float32 or writes what does not load."""


@decomposition(functional.elu, **WITHOUT_KERNEL)
def elu_in_double(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Exponential linear unit of float64.

    Declines: inplace=True.
    """
    return NotImplemented if input.dtype != torch.float64 else _elu(input, inplace, alpha)


@decomposition(functional.selu, **WITHOUT_KERNEL)
def selu_in_double(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled exponential linear unit of float64.

    Declines: inplace=True.

    Math: the scale and alpha of torch, 1.0507009873554804934193349852946 and 1.6732632423543772848170429916717.
    """
    if input.dtype != torch.float64:
        return NotImplemented
    return _elu(input, inplace, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@decomposition(functional.celu, **WITHOUT_KERNEL)
def celu_to_exp(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Continuously differentiable exponential linear unit of other types than float32, which ONNX's takes alone.

    Declines: inplace=True.

    Math: x above 0, alpha (exp(x / alpha) - 1) below.
    """
    return NotImplemented if input.dtype == torch.float32 else _elu(input, inplace, alpha, 1.0, 1 / alpha)


def _elu(x: Tensor, inplace: bool, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    if inplace:
        decline("inplace must be False")
    return exponentials.elu(x, alpha, scale, input_scale)


# Leaky ReLU


@decomposition((torch.rrelu, torch.rrelu_), needed_on=("dynamo",), exactness=Exactness.BITWISE)
def rrelu_to_leaky_relu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: None = None
) -> Tensor:
    """Leaky ReLU of the mean slope; stock dynamo has no translation of the operator.

    Declines: training, whose slopes are random.

    Math:   the slope is the mean of the bounds between which training draws it.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.RReLU.html
    """
    if training:
        decline("random numbers differ from run to run; export in eval mode")
    return functional.leaky_relu(input, (lower + upper) / 2)


# Softmax with dtype=

OF_DTYPE = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
"""Stock computes in the input's dtype and converts the result, which loses digits and fails on integers."""


@decomposition((torch.softmax, torch.special.softmax), **OF_DTYPE)
def softmax_dtype(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Softmax in the dtype asked for, to which the input is converted first.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html
    """
    return _convert_first(torch.softmax, input, dim, dtype)


@decomposition((torch.log_softmax, torch.special.log_softmax), **OF_DTYPE)
def log_softmax_dtype(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Logarithm of the softmax in the dtype asked for, to which the input is converted first.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
    """
    return _convert_first(torch.log_softmax, input, dim, dtype)


def _convert_first(function: Callable[..., Tensor], input: Tensor, dim: int, dtype: torch.dtype | None) -> Tensor:
    if dtype is None or dtype == input.dtype:
        return NotImplemented
    return function(input.to(dtype), dim)
