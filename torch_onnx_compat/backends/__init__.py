"""The two exporters of torch behind one interface; their internals are used inside this package only."""

from torch_onnx_compat.backends.backend import ExportedGraph, ExportFailed, ExportJob
from torch_onnx_compat.entry import Exporter


def export(exporter: Exporter, job: ExportJob) -> ExportedGraph:
    """Runs one exporter.

    Raises:
        ExportFailed: It refused the model, or fixed a decision or an axis that should vary; the message says where.
    """
    if exporter == "torchscript":
        from torch_onnx_compat.backends import torchscript

        return torchscript.export(job)
    from torch_onnx_compat.backends import dynamo

    return dynamo.export(job)


__all__ = ["ExportFailed", "ExportJob", "ExportedGraph", "export"]
