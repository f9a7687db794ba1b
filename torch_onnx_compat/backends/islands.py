"""Scripted modules inside a traced model: a trace can call their graph as a function, but not the module."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import torch
from torch import nn

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.backend import ExportFailed


class _Island(nn.Module):
    """A scripted module's forward as a function; its weights are constants, and its If and Loop stay."""

    def __init__(self, scripted: torch.jit.ScriptModule) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # that scripting is deprecated, which the caller knows
            frozen = torch.jit.freeze(scripted.eval())
        graph = frozen.graph.copy()
        module = next(graph.inputs())
        attributes = _Attributes(graph)
        attributes.resolve(graph.block(), {module.unique(): frozen}, {})
        attributes.close()
        graph.eraseInput(0)
        if any(output.type().kind() == "OptionalType" for output in graph.outputs()):
            raise ExportFailed(
                "the scripted module returns an Optional, which no output of a file can be; return a tensor on every "
                "path."
            )
        self._form = internals.return_tensors(graph)
        self.function = internals.function_of_graph(graph)
        self._defaults = internals.parameters_of(scripted)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        names = list(self._defaults)
        given = {**self._defaults, **dict(zip(names, args, strict=False)), **kwargs}
        result = self.function(*(given[name] for name in names if given[name] is not inspect.Parameter.empty))
        return result if self._form is None else _arrange(self._form, result)


def _arrange(form: Any, result: Any) -> Any:
    """The result as the scripted module returns it, with tensors in the place of numbers."""
    if form is None:
        return None
    if isinstance(form, tuple):
        return tuple(_arrange(part, result) for part in form)
    tensor = result[form.index] if isinstance(result, tuple) else result
    return tensor.to(torch.get_default_dtype()) if form.is_float else tensor


class _Attributes:
    """Makes constants of what freezing has left of a module's attributes: those that forward writes to."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._parts: list[Any] = []

    def close(self) -> None:
        """Removes what is left of the modules, once every attribute is resolved."""
        for node in reversed(self._parts):
            node.destroy()

    def resolve(self, block: Any, modules: dict[int, Any], written: dict[tuple[int, str], Any]) -> None:
        """Replaces the attributes that a block reads and writes by values of the graph.

        Args:
            block: Of the graph.
            modules: The modules among its values, by the values' numbers.
            written: The values that attributes have been given, by module and name.

        Raises:
            ExportFailed: An attribute is written in a branch or a loop, so that no one value is the attribute's.
        """
        for node in list(block.nodes()):
            if node.kind() == "prim::GetAttr":
                self._read(node, modules, written)
            elif node.kind() == "prim::SetAttr":
                target, value = node.inputs()
                written[id(modules[target.unique()]), node.s("name")] = value
                node.destroy()
            else:
                self._resolve_inside(node, modules, written)

    def _resolve_inside(self, node: Any, modules: dict[int, Any], written: dict[tuple[int, str], Any]) -> None:
        for inner in node.blocks():
            inside = dict(written)
            self.resolve(inner, modules, inside)
            if inside.keys() != written.keys() or any(inside[key] is not written[key] for key in written):
                name = next(key[1] for key in inside if inside[key] is not written.get(key))
                raise ExportFailed(
                    f"the scripted module writes its attribute {name!r} in a branch or a loop; keep such a value in a "
                    f"variable of forward."
                )

    def _read(self, node: Any, modules: dict[int, Any], written: dict[tuple[int, str], Any]) -> None:
        owner, name = modules[next(node.inputs()).unique()], node.s("name")
        made = written.get((id(owner), name))
        if made is None:
            value = getattr(owner, name)
            if internals.is_scripted_part(value):
                modules[node.output().unique()] = value
                self._parts.append(node)
                return
            self._graph.setInsertPoint(node)
            made = self._graph.insertConstant(value.detach() if isinstance(value, torch.Tensor) else value)
        node.output().replaceAllUsesWith(made)
        node.destroy()


def inline_scripted(module: nn.Module) -> None:
    """Replaces every outermost scripted module under a module, in place."""
    for name, child in list(module.named_children()):
        if internals.has_scripted_forward(child):
            setattr(module, name, _Island(child))
        else:
            inline_scripted(child)
