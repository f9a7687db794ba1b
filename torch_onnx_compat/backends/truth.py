"""True and False as numbers: ``x * True``, ``mask == False``, ``torch.where(mask, True, False)``.

A TorchScript trace has a kind of its own for them, which no operator takes for a number. Each becomes 1 or 0 where the
call's type does not depend on it, else a tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.internals import places_of_numbers
from torch_onnx_compat.tracing import below_function_modes


def has_truth(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call has True or False for a number."""
    return any(
        isinstance(value, bool) and place in places_of_numbers(_name(func))
        for place, value in (*enumerate(args), *kwargs.items())
    )


def write_as_numbers(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call without True and False for numbers."""
    name = _name(func)
    with below_function_modes():
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        # What fills or scatters has the type of its tensor, whatever the number's is.
        keeps_type = "fill" in name or name.startswith("scatter")
        decides = not keeps_type and all(tensor.dtype == torch.bool for tensor in tensors)

        def number(place: int | str, value: Any) -> Any:
            takes_tensor = places_of_numbers(name).get(place)
            if not isinstance(value, bool) or takes_tensor is None:
                return value
            # torch.tensor would be a constant, which torch writes into the call as what it was
            return torch.full((), int(value), dtype=torch.bool) if decides and takes_tensor else int(value)

        return (
            tuple(number(place, value) for place, value in enumerate(args)),
            {key: number(key, value) for key, value in kwargs.items()},
        )


def _name(func: Any) -> str:
    return str(getattr(func, "__name__", ""))
