"""Scripted modules inside a traced model: a trace can call their graph as a function, but not the module."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torch_onnx_compat.backends import internals


class _Island(nn.Module):
    """A scripted module's forward as a function; its weights are constants, and its If and Loop stay."""

    def __init__(self, scripted: torch.jit.ScriptModule) -> None:
        super().__init__()
        graph = torch.jit.freeze(scripted.eval()).graph.copy()
        # Freezing made every attribute a constant, so no node reads input 0, the module itself.
        graph.eraseInput(0)
        self.function = internals.function_of_graph(graph)

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def inline_scripted(module: nn.Module) -> None:
    """Replaces every outermost scripted module under a module, in place."""
    for name, child in list(module.named_children()):
        if isinstance(child, torch.jit.ScriptModule):
            setattr(module, name, _Island(child))
        else:
            inline_scripted(child)
