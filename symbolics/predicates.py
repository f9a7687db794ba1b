"""Questions about one number (isfinite, signbit), two numbers (isclose, isin) or many (all, any)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, decomposition
from torch_onnx_compat.functional.complex import is_complex
from torch_onnx_compat.functional.element_types import nearest
from torch_onnx_compat.tracing import as_tensor

# Of one number


@decomposition(torch.isfinite, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def isfinite_of_integers(input: Tensor) -> Tensor:
    """Whether integers are finite, which all are; ONNX's operators take floats only."""
    if input.is_floating_point() or is_complex(input):
        return NotImplemented
    return torch.ones_like(input, dtype=torch.bool)


@decomposition(torch.isreal, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def isreal_of_reals(input: Tensor) -> Tensor:
    """Which numbers are real: all real ones; stock TorchScript has no symbolic for it."""
    return NotImplemented if is_complex(input) else torch.ones_like(input, dtype=torch.bool)


@decomposition((torch.isnan, torch.isinf), needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def isnan_of_integers(input: Tensor) -> Tensor:
    """Whether integers are NaN or infinite, which none is; ONNX's operators take floats only."""
    if input.is_floating_point() or is_complex(input):
        return NotImplemented
    return torch.zeros_like(input, dtype=torch.bool)


def equals_infinity(x: Tensor, infinity: float) -> Tensor:
    """Whether numbers are this infinity, which integers never are."""
    return x == infinity if x.is_floating_point() else torch.zeros_like(x, dtype=torch.bool)


@decomposition(torch.isposinf, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def isposinf_to_equal(input: Tensor) -> Tensor:
    """Whether a number is positive infinity; stock TorchScript has no symbolic for it."""
    return equals_infinity(input, float("inf"))


@decomposition(torch.isneginf, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def isneginf_to_equal(input: Tensor) -> Tensor:
    """Whether a number is negative infinity; stock TorchScript has no symbolic for it."""
    return equals_infinity(input, -float("inf"))


@decomposition(torch.signbit, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def signbit_to_less(input: Tensor) -> Tensor:
    """Whether the sign bit is set; that of NaN counts as not set.

    Stock TorchScript has no symbolic for it, stock dynamo misses the sign of -0.0.

    Math: a zero has the sign of its reciprocal, an infinity.
    """
    if not input.is_floating_point():
        return input < 0
    return (input < 0) | (1 / input < 0)


# Of two numbers


@decomposition(torch.isclose, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def isclose_to_less(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether numbers are close; stock TorchScript has no symbolic for it.

    Math: |x - y| <= atol + rtol |y| for finite y, or x = y, or both NaN where those count as equal.
    """
    near = torch.abs(input - other) <= atol + rtol * torch.abs(other)
    if input.is_floating_point():
        near = near & (torch.abs(other) != float("inf")) & (torch.abs(input) != float("inf"))
        if equal_nan:
            near = near | (torch.isnan(input) & torch.isnan(other))
    return near | (input == other)


@decomposition(torch.isin, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def isin_to_equal(
    elements: Tensor | float, test_elements: Tensor | float, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each element is among the test elements; neither exporter has it.

    The comparison takes elements times test elements of memory.

    Math: x is in t if x == t_j for any j; NaN is in nothing.
    """
    if not isinstance(test_elements, Tensor):
        inside = as_tensor(elements) == test_elements
    else:
        one = elements.unsqueeze(-1) if isinstance(elements, Tensor) else elements
        inside = (test_elements.reshape(-1) == one).any(-1)
    return ~inside if invert else inside


ORDER = Declaration(needed_on=("torchscript",), exactness=Exactness.BITWISE)
"""Stock TorchScript writes a comparison of booleans, which ONNX has not."""


def _compare_booleans(compare: Callable[[Any, Any], Tensor], input: Tensor, other: Tensor | float) -> Tensor:
    is_bool = other.dtype == torch.bool if isinstance(other, Tensor) else isinstance(other, bool)
    if input.dtype != torch.bool or not is_bool:
        return NotImplemented
    return compare(input.to(torch.int32), other.to(torch.int32) if isinstance(other, Tensor) else int(other))


@decomposition((torch.lt, torch.less, Tensor.__lt__), **ORDER)
def lt_of_bool(input: Tensor, other: Tensor | float) -> Tensor:
    """Whether a boolean is false and another true."""
    return _compare_booleans(torch.lt, input, other)


@decomposition((torch.le, torch.less_equal, Tensor.__le__), **ORDER)
def le_of_bool(input: Tensor, other: Tensor | float) -> Tensor:
    """Whether a boolean is false or another true."""
    return _compare_booleans(torch.le, input, other)


@decomposition((torch.gt, torch.greater, Tensor.__gt__), **ORDER)
def gt_of_bool(input: Tensor, other: Tensor | float) -> Tensor:
    """Whether a boolean is true and another false."""
    return _compare_booleans(torch.gt, input, other)


@decomposition((torch.ge, torch.greater_equal, Tensor.__ge__), **ORDER)
def ge_of_bool(input: Tensor, other: Tensor | float) -> Tensor:
    """Whether a boolean is true or another false."""
    return _compare_booleans(torch.ge, input, other)


# Halves and numbers

HALVES = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
"""Stock files compare halves with a number in float32, where it is another: the half next to 0.7 is above 0.7."""


def _in_halves(compare: Callable[[Any, Any], Tensor], input: Tensor, other: Any) -> Tensor:
    """A comparison in float16 or bfloat16 where that is the type that torch promotes both sides to.

    Source: https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
    """
    if not isinstance(input, Tensor) or not isinstance(other, (Tensor, int, float, torch.SymInt, torch.SymFloat)):
        return NotImplemented
    is_fraction = isinstance(other, (float, torch.SymFloat))
    dtype = torch.result_type(input, other if isinstance(other, Tensor) else 0.5 if is_fraction else 0)
    if dtype not in (torch.float16, torch.bfloat16):
        return NotImplemented
    if isinstance(other, (int, float)):
        held = nearest(other, dtype)
        return NotImplemented if held == other or other != other else compare(input, held)
    sides = input, as_tensor(other)
    return NotImplemented if input.dtype == sides[1].dtype else compare(*(side.to(dtype) for side in sides))


@decomposition((torch.lt, torch.less, Tensor.__lt__), **HALVES)
def lt_of_halves(input: Tensor, other: Tensor | float) -> Tensor:
    """Whether halves are below another number, which is rounded to a half first."""
    return _in_halves(torch.lt, input, other)


@decomposition((torch.le, torch.less_equal, Tensor.__le__), **HALVES)
def le_of_halves(input: Tensor, other: Tensor | float) -> Tensor:
    """Whether halves are at most another number, which is rounded to a half first."""
    return _in_halves(torch.le, input, other)


@decomposition((torch.gt, torch.greater, Tensor.__gt__), **HALVES)
def gt_of_halves(input: Tensor, other: Tensor | float) -> Tensor:
    """Whether halves are above another number, which is rounded to a half first."""
    return _in_halves(torch.gt, input, other)


@decomposition((torch.ge, torch.greater_equal, Tensor.__ge__), **HALVES)
def ge_of_halves(input: Tensor, other: Tensor | float) -> Tensor:
    """Whether halves are at least another number, which is rounded to a half first."""
    return _in_halves(torch.ge, input, other)


@decomposition((torch.eq, Tensor.__eq__), **HALVES)
def eq_of_halves(input: Tensor, other: Tensor | float) -> Tensor:
    """Whether halves equal another number, which is rounded to a half first."""
    return _in_halves(torch.eq, input, other)


@decomposition((torch.ne, torch.not_equal, Tensor.__ne__), **HALVES)
def ne_of_halves(input: Tensor, other: Tensor | float) -> Tensor:
    """Whether halves differ from another number, which is rounded to a half first."""
    return _in_halves(torch.ne, input, other)


# Of many numbers


def reduce_truth(reduce: Callable[..., Tensor], input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """torch.all or torch.any over one axis, several, or all; a number is true unless it is 0."""
    several = isinstance(dim, (tuple, list))
    if input.dtype == torch.bool and not several and (input.dim() or dim is None):
        return NotImplemented
    result = input if input.dtype == torch.bool else input != 0
    if dim is None:
        result = reduce(result)
    elif input.dim() == 0:
        result = result.clone()
    else:
        for axis in sorted(((d % input.dim()) for d in (dim if several else (dim,))), reverse=True):
            result = reduce(result, axis, keepdim)
    return result.to(torch.uint8) if input.dtype == torch.uint8 else result


@decomposition(torch.all, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def all_of_numbers(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether all of the cells are true.

    Stock TorchScript refuses numbers and several axes, and stock dynamo returns booleans for bytes.
    """
    return reduce_truth(torch.all, input, dim, keepdim)


@decomposition(torch.any, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def any_of_numbers(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether any of the cells is true.

    Stock TorchScript refuses numbers and several axes, and stock dynamo returns booleans for bytes.
    """
    return reduce_truth(torch.any, input, dim, keepdim)
