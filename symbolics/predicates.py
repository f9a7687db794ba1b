"""Questions of numbers: isfinite, isin, all, any."""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decomposition


@decomposition(torch.isfinite, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def isfinite_of_integers(input: Tensor) -> Tensor:
    """Whether integers are finite; ONNX's operators take floats only.

    Math: every integer is finite.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.isfinite.html
    """
    if input.is_floating_point():
        return NotImplemented
    return torch.ones_like(input, dtype=torch.bool)


@decomposition((torch.isnan, torch.isinf), needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def isnan_of_integers(input: Tensor) -> Tensor:
    """Whether integers are NaN or infinite; ONNX's operators take floats only.

    Math: every integer is finite.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.isnan.html
    """
    if input.is_floating_point():
        return NotImplemented
    return torch.zeros_like(input, dtype=torch.bool)


@decomposition(torch.isposinf, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def isposinf_to_equal(input: Tensor) -> Tensor:
    """Whether a number is positive infinity; stock TorchScript has no symbolic for it.

    Math: one number alone is equal to infinity.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.isposinf.html
    """
    if not input.is_floating_point():
        return torch.zeros_like(input, dtype=torch.bool)
    return input == float("inf")


@decomposition(torch.isneginf, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def isneginf_to_equal(input: Tensor) -> Tensor:
    """Whether a number is negative infinity; stock TorchScript has no symbolic for it.

    Math: one number alone is equal to infinity.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.isneginf.html
    """
    if not input.is_floating_point():
        return torch.zeros_like(input, dtype=torch.bool)
    return input == -float("inf")


@decomposition(torch.signbit, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def signbit_to_less(input: Tensor) -> Tensor:
    """Whether the sign is set. That of NaN counts as not set.

    Stock TorchScript has no symbolic for it, stock dynamo misses the sign of -0.0.

    Math: a zero is negative where its reciprocal is.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.signbit.html
    """
    if not input.is_floating_point():
        return input < 0
    return (input < 0) | (1 / input < 0)


@decomposition(torch.isclose, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def isclose_to_less(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether numbers are close; stock TorchScript has no symbolic for it.

    Math: |x - y| <= atol + rtol |y| for finite y, or x = y, or both NaN where those count as equal.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.isclose.html
    """
    near = torch.abs(input - other) <= atol + rtol * torch.abs(other)
    if input.is_floating_point():
        near = near & (torch.abs(other) != float("inf")) & (torch.abs(input) != float("inf"))
        if equal_nan:
            near = near | (torch.isnan(input) & torch.isnan(other))
    return near | (input == other)


@decomposition(torch.isin, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def isin_to_equal(
    elements: Tensor | float,
    test_elements: Tensor | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Whether each element is among the test elements; neither exporter has it.

    As much memory as elements times test elements is needed.

    Math: x is in t if x == t_j for any j; NaN is in nothing.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.isin.html
    """
    if out is not None:
        return NotImplemented
    if not isinstance(test_elements, Tensor):
        found = torch.as_tensor(elements) == test_elements
    else:
        one = elements.unsqueeze(-1) if isinstance(elements, Tensor) else elements
        found = (test_elements.reshape(-1) == one).any(-1)
    return ~found if invert else found


@decomposition(torch.all, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def all_of_numbers(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether all of the cells are true.

    Stock TorchScript refuses numbers and several axes, and stock dynamo returns booleans for bytes.

    Math: a number counts as true unless it is 0.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.all.html
    """
    several = isinstance(dim, (tuple, list))
    if input.dtype == torch.bool and not several:
        return NotImplemented
    result = input if input.dtype == torch.bool else input != 0
    if dim is None:
        result = result.all()
    else:
        for axis in sorted(((d % input.dim()) for d in (dim if several else (dim,))), reverse=True):
            result = result.all(axis, keepdim)
    return result.to(torch.uint8) if input.dtype == torch.uint8 else result


@decomposition(torch.any, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def any_of_numbers(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether any of the cells are true.

    Stock TorchScript refuses numbers and several axes, and stock dynamo returns booleans for bytes.

    Math: a number counts as true unless it is 0.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.any.html
    """
    several = isinstance(dim, (tuple, list))
    if input.dtype == torch.bool and not several:
        return NotImplemented
    result = input if input.dtype == torch.bool else input != 0
    if dim is None:
        result = result.any()
    else:
        for axis in sorted(((d % input.dim()) for d in (dim if several else (dim,))), reverse=True):
            result = result.any(axis, keepdim)
    return result.to(torch.uint8) if input.dtype == torch.uint8 else result
