"""The two exporters of torch behind one interface; their internals are used inside this package only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_onnx_compat.lazy import import_on_demand as _import_on_demand

if TYPE_CHECKING:
    from torch_onnx_compat.backends.backend import ExportedGraph as ExportedGraph
    from torch_onnx_compat.backends.backend import ExportFailed as ExportFailed
    from torch_onnx_compat.backends.backend import ExportJob as ExportJob
    from torch_onnx_compat.catalogue.entry import Exporter

# Not at once: `backend` needs `observe`, which needs `backends.internals`, and thereby this package.
_import_on_demand(
    __name__, dict.fromkeys(("ExportFailed", "ExportJob", "ExportedGraph"), "torch_onnx_compat.backends.backend")
)


def export(exporter: Exporter, job: ExportJob) -> ExportedGraph:
    """Runs one exporter.

    Raises:
        ExportFailed: It refused the model, or fixed a decision or an axis that should vary; the message says where.
    """
    from torch_onnx_compat.backends.written_attributes import prepare_written

    job = prepare_written(job, registers=exporter == "dynamo")
    if exporter == "torchscript":
        from torch_onnx_compat.backends import torchscript

        return torchscript.export(job)
    from torch_onnx_compat.backends import dynamo

    return dynamo.export(job)


__all__ = ["ExportFailed", "ExportJob", "ExportedGraph", "export"]
