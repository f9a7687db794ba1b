"""Inference engines as measured data: the opsets and operators that each runs, and the operators that it runs wrong."""

from torch_onnx_compat.targets.profile import known_targets, load_target
from torch_onnx_compat.targets.target import Objection, Row, Target, choose_opset

__all__ = ["Objection", "Row", "Target", "choose_opset", "known_targets", "load_target"]
