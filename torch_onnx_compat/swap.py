"""Replaces modules of a twin by what the plan's module rewrites make of them."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from torch_onnx_compat.caller.undo import assign_as
from torch_onnx_compat.catalogue.entry import Declined, Rewrite
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.plan import Plan


def swap_modules(twin: nn.Module, plan: Plan, kept: Collection[str]) -> nn.Module:
    """Carries out the plan's module rewrites on a twin; returns it, or what replaces it as a whole.

    Args:
        twin: The copy to change.
        plan: Says which entries are armed; what each of them did, and where, is noted in it.
        kept: Paths of modules and attributes that are asked for, which no replacement may lack.

    Raises:
        CompatError: An entry's body failed, or the module belongs to a scripted one.
    """
    entries = [e for e in plan.rewrites() if e.kind == "module"]
    if not entries:
        return twin
    root = nn.Module()
    root.add_module("root", twin)
    _Swap(entries, plan, kept).children(root, "")
    new = root.get_submodule("root")
    assign_as(new, twin)
    return new


class _Swap:
    """Swaps modules from the root down, each once however many paths lead to it."""

    def __init__(self, entries: Sequence[Rewrite], plan: Plan, kept: Collection[str]) -> None:
        self._entries, self._plan, self._kept = entries, plan, kept
        self._done: dict[nn.Module, nn.Module] = {}

    def children(self, parent: nn.Module, path: str) -> None:
        """Swaps what is inside a module."""
        for name, child in list(parent._modules.items()):
            if child is None:
                continue
            place = "" if parent is not child and name == "root" and not path else f"{path}.{name}".lstrip(".")
            if child not in self._done:
                self._done[child] = replaced = self._replacement(child, place)
                self._done.setdefault(replaced, replaced)
                self.children(replaced, place)
            if self._done[child] is not child:
                if isinstance(parent, torch.jit.ScriptModule):
                    raise CompatError(
                        f"{place}: a submodule of a scripted module cannot be replaced; exclude the entry."
                    )
                parent._modules[name] = self._done[child]

    def _replacement(self, module: nn.Module, place: str) -> nn.Module:
        for entry in self._entries:
            if any(_is_class(module, match) for match in entry.match):
                new = self._try_entry(entry, module, place)
                if new is not None:
                    self._plan.applied(entry.name, place)
                    _carry_over(module, new)
                    new.train(module.training)  # some modules' own returns nothing
                    return new
        return module

    def _try_entry(self, entry: Rewrite, module: nn.Module, place: str) -> nn.Module | None:
        if _has_hooks(module) and "*" not in entry.match:  # what matches every class looks for hooks itself
            self._plan.declined(entry.name, place, "the module has hooks, which a replacement would not run")
            return None
        try:
            new = entry.run(lambda: place, module)
        except Declined as reason:
            self._plan.declined(entry.name, place, str(reason))
            return None
        if new is NotImplemented:
            return None
        if not isinstance(new, nn.Module):
            raise CompatError(f"{place}: entry {entry.name!r} returned a {type(new).__name__}; wanted an nn.Module.")
        prefix = f"{place}." if place else ""
        inside = (path.removeprefix(prefix) for path in self._kept if path.startswith(prefix) and path != place)
        lost = next((path for path in inside if not _has(new, path)), None)
        if lost is not None:
            self._plan.declined(entry.name, place, f"{lost!r} in it is asked for, which the replacement does not have")
            return None
        return new


def _has(module: nn.Module, path: str) -> bool:
    try:
        operator.attrgetter(path)(module)
    except AttributeError:
        return False
    return True


def _carry_over(old: nn.Module, new: nn.Module) -> None:
    """Gives a replacement what others may read off the module: ultralytics notes on each layer what it reads."""
    for name, value in vars(old).items():
        if isinstance(value, (bool, int, float, str, list, tuple)) and not hasattr(new, name):
            vars(new)[name] = value


def _is_class(module: nn.Module, match: Any) -> bool:
    if isinstance(match, type):
        return type(module) is match  # exactly: a subclass may override forward
    kind = type(module)
    return fnmatchcase(f"{kind.__module__}.{kind.__qualname__}", match)


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)
