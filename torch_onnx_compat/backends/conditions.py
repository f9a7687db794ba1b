"""Questions that torch answers with a Python bool, as tensors that a trace records and a mask can use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.functional.arithmetic import is_size_of


def has_bool_answer(func: Any) -> bool:
    """Whether a function of torch answers a question about values with a Python bool."""
    return func in _QUESTIONS


def as_condition(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """The answer as a boolean tensor of shape (); None where it is no question about values.

    Args:
        func: torch.equal, torch.allclose, torch.is_nonzero, or one of their other spellings.
        args: Its arguments.
        kwargs: Its keyword arguments.
    """
    return _QUESTIONS[func](*args, **kwargs)


def _equal(input: Tensor, other: Tensor) -> Tensor | None:
    if input.dim() != other.dim() or input.dtype != other.dtype:
        return None
    answers: list[Tensor] = []
    for dim, (ours, theirs) in enumerate(zip(input.shape, other.shape, strict=True)):
        if not isinstance(ours, Tensor):
            if bool(ours == theirs):
                continue
            return None  # a question about sizes alone, which torch.export sees
        if is_size_of(theirs, input, dim):
            continue
        answers.append(ours == theirs)
        shorter = torch.minimum(ours, theirs)
        input, other = input.narrow(dim, 0, shorter), other.narrow(dim, 0, shorter)
    return functools.reduce(torch.logical_and, answers, (input == other).all())


def _allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor | None:
    near = (input - other).abs() <= atol + rtol * other.abs()
    if equal_nan:
        near = near | ((input != input) & (other != other))
    return (near | (input == other)).all()


def _is_nonzero(input: Tensor) -> Tensor | None:
    return input.reshape(()) != 0


_QUESTIONS: dict[Any, Callable[..., Tensor | None]] = {
    torch.equal: _equal,
    Tensor.equal: _equal,
    torch.ops.aten.equal: _equal,
    torch.ops.aten.equal.default: _equal,
    torch.allclose: _allclose,
    Tensor.allclose: _allclose,
    torch.ops.aten.allclose: _allclose,
    torch.is_nonzero: _is_nonzero,
    Tensor.is_nonzero: _is_nonzero,
    torch.ops.aten.is_nonzero: _is_nonzero,
}
