"""Inference engines as measured data: which opsets and operators each one runs, and which it runs wrong."""

from torch_onnx_compat.targets.target import Row, Target, known_targets, load_target

__all__ = ["Row", "Target", "known_targets", "load_target"]
