"""State that a branch can reach beside its names: attributes of modules, and containers that have several names.

A branch that may not be taken runs all the same, so what it changes there would be changed for every input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from torch_onnx_compat.control_flow.run.branch import Branch, variables_of

_TABLES = ("_parameters", "_buffers", "_modules")
_CONTAINERS = (list, dict, set)

State = list[tuple[str, Any, Any]]
"""Name, object, and a copy of it one level deep."""


def take_state(branch: Any) -> State:
    """The attributes of the modules that a branch can reach, and the containers among these."""
    found: State = []
    for module in _modules(branch):
        own = vars(module)
        found.append(("", own, dict(own)))
        for name, value in own.items():
            if type(value) in _CONTAINERS:
                found.append((name, value, value.copy()))
    return found


def name_change(state: State) -> str:
    """The attribute that was bound or changed since; empty if there is none."""
    for name, now, before in state:
        if isinstance(now, dict):
            changed = [key for key in {**before, **now} if now.get(key, state) is not before.get(key, state)]
            if changed:
                return f"{name}[{changed[0]!r}]" if name and name not in _TABLES else str(changed[0])
        elif len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True)):
            return name
    return ""


def put_back(state: State) -> None:
    """Undoes the changes."""
    for _, now, before in state:
        if isinstance(now, list):
            now[:] = before
        else:
            now.clear()
            now.update(before)


def _modules(branch: Any) -> Iterator[nn.Module]:
    function = getattr(branch, "function", branch)
    reached = [*getattr(branch, "scope", {}).values(), *(value for _, value in variables_of(function))]
    seen: set[int] = set()
    for value in reached:
        for module in value.modules() if isinstance(value, nn.Module) else ():
            if id(module) not in seen:
                seen.add(id(module))
                yield module


def name_alias(branch: Branch) -> str:
    """A second name of a container that the branch changes, or the name of what holds it; empty if there is none."""
    code = branch.function.__code__
    if "copy_container" not in code.co_names:
        return ""
    for name in code.co_varnames[: code.co_argcount]:
        container = branch.scope.get(name)
        if type(container) in _CONTAINERS:
            for other, value in branch.scope.items():
                if other != name and _holds(value, container):
                    return f"{name} is changed, which is {other} too"
    return ""


def _holds(value: Any, container: Any, depth: int = 3) -> bool:
    if value is container:
        return True
    if not depth or not isinstance(value, (list, tuple, dict)):
        return False
    items = value.values() if isinstance(value, dict) else value
    return any(_holds(item, container, depth - 1) for item in items)
