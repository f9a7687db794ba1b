"""Explains why an export or a run failed and what to do about it, from the text of the error."""

from torch_onnx_compat.diagnosis.explain import Diagnosis, explain, explain_error, hint, with_hint, with_reasons

__all__ = ["Diagnosis", "explain", "explain_error", "hint", "with_hint", "with_reasons"]
