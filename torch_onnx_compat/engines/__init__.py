"""Inference engines that can be run here: one adapter file each, executed in a process of its own."""

from torch_onnx_compat.engines.engine import ENGINES, Engine, find_engine, find_installed
from torch_onnx_compat.engines.process import EngineProcess, Outcome

__all__ = ["ENGINES", "Engine", "EngineProcess", "Outcome", "find_engine", "find_installed"]
