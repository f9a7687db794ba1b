"""What torch.onnx.export alone writes, with the same axes asked to be dynamic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.export import Dim

from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.sweep.job import Job


def export_stock(job: Job, prepared: Prepared, path: Path) -> str:
    """Exports the model as somebody would who knows torch's documentation only.

    Args:
        job: By whom, and at which opset.
        prepared: The model and its inputs, with their dynamic axes.
        path: Where to.

    Returns:
        The back end.
    """
    inputs = prepared.inputs
    args, kwargs = inputs.call()
    dynamo = job.by == "torch"
    options: dict[str, Any] = {} if job.opset is None else {"opset_version": job.opset}
    if dynamo:
        options["dynamic_shapes"] = _shapes(prepared)
    else:
        axes = {n: {d: a.name for d, a in held.items()} for n, held in zip(inputs.names, inputs.axes, strict=True)}
        options["dynamic_axes"] = {name: named for name, named in axes.items() if named}
    torch.onnx.export(
        prepared.model, args, path, kwargs=kwargs or None, input_names=list(inputs.names), dynamo=dynamo, **options
    )
    return "dynamo" if dynamo else "torchscript"


def _shapes(prepared: Prepared) -> Any:
    """torch.export's form: the axes in the place of each tensor, by the forward's parameters."""
    inputs = prepared.inputs
    if not any(inputs.axes):
        return None
    dims = {a.name: Dim.AUTO if a.terms else Dim(a.name) for axes in inputs.axes for a in axes.values()}
    leaves: list[Any] = [{d: dims[a.name] for d, a in axes.items()} or None for axes in inputs.axes]
    args, kwargs = inputs.structure.unflatten(leaves)
    named = dict(zip(inputs.parameters, args, strict=False))
    return {**named, **kwargs}
