"""Scripted modules inside a traced model: a trace may call their code as a function, not as a module."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torch_onnx_compat.backends import internals


class _Island(nn.Module):
    """A scripted module's forward as a function with its weights as constants; control flow stays control flow."""

    def __init__(self, scripted: torch.jit.ScriptModule) -> None:
        super().__init__()
        graph = torch.jit.freeze(scripted.eval()).graph.copy()
        # Freezing turned every attribute into a constant, so nothing reads the module itself any more.
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
