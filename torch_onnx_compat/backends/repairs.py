"""Repairs a TorchScript trace.

A trace loses writes to views, and takes ``x.data`` and copies for constants. It has tensors for sizes, which ``n *= 2``
changes for every name that they have. And it knows neither ``out=`` nor True for a number.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat.backends.autograd_functions import forward_in_the_trace
from torch_onnx_compat.backends.index_lists import IndexLists
from torch_onnx_compat.backends.islands import inline_scripted
from torch_onnx_compat.backends.promotion import Promotion
from torch_onnx_compat.backends.scalar_tensors import ScalarTensors
from torch_onnx_compat.backends.trace_numbers import is_number, sizes_as_numbers
from torch_onnx_compat.backends.truth import has_truth, write_as_numbers
from torch_onnx_compat.backends.writes import ViewWrites
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.tracing import below_function_modes, is_tracing, record_as, recorded_value, without_tracing

_AUGMENTED = {"truediv": "div", "floordiv": "floor_divide", "mod": "remainder"} | {
    name: name for name in ("add", "sub", "mul", "pow")
}
FRESH: dict[Any, Any] = {
    getattr(Tensor, written): getattr(Tensor, name)
    for symbol, name in _AUGMENTED.items()
    for written in (f"__i{symbol}__", f"{name}_")  # torch reports most augmented assignments by the second name
}
"""For each write by which a tensor carries out ``n += 2`` the function that makes a new value."""

_TO_TENSOR = frozenset({torch.as_tensor, torch.asarray})
"""Functions that give a tensor as it is, which a size is in a trace."""

DATA: Any = Tensor.data.__get__  # type: ignore[attr-defined]
"""What ``x.data`` calls."""

COPY: Any = Tensor.__deepcopy__
"""What ``copy.deepcopy`` calls."""


def repair_trace(subject: Subject, modules: Collection[str] = ()) -> None:
    """Makes a subject ready to be traced: scripted parts inlined, and the calls repaired that a trace gets wrong.

    Args:
        subject: Is traced.
        modules: The Python modules whose code is told that sizes are numbers.
    """
    inline_scripted(subject)
    subject.wrap(forward_in_the_trace)
    subject.wrap(Repairs)
    subject.wrap(IndexLists)
    subject.wrap(Promotion)
    subject.wrap(ScalarTensors)
    subject.wrap(partial(sizes_as_numbers, modules))


class Repairs(ViewWrites):
    """Makes writes to views, and the calls that a trace loses or takes for constants."""

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call is a view, a write, a copy, or a number's change.

        And whether it has True or False for a number, or writes what it computes into a tensor,
        ``torch.add(x, y, out=z)``.
        """
        return (
            func in (DATA, COPY)
            or (func in _TO_TENSOR and is_number(args[0] if args else kwargs.get("data")))
            or (func in FRESH and is_number(args[0]))
            or (is_tracing() and has_truth(func, args, kwargs))
            or kwargs.get("out") is not None
            or super().concerns(func, args, kwargs)
        )

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes one call, with what a trace takes for a constant recorded."""
        if is_tracing() and has_truth(func, args, kwargs):
            args, kwargs = write_as_numbers(func, args, kwargs)
        if func in _TO_TENSOR and is_tracing():
            return super().watch(func, args, kwargs).detach()  # a tensor, where a number was
        if func in FRESH and is_tracing() and is_number(args[0]):
            func = FRESH[func]
        if func in (DATA, COPY) and is_tracing():
            return self._repeat(func, args)
        if kwargs.get("out") is not None and is_tracing():
            return self._write_out(func, args, kwargs)
        return super().watch(func, args, kwargs)

    def _write_out(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes ``f(x, out=y)`` as ``y.copy_(f(x))``: the exporter has no operator that is given its result."""
        out = kwargs["out"]
        made = self.watch(func, args, {name: value for name, value in kwargs.items() if name != "out"})
        pairs = [(out, made)] if isinstance(out, Tensor) else list(zip(out, made, strict=True))
        for tensor, value in pairs:
            with below_function_modes(), without_tracing():
                is_resized = tensor.shape != value.shape
                if is_resized:
                    tensor.resize_(value.shape).copy_(value)
            if is_resized:  # it is another tensor in the trace
                record_as(tensor, recorded_value(value.to(tensor.dtype)))
            else:
                self._overwrite(tensor, value)
        return out

    def _repeat(self, func: Any, args: tuple[Any, ...]) -> Any:
        """Makes ``x.data`` or a copy, as a tensor that the trace knows."""
        if not isinstance(args[0], nn.Parameter):
            return super().watch(Tensor.detach if func == DATA else Tensor.clone, args[:1], {})
        result = super().watch(func, args, {})  # stays a parameter's: what is written to it is written to the weight
        record_as(result, recorded_value(args[0]))
        return result
