"""A plan's symbolics as translations for torch's dynamo exporter: one function for each overload of an operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.backend import ExportFailed, ExportJob
from torch_onnx_compat.backends.dynamo_ops import DynamoOps
from torch_onnx_compat.entry import Declined, Symbolic, decline


def translation_table(job: ExportJob, opset: int) -> dict[Any, Callable[..., Any]]:
    """The plan's symbolics by overload."""
    table: dict[Any, Callable[..., Any]] = {}
    for entry in job.plan.symbolics():
        if not entry.op.startswith("autograd::"):
            for overload in internals.overloads(entry.op):
                table[overload] = translation_of(entry, job, opset, overload)
    return table


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
