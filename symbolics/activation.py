"""Activations: hardshrink, threshold, softplus, softmax and their kin."""

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, decomposition


@decomposition(torch.hardshrink, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def hardshrink_to_where(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Hard shrinkage, in fewer nodes than stock TorchScript's, which loses NaN.

    Math: by definition; NaN is larger than nothing and stays.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hardshrink.html
    """
    return torch.where(input.abs() <= lambd, torch.zeros((), dtype=input.dtype), input)


@decomposition(torch.nn.functional.softshrink, always=True, exactness=Exactness.BITWISE)
def softshrink_to_sub(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Soft shrinkage, in fewer nodes than stock's, which loses NaN.

    Math: x - lambda above, x + lambda below, x - x between; NaN stays.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softshrink.html
    """
    return input - input.clamp(-lambd, lambd)


@decomposition(torch.nn.functional.threshold, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def threshold_to_where(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Replaces what does not exceed a threshold; stock TorchScript takes a threshold of 0 only.

    Declines: inplace=True.

    Math: x where it exceeds the threshold, else the value; NaN stays.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.threshold.html
    """
    if inplace:
        decline("inplace must be False")
    return torch.where(input <= threshold, torch.full_like(input, value), input)


@decomposition(torch.nn.functional.softplus, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def softplus_threshold(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Softplus with its threshold, which stock TorchScript leaves out.

    Math: by definition; from 17 on the two agree in float32.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softplus.html
    """
    if threshold >= 17:
        return NotImplemented
    scaled = input * beta
    return torch.where(scaled > threshold, input, torch.nn.functional.softplus(scaled) / beta)


@decomposition(torch.nn.functional.logsigmoid, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logsigmoid_to_softplus(input: Tensor) -> Tensor:
    """Logarithm of the sigmoid; stock takes the logarithm of 0 below -88.

    Math: log(1 / (1 + exp(-x))) = -log(1 + exp(-x)), which does not underflow.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.logsigmoid.html
    """
    return -torch.nn.functional.softplus(-input)


@decomposition((torch.rrelu, torch.rrelu_), needed_on=("dynamo",), exactness=Exactness.BITWISE)
def rrelu_to_leaky_relu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: None = None
) -> Tensor:
    """Leaky ReLU of the mean slope; stock dynamo has no translation of the operator.

    Declines: training, whose slopes are random.

    Math: the slope is the mean of the bounds between which training draws it.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.RReLU.html
    """
    if training:
        decline("random numbers differ from run to run; export in eval mode")
    return nn.functional.leaky_relu(input, (lower + upper) / 2)


@decomposition(
    (torch.softmax, torch.special.softmax), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING
)
def softmax_dtype(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Converts first; stock does so last, which loses digits and fails on integers.

    Math: by definition: the conversion comes first.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html
    """
    if dtype is None or dtype == input.dtype:
        return NotImplemented
    return torch.softmax(input.to(dtype), dim)


@decomposition(
    (torch.log_softmax, torch.special.log_softmax), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING
)
def log_softmax_dtype(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Converts first; stock does so last, which loses digits and fails on integers.

    Math: by definition: the conversion comes first.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
    """
    if dtype is None or dtype == input.dtype:
        return NotImplemented
    return torch.log_softmax(input.to(dtype), dim)
