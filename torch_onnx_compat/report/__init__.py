"""A report to look at or to keep: one HTML, Markdown or JSON file about an export that succeeded or failed."""

from torch_onnx_compat.report.stock import before
from torch_onnx_compat.report.write import report_on_file, write_report

__all__ = ["before", "report_on_file", "write_report"]
