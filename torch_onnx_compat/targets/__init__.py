"""Inference engines as measured data: which opsets and operators each one runs, and which it runs wrong."""

from torch_onnx_compat.targets.profile import known_targets, load_target
from torch_onnx_compat.targets.target import Objection, Row, Target

__all__ = ["Objection", "Row", "Target", "known_targets", "load_target"]
