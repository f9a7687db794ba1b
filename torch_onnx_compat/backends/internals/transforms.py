"""What handles a call of torch: torch.vmap and its like, and subclasses of Tensor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.internals import symbolic
from torch_onnx_compat.backends.internals.find import first_module


def is_transforming() -> bool:
    """Whether torch.vmap, torch.func.grad or their like is active."""
    return bool(torch._C._are_functorch_transforms_active())


def lets_subclasses_handle() -> bool:
    """Whether a call goes to the `__torch_function__` of a subclass of Tensor, and not below it."""
    return bool(torch._C._is_torch_function_enabled())


@contextmanager
def calling_subclasses() -> Iterator[None]:
    """Lets the model call its subclasses of Tensor, as torch's own CausalBias, while a mode sees every operator.

    torch refuses that (torch 2.14: "already associated to a python object of type Tensor"): a mode has made a Tensor of
    the memory by then. What is made of numbers is a constant, which no mode has to see. Of a Tensor, torch makes a
    subclass within a mode, too, unless it is a fake.
    """
    make: Any = Tensor.__new__
    kinds: list[Any] = [kind for kind in _subclasses(Tensor) if kind.__new__ is make]
    for kind in kinds:
        kind.__new__ = _make
    try:
        yield
    finally:
        for kind in kinds:
            del kind.__new__


def _subclasses(kind: type) -> Iterator[type]:
    children: list[type] = kind.__subclasses__()
    for child in children:
        yield child
        yield from _subclasses(child)


def _make(cls: type[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    if any(isinstance(arg, Tensor) or symbolic.is_symbolic(arg) for arg in args):
        return Tensor(*args, **kwargs).as_subclass(cls)
    with symbolic.without_modes():
        return Tensor.__new__(cls, *args, **kwargs)


@contextmanager
def closing_transforms() -> Iterator[None]:
    """Ends what is still open of torch.vmap and its like: a captured program opens them by calls of its own."""
    functorch = torch._C._functorch
    depth = functorch.get_dynamic_layer_stack_depth()
    try:
        yield
    finally:
        functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)


@contextmanager
def capturing_transforms() -> Iterator[None]:
    """What a capture of a model that calls torch.vmap needs.

    torch.export refuses torch.vmap with an axis of results that is not the first (torch 2.14: "we found a fake tensor
    in the exported program constant's list"). So the axis comes first, and is moved outside of torch.vmap.
    """
    module = first_module("torch._functorch.vmap")
    end = module._remove_batch_dim

    def end_in_front(batched: Tensor, level: int, batch_size: Any, out_dim: int) -> Tensor:
        whole: Tensor = end(batched, level, batch_size, 0)
        return whole if not out_dim else whole.movedim(0, out_dim)

    module._remove_batch_dim = end_in_front
    try:
        with closing_transforms():
            yield
    finally:
        module._remove_batch_dim = end
