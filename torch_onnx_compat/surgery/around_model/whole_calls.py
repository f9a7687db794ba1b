"""Finds the calls of modules that `keep_as_function` keeps whole in the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from torch_onnx_compat.errors import ArgumentError, unknown_name
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.surgery.around_model.boundary import run
from torch_onnx_compat.surgery.around_model.custom import CustomNode, WholeCall
from torch_onnx_compat.surgery.around_model.recorder import Recorder
from torch_onnx_compat.surgery.around_model.selectors import Selector


def find_whole_calls(prepared: Prepared, wanted: Any) -> tuple[WholeCall, ...]:
    """Finds the calls of the modules that the caller wants to keep whole; the innermost come first.

    Args:
        prepared: The model.
        wanted: Classes of modules, names of classes, or paths of modules; or a mapping from these to the function's
            name ``"domain::Name"``, or to a CustomNode.

    Raises:
        CompatError: One names no module, or none that is called on the example.
    """
    if isinstance(wanted, (str, type)):
        wanted = [wanted]
    forms = dict(wanted) if isinstance(wanted, Mapping) else dict.fromkeys(wanted)
    modules = dict(prepared.model.named_modules())
    chosen: dict[str, Any] = {}
    for which, form in forms.items():
        for path in _paths(which, modules):
            chosen.setdefault(path, (which, form))
    every = [Selector(path, path) for path in chosen]
    recorder = Recorder(every, to_the_end=True)
    run(prepared, prepared.inputs, recorder)
    for which in forms:
        if not any(recorder.calls[path] for path, (whose, _) in chosen.items() if whose is which):
            raise ArgumentError(f"keep_as_function: {_text(which)} is never called on the example input.")
    deepest = sorted(chosen, key=lambda path: -path.count(".") if path else 1)
    return tuple(
        _whole_call(path, call, modules[path], chosen[path][1])
        for path in deepest
        for call in range(recorder.calls[path])
    )


def _paths(which: Any, modules: Mapping[str, nn.Module]) -> list[str]:
    if isinstance(which, str) and which in modules and which:
        return [which]
    names = {type(module).__name__ for path, module in modules.items() if path}
    if isinstance(which, str):
        found = [path for path, module in modules.items() if path and type(module).__name__ == which]
    elif isinstance(which, type):
        found = [path for path, module in modules.items() if path and isinstance(module, which)]
    else:
        raise ArgumentError(f"keep_as_function: {which!r} is a {type(which).__name__}; wanted a class or a path.")
    whole = modules[""]
    if not found and (isinstance(whole, which) if isinstance(which, type) else which in ("", type(whole).__name__)):
        raise ArgumentError(
            f"keep_as_function: {type(whole).__name__} is the class of the model itself, which is the file as a whole; "
            f"name a class or a path of modules in it, or put the model into a module and export that."
        )
    if not found:
        known = unknown_name("module or class", _text(which), {*names, *filter(None, modules)})
        raise ArgumentError(f"keep_as_function: {known}")
    return found


def _whole_call(path: str, call: int, module: nn.Module, form: Any) -> WholeCall:
    kind = type(module)
    operator = form.operator if isinstance(form, CustomNode) else form or f"{kind.__module__}::{kind.__name__}"
    domain, _, op_type = str(operator).rpartition("::")
    if not domain or not op_type.isidentifier() or domain == "ai.onnx":
        raise ArgumentError(f"keep_as_function: {operator!r} is no name of a function; wanted 'domain::Name'.")
    return WholeCall(
        Selector(f"{path}:{call}:input", path, call, "input"),
        Selector(f"{path}:{call}", path, call),
        domain,
        op_type,
        form.attributes if isinstance(form, CustomNode) else {},
        not isinstance(form, CustomNode),
        path,
    )


def _text(which: Any) -> str:
    return which.__name__ if isinstance(which, type) else str(which)
