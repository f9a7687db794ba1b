"""A report to look at or to keep: one HTML, Markdown or JSON file about an export that succeeded or failed."""

from torch_onnx_compat.report.stock import before, module_paths
from torch_onnx_compat.report.write import report_on_file, write_report

__all__ = ["before", "module_paths", "report_on_file", "write_report"]
