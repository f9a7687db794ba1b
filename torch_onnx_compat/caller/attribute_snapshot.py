"""What a model keeps from one call to the next: which attributes of its modules a run has changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat.backends.internals.versions import versions_of
from torch_onnx_compat.caller.reach import MISSING
from torch_onnx_compat.caller.reachable import INTERNAL, Content, Reachable
from torch_onnx_compat.caller.snapshot import is_alike
from torch_onnx_compat.tracing import below_function_modes

SMALL = 2**20
"""Elements up to which a tensor is compared value by value: writes through ``.data`` are counted nowhere."""


class AttributeSnapshot:
    """The attributes of a model's modules at one moment, with all that can be reached from each.

    Args:
        model: The model. The values of its parameters are left out.
    """

    def __init__(self, model: nn.Module) -> None:
        self._attributes: dict[str, Any] = {}
        """Their values, by path."""
        self._contents: list[tuple[str, Content]] = []
        self._tables: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        """Of the objects that an attribute leads to: its path, their attributes, and a copy of these."""
        self._tensors: list[tuple[str, _Values]] = []
        reached = Reachable()
        reached.leave_out(model.modules())  # each is looked at by itself
        self._modules = [(f"{path}." if path else "", module) for path, module in model.named_modules()]
        with below_function_modes():
            for path, value in self._all():
                self._attributes[path] = value
                if not isinstance(value, nn.Parameter):
                    self._take(path, value, reached)

    def _all(self) -> Iterator[tuple[str, Any]]:
        for prefix, module in self._modules:
            tables = (vars(module), module._buffers, module._parameters, module._modules)
            for key, value in (item for table in tables for item in table.items()):
                if key not in INTERNAL:
                    yield f"{prefix}{key}", value

    def _take(self, path: str, value: Any, reached: Reachable) -> None:
        contents, owners, tensors = len(reached.contents), len(reached.owners), len(reached.tensors)
        reached.add([(path, value)])
        self._contents += [(path, content) for _, content in reached.contents[contents:]]
        self._tables += [(path, vars(owner), dict(vars(owner))) for owner in reached.owners[owners:]]
        self._tensors += [(path, _Values(tensor)) for tensor in reached.tensors[tensors:]]

    def changed(self) -> tuple[str, ...]:
        """The paths of the attributes that are not as they were."""
        with below_function_modes():
            return tuple(dict.fromkeys(self._changes()))

    def _changes(self) -> Iterator[str]:
        now = dict(self._all())
        for path in {**self._attributes, **now}:
            pair = self._attributes.get(path, MISSING), now.get(path, MISSING)
            if not is_alike(*pair) and not _are_equal(*pair):
                yield path
        yield from (path for path, content in self._contents if content.is_changed())
        yield from (path for path, table, before in self._tables if not _are_alike(table, before))
        yield from (path for path, values in self._tensors if values.are_changed())


def _are_alike(now: dict[str, Any], before: dict[str, Any]) -> bool:
    return now.keys() == before.keys() and all(is_alike(now[key], value) for key, value in before.items())


def _are_equal(one: Any, other: Any) -> bool:
    """Whether two tensors hold the same values, as the mask has that forward makes anew at each call."""
    if not (isinstance(one, Tensor) and isinstance(other, Tensor)):
        return False
    is_same_kind = one.shape == other.shape and one.dtype == other.dtype and one.layout is other.layout
    return is_same_kind and one.layout is torch.strided and not one.is_quantized and torch.equal(one, other)


class _Values:
    """The values of a tensor at one moment."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor, self._writes = tensor, _writes_to(tensor)
        self._is_small = type(tensor) is Tensor and tensor.layout is torch.strided and tensor.numel() <= SMALL
        self._before = tensor.detach().clone() if self._is_small else None

    def are_changed(self) -> bool:
        """Whether some are others now; where nobody has looked at each, whether the tensor was written to."""
        if self._before is None:
            return _writes_to(self._tensor) != self._writes
        now, before = self._tensor.detach(), self._before
        return (
            now.shape != before.shape
            or not torch.equal(torch.isnan(now), torch.isnan(before))
            or not torch.equal(now.nan_to_num(), before.nan_to_num())
        )


def _writes_to(tensor: Tensor) -> tuple[int, ...]:
    return () if tensor.is_inference() else versions_of([tensor])
