"""Slices of axes whose sizes are symbols, whose ends may lie beyond the axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from torch_onnx_compat.backends.internals.find import first_module

_SLICE = torch.ops.aten.slice.Tensor


@contextmanager
def open_slices() -> Iterator[None]:
    """Makes the bounds of slices part of the program where no rule tells on which side of the axis' end they lie.

    torch asks the example otherwise, and the program holds for such sizes only. torch before 2.9 knows no other way.
    """
    config = first_module("torch.fx.experimental._config")

    def without_questions(given: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with config.patch(backed_size_oblivious=True):
            return given(*args, **kwargs)

    with _replace_slice(without_questions) if hasattr(config, "backed_size_oblivious") else nullcontext():
        yield


@contextmanager
def watch_slices(note: Callable[[], None]) -> Iterator[None]:
    """Notes each slice whose bounds torch asks the example about."""

    def watched(given: Callable[..., Any], mode: Any, *args: Any, **kwargs: Any) -> Any:
        before = _count(mode)
        result = given(mode, *args, **kwargs)
        if _count(mode) != before:
            note()
        return result

    with _replace_slice(watched):
        yield


def _count(mode: Any) -> int:
    return len(mode.shape_env.guards) if mode.shape_env is not None else 0


def _replace_slice(wrapper: Callable[..., Any]) -> AbstractContextManager[None]:
    """Calls a wrapper in the place of torch's own slice of fake tensors, where torch has one."""
    table: dict[Any, Any] = first_module("torch._subclasses.fake_impls").op_implementations_dict
    given = table.get(_SLICE)
    if given is None:
        return nullcontext()

    @contextmanager
    def exchange() -> Iterator[None]:
        table[_SLICE] = lambda *args, **kwargs: wrapper(given, *args, **kwargs)
        try:
            yield
        finally:
            table[_SLICE] = given

    return exchange()
