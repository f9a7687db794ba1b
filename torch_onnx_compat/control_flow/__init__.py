"""Python decisions that depend on the inputs, taken in the file: found, rewritten as masks, and exported once more."""

from torch_onnx_compat.control_flow.masking import RewrittenJob, explain, rewrite_decisions
from torch_onnx_compat.control_flow.survey import decides

__all__ = ["RewrittenJob", "decides", "explain", "rewrite_decisions"]
