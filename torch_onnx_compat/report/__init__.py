"""A report to look at or to keep: one HTML, Markdown or JSON file about an export that succeeded or failed."""

from torch_onnx_compat.report.stock import before
from torch_onnx_compat.report.write import write_report

__all__ = ["before", "write_report"]
