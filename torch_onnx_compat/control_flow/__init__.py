"""Control flow: finds Python decisions that depend on the inputs, and rewrites them so that the file takes them."""

from torch_onnx_compat.control_flow.masking import RewrittenJob, explain, rewrite_decisions

# Rewritten code imports it while a model is captured, and then torch.export's functions stand for Python's max and min.
from torch_onnx_compat.control_flow.run import runtime as runtime
from torch_onnx_compat.control_flow.run.refusal import UnequalBranches
from torch_onnx_compat.control_flow.survey import decides

__all__ = ["RewrittenJob", "UnequalBranches", "decides", "explain", "rewrite_decisions"]
