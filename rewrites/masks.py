"""Masks: Python's `if`, `while` and `for` that depend on the inputs, taken in the file instead of frozen.

A trace runs one branch and forgets that there was another. Here the function that decides is rewritten on the model's
copy: both branches run and a mask joins their results (Where); branches that cannot be joined become an ONNX If, and
loops a Loop or a Scan. The user's guide is docs/control_flow.md.
"""

from torch_onnx_compat.catalogue.registry import machinery


@machinery("torch_onnx_compat.control_flow", always=True, source="docs/decisions/0006-decisions-become-masks.md")
def control_flow() -> None:
    """Rewrites Python decisions that depend on the inputs, so that the file takes them."""
