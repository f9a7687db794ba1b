"""Tensors of a model's own classes, where torch runs without values: its fake tensors are of no other class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

from torch_onnx_compat.backends.internals.symbolic import without_modes
from torch_onnx_compat.backends.internals.transforms import lets_subclasses_handle
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.tracing import below_function_modes
from torch_onnx_compat.watch import is_of_model


@contextmanager
def plain_tensors() -> Iterator[None]:
    """While active, a plain tensor stands for one of a model's own class wherever that changes no call."""
    as_subclass = Tensor.as_subclass

    def keep(tensor: Tensor, kind: type) -> Tensor:
        if isinstance(tensor, FakeTensor) and _adds_nothing(kind):
            return tensor
        return as_subclass(tensor, kind)

    Tensor.as_subclass = keep  # type: ignore[method-assign,assignment]
    try:
        with _PlainTensors():
            yield
    finally:
        del Tensor.as_subclass


def _adds_nothing(kind: type[Tensor]) -> bool:
    """Whether a class has torch's own attributes and calls only, so that a plain tensor may stand for one of its."""
    own = kind.__mro__[: kind.__mro__.index(Tensor)]
    return not any(name == "__torch_function__" or not name.startswith("__") for part in own for name in vars(part))


class _PlainTensors(TorchFunctionMode):
    """Gives torch what a constant of such a class holds, below the class's own ``__torch_function__``."""

    def __init__(self) -> None:
        super().__init__()
        self._plain: dict[int, tuple[Tensor, Tensor]] = {}
        """A tensor by its id, which it keeps as long as it is here, and what holds the same."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if lets_subclasses_handle():
            return func(*args, **(kwargs or {}))
        return func(*tree.map_leaves(args, self._make_plain), **tree.map_leaves(kwargs or {}, self._make_plain))

    def _make_plain(self, tensor: Tensor) -> Tensor:
        if not is_of_model(type(tensor)):
            return tensor
        if id(tensor) not in self._plain:
            with below_function_modes(), without_modes():
                self._plain[id(tensor)] = tensor, tensor.as_subclass(Tensor)
        return self._plain[id(tensor)][1]
