"""Control flow: finds Python decisions that depend on the inputs, and rewrites them so that the file takes them."""

from torch_onnx_compat.control_flow.masking import RewrittenJob, explain, rewrite_decisions
from torch_onnx_compat.control_flow.run import runtime as runtime  # rewritten code does in a capture: not Python's max
from torch_onnx_compat.control_flow.survey import decides

__all__ = ["RewrittenJob", "decides", "explain", "rewrite_decisions"]
