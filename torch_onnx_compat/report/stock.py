"""What torch.onnx.export alone makes of a model: the "before" of a report."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch

from torch_onnx_compat.backends.backend import readable
from torch_onnx_compat.backends.quiet import quiet_logs, without_graph_dump, without_partial_program
from torch_onnx_compat.prepare import export_conditions, prepare
from torch_onnx_compat.result import ExportResult


@dataclass(frozen=True)
class Before:
    """The model without this project."""

    graph: onnx.ModelProto | None
    """torch's file without its weights; None where torch makes none."""
    refusal: str
    """What torch says then."""


def module_paths(model: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Paths of the modules of a model, or of the module that it wraps, and the names of their classes.

    Args:
        model: The original model.
        args: Positional inputs.
        kwargs: Keyword inputs.
    """
    modules = prepare(model, args, kwargs=kwargs).model.named_modules()
    return {path: type(module).__name__ for path, module in modules}


def before(result: ExportResult, model: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Before:
    """Exports a copy of a model as torch alone does, with the exporter, opset and dynamic axes of a file of ours.

    Args:
        result: Our file.
        model: The original model.
        args: Positional inputs.
        kwargs: Keyword inputs.
    """
    ours = result.model_proto
    weights = {tensor.name for tensor in ours.graph.initializer}
    inputs = [value for value in ours.graph.input if value.name not in weights]
    axes = {
        value.name: {i: dim.dim_param for i, dim in enumerate(value.type.tensor_type.shape.dim) if dim.dim_param}
        for value in inputs
    }
    prepared = prepare(model, args, kwargs=kwargs)
    quiet = quiet_logs(), without_graph_dump(), without_partial_program()
    with tempfile.TemporaryDirectory() as folder, export_conditions(), contextlib.ExitStack() as stack:
        for context in quiet:
            stack.enter_context(context)
        path = Path(folder) / "stock.onnx"
        try:
            torch.onnx.export(
                prepared.twin(),
                args if isinstance(args, tuple) else (args,),
                path,
                kwargs=dict(kwargs or {}),
                input_names=[value.name for value in inputs],
                dynamic_axes={name: named for name, named in axes.items() if named} or None,
                opset_version=result.opset,
                dynamo=result.exporter == "dynamo",
            )
        except Exception as error:  # whatever the exporter raises is what it makes of the model
            return Before(None, readable(error))
        return Before(onnx.load(path, load_external_data=False), "")
