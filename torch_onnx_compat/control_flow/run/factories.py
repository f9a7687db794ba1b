"""Stand-ins for the functions that make tensors: ``torch.zeros``, ``torch.tensor``, and the legacy constructors.

``torch.Tensor``, ``torch.LongTensor`` and the like take numbers for sizes and a list for data. A trace has a tensor for
each size; C++ takes its number, and no function mode hears of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.wide import WIDE
from torch_onnx_compat.control_flow.run.lifting import is_constant, note_made
from torch_onnx_compat.control_flow.run.lists import Rows
from torch_onnx_compat.control_flow.run.session import Session, as_tensor
from torch_onnx_compat.tracing import below_function_modes, is_tracing


def to_integers(session: Session, value: Any) -> Any:
    """Sizes, with those that were computed in floating point as integers."""
    if isinstance(value, (list, tuple)):
        return type(value)(to_integers(session, item) for item in value) if type(value) in (list, tuple) else value
    if isinstance(value, Tensor) and is_tracing() and not value.dim() and value.is_floating_point():
        return value.to(torch.int64) if session.varies(value) else int(value)
    return value


def of_sizes(session: Session, function: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a function whose first argument is a size or several."""
    return function(to_integers(session, size), *args, **kwargs)


def _tensor(session: Session, function: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
    data = data.stacked() if isinstance(data, Rows) else data
    is_tensor = isinstance(data, Tensor) and session.exact(data) is None
    if is_tensor or not has_varying(session, data) or args:
        made = function(data, *args, **kwargs)
        return made if is_tensor or made is not data else data.detach()
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    built = _stack_numbers(session, data, is_wide=dtype is not None and dtype in WIDE)
    built = built.to(device=device or built.device, dtype=dtype or built.dtype)
    with below_function_modes():  # a number no more
        made = built.detach().clone()
    note_made([made])
    return made


def _new_tensor(session: Session, function: Any, tensor: Tensor, data: Any, *args: Any, **kwargs: Any) -> Any:
    dtype = kwargs.get("dtype") or tensor.dtype
    return _tensor(session, function, data, *args, **{"device": tensor.device, **kwargs, "dtype": dtype})


def has_varying(session: Session, data: Any) -> bool:
    """Whether a number in nested lists depends on the inputs."""
    if isinstance(data, (list, tuple)):
        return any(has_varying(session, item) for item in data)
    return session.varies(data)


def _stack_numbers(session: Session, data: Any, *, is_wide: bool) -> Tensor:
    if not isinstance(data, (list, tuple)):
        exact = session.exact(data) if is_wide and session.computes_wide else None
        return as_tensor(data) if exact is None else exact.reshape(())
    items = [_stack_numbers(session, item, is_wide=is_wide) for item in data]
    dtype = functools.reduce(torch.promote_types, (item.dtype for item in items))
    return torch.stack([item.to(dtype) for item in items])


# Legacy constructors


def _legacy(dtype: torch.dtype | None) -> Callable[..., Any]:
    def stand_in(session: Session, function: Any, *args: Any, **kwargs: Any) -> Any:
        made = None if kwargs else _make(session, args, dtype or torch.get_default_dtype())
        return function(*args, **kwargs) if made is None else made

    return stand_in


def _new(session: Session, function: Any, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
    made = None if kwargs else _make(session, args, tensor.dtype, tensor.device)
    return function(*args, **kwargs) if made is None else made


def _make(session: Session, args: tuple[Any, ...], dtype: torch.dtype, device: Any = None) -> Tensor | None:
    """What a legacy constructor makes of sizes, or of numbers that vary; None of anything else."""
    first = args[0] if len(args) == 1 else None
    sizes = tuple(first) if isinstance(first, torch.Size) else args
    if has_varying(session, sizes) and all(_is_number(session, size) for size in sizes):
        return torch.empty(to_integers(session, sizes), dtype=dtype, device=device)
    # torch.tensor makes the same of a list, and modes see its calls.
    if isinstance(first, (list, tuple)) and (has_varying(session, first) or is_constant(first)):
        made: Tensor = _tensor(session, torch.tensor, first, dtype=dtype, device=device)
        return made
    return None


def _is_number(session: Session, value: Any) -> bool:
    """Whether a value is a size: a trace computes with tensors of integers, where Python has numbers."""
    if isinstance(value, Tensor):
        is_integer = not (value.is_floating_point() or value.dtype == torch.bool)
        return not value.dim() and (session.exact(value) is not None or is_integer)
    return isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool)


METHODS: dict[str, Callable[..., Any]] = {"new_tensor": _new_tensor, "new": _new}
"""By a method's name."""

_LEGACY = [kind for name, kind in vars(torch).items() if name.endswith("Tensor")]
STAND_INS: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((torch.zeros, torch.ones, torch.full, torch.empty), of_sizes),
    **dict.fromkeys((torch.tensor, torch.as_tensor, torch.asarray), _tensor),
    **{kind: _legacy(None if kind is Tensor else kind.dtype) for kind in _LEGACY},
}
"""By function."""
