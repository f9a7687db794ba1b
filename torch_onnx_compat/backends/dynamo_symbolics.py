"""A plan's symbolics as translations for torch's dynamo exporter: one function for each overload of an operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.backend import ExportFailed, ExportJob
from torch_onnx_compat.backends.dynamo_ops import DynamoOps
from torch_onnx_compat.catalogue.entry import Declined, Symbolic, decline
from torch_onnx_compat.ops import ONNX_TYPES

ON_SIZES: dict[str, Callable[..., Any]] = {
    "sym_not": lambda op, a: op.Not(a),
    "sym_float": lambda op, a: op.Cast(a, to=ONNX_TYPES[torch.float32]),
    "sym_max": lambda op, a, b: op.Max(a, b),
    "sym_min": lambda op, a, b: op.Min(a, b),
    "sym_ite": lambda op, condition, a, b: op.Where(condition, *op.promoted(a, b)[1]),
}
"""Torch's functions on sizes; later versions of its exporter translate them alike."""


_WITH_SCALARS = ("add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor")
"""Operators whose ``Scalar`` overload torch translates for constants only, and not for numbers made of sizes."""


def translation_table(job: ExportJob, opset: int) -> dict[Any, Callable[..., Any]]:
    """The plan's symbolics by overload, and the functions on sizes that this version of torch does not translate."""
    op = DynamoOps(opset)
    table: dict[Any, Callable[..., Any]] = {
        function: _of_sizes(op, ON_SIZES[function.__name__]) for function in internals.untranslated(ON_SIZES)
    }
    table |= {getattr(torch.ops.aten, name).Scalar: _with_scalar(op, name) for name in _WITH_SCALARS}
    for entry in job.plan.symbolics():
        if not entry.op.startswith("autograd::"):
            for overload in internals.overloads(entry.op):
                table[overload] = translation_of(entry, job, opset, overload)
    return table


def _of_sizes(op: DynamoOps, body: Callable[..., Any]) -> Callable[..., Any]:
    """A function without default arguments: torch reads a signature from what it is given."""

    def lower(*sizes: Any) -> Any:
        return body(op, *sizes)

    return lower


def _with_scalar(op: DynamoOps, name: str) -> Callable[..., Any]:
    """The ``Scalar`` overload by the ``Tensor`` one, where the number is computed in the file."""
    packet = getattr(torch.ops.aten, name)

    def lower(x: Any, other: Any, **kwargs: Any) -> Any:
        is_constant = isinstance(other, (bool, int, float, complex))
        built_in = internals.torchlib_function(packet.Scalar if is_constant else packet.Tensor)
        if built_in is None:
            raise ExportFailed(f"dynamo exporter: torch does not translate {packet.Scalar}.")
        return built_in(x, other if is_constant else op.CastLike(other, x), **kwargs)

    return lower


def translation_of(entry: Symbolic, job: ExportJob, opset: int, overload: Any = None) -> Callable[..., Any]:
    """A symbolic as a function of onnxscript values and Python numbers, which torch calls."""
    parameters = list(inspect.signature(entry.body).parameters)[1:]

    def lower(*args: Any, **kwargs: Any) -> Any:
        known = {k: v for k, v in kwargs.items() if k in parameters}
        built_in = internals.torchlib_function(overload) if overload is not None else None
        try:
            result = entry.run(str, DynamoOps(opset), *args[: len(parameters)], **known)
            if result is NotImplemented and built_in is not None:
                return built_in(*args, **kwargs)
            if result is NotImplemented:
                decline("it does not take these arguments, and torch has nothing for the operator")
        except Declined as reason:
            job.plan.declined(entry.name, "", str(reason))
            if built_in is None:
                raise ExportFailed(f"{entry.op} cannot be exported: {entry.name} declined: {reason}.") from None
            return built_in(*args, **kwargs)
        job.plan.applied(entry.name, "")
        return result

    lower.__name__ = entry.name
    return lower
