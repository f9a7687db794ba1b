"""A case exported as torch does it and as export_compat does."""

from __future__ import annotations

import io

import torch

from operator_cases.case import Call, Case
from torch_onnx_compat import ExportResult, export_compat


def stock(case: Case, exporter: str, opset: int) -> bytes:
    """torch.onnx.export's file."""
    axes, args, model = case.dynamic_axes(), case.example(), case.model()
    names = [f"input{i}" for i in range(len(args))]
    if exporter == "torchscript":
        buffer = io.BytesIO()
        torch.onnx.export(model, args, buffer, dynamo=False, opset_version=opset, input_names=names, dynamic_axes=axes)
        return buffer.getvalue()
    shapes = tuple(dict.fromkeys(axes.get(name, {}), torch.export.Dim.DYNAMIC) or None for name in names)
    program = torch.onnx.export(
        model,
        args,
        dynamo=True,
        opset_version=opset,
        input_names=names,
        dynamic_shapes=(shapes,) if isinstance(model, Call) else shapes,
        verbose=False,
    )
    return program.model_proto.SerializeToString()


def ours(case: Case, exporter: str, opset: int) -> ExportResult:
    """export_compat's file, verified at another batch too."""
    args = case.example()
    return export_compat(
        case.model(),
        args,
        exporter=exporter,
        opset_version=opset,
        input_names=[f"input{i}" for i in range(len(args))],
        dynamic=case.dynamic_axes() or None,
        samples=[case.other()],
        **case.options,
    )
