"""Carries a plan out on a twin: modules are swapped, functions are replaced while the wrapped forward runs.

Torch functions are caught by a TorchFunctionMode inside forward, so no global name is touched. Python functions that
torch cannot see called are exchanged as attributes, in a scope that puts the raw descriptors back, last in first out.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import ModuleType
from typing import Any

from torch import nn

from torch_onnx_compat.caller.undo import put_back
from torch_onnx_compat.catalogue.entry import Declined, Rewrite
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.functional.complex import answer, answer_directly, has_complex, has_pairs, with_pairs
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.plan import Plan
from torch_onnx_compat.prepare import Boundary
from torch_onnx_compat.questions.size_facts import SizeFacts
from torch_onnx_compat.stack import frames
from torch_onnx_compat.swap import swap_modules
from torch_onnx_compat.tracing import answering
from torch_onnx_compat.watch import CallCounter, in_place, nobody_passes, spellings


def rewrite(
    twin: nn.Module, inputs: Inputs, plan: Plan, facts: SizeFacts | None = None, boundary: Boundary | None = None
) -> Subject:
    """Applies the plan's module rewrites to the twin and wraps it so that its function rewrites are in force.

    Args:
        twin: The copy to change.
        inputs: Structure of the arguments.
        plan: Says which entries are armed; what each of them did, and where, is noted in it.
        facts: Answers `tracing.static_size` where the exporter's own sizes cannot.
        boundary: Calls the twin instead, where the caller wants other inputs or outputs than its own.

    Raises:
        CompatError: An entry's body failed; the message names the entry and the place.
    """
    twin = swap_modules(twin, plan, boundary.places if boundary else ())
    functions = [e for e in plan.rewrites() if e.kind == "function"]
    attributes = [e for e in plan.rewrites() if e.kind == "attribute"]

    @contextmanager
    def scope() -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(_exchange_all(attributes, twin, plan))
            if functions:
                stack.enter_context(_FunctionRewrites(functions, twin, plan, facts))
            yield

    return Subject(twin, inputs, scope if functions or attributes else None, boundary)


# Torch functions


class _FunctionRewrites(CallCounter):
    in_bodies = True

    def __init__(self, entries: Sequence[Rewrite], twin: nn.Module, plan: Plan, facts: SizeFacts | None) -> None:
        super().__init__(watched_functions(entries))
        self._table: dict[Any, list[Rewrite]] = {}
        self._writing: set[Any] = set()
        for entry in entries:
            for match in entry.match:
                for spelling in spellings(match):
                    self._table.setdefault(spelling, []).append(entry)
                    if spelling is in_place(getattr(match, "__name__", "")):
                        self._writing.add(spelling)
        self._paths, self._plan, self._facts = module_paths(twin), plan, facts
        self._constants = {id(t) for t in (*twin.buffers(), *twin.parameters()) if t.dtype.is_complex}
        self._running: list[Rewrite] = []

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return func in self.counted or (not self._running and has_complex(args, kwargs))

    def replaces(self, func: Any) -> bool:
        return func in self._table

    def pass_on(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if has_pairs(args, kwargs):
            return answer(func, args, kwargs)
        return super().pass_on(func, args, kwargs)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._running:
            if has_pairs(args, kwargs):
                return self.pass_on(func, args, kwargs)
        else:
            args, kwargs = with_pairs(func, args, kwargs, self._constants)
        entries = [entry for entry in self._table.get(func, ()) if not any(entry is one for one in self._running)]
        number = self.number(func, args, kwargs)
        place = self.place(func) if number is None else None
        sizes = self._facts.of_call(number, args, kwargs, place) if self._facts is not None else None
        for entry in entries:
            try:
                with answering(sizes), answer_directly(), self._inside_of(entry):
                    result = entry.run(partial(calling_module, self._paths), *args, **kwargs)
            except Declined as reason:
                self._plan.declined(entry.name, calling_module(self._paths), str(reason))
                continue
            except CompatError as error:
                if not has_pairs(args, kwargs):
                    raise
                told = f"complex tensors are beyond it: {error.__cause__ or error}"
                self._plan.declined(entry.name, calling_module(self._paths), told)
                continue
            if result is NotImplemented:
                continue
            self._plan.applied(entry.name, calling_module(self._paths))
            return args[0].copy_(result) if func in self._writing and result is not args[0] else result
        return self.pass_on(func, args, kwargs)

    @contextmanager
    def _inside_of(self, entry: Rewrite) -> Iterator[None]:
        """While an entry's body runs: its calls are the exporter's like the model's own, so other entries mend them."""
        self._running.append(entry)
        self._inside += 1
        try:
            with nobody_passes(), self:
                yield
        finally:
            self._inside -= 1
            self._running.pop()


def watched_functions(entries: Sequence[Rewrite]) -> list[Any]:
    """The torch functions that these entries replace."""
    return [match for entry in entries if entry.kind == "function" for match in entry.match]


# Python functions


@contextmanager
def _exchange_all(entries: Sequence[Rewrite], twin: nn.Module, plan: Plan) -> Iterator[None]:
    """Exchanges attributes of loaded modules and classes for the entries' bodies, all or none."""
    with put_back() as stack:
        files, paths = files_of(twin), module_paths(twin)
        for entry in entries:
            for match in entry.match:
                for owner, name in owners_of(match, files):
                    _exchange(owner, name, entry, paths, plan, stack)
        yield


def files_of(twin: nn.Module) -> list[ModuleType]:
    """The Python modules that the classes of a model's modules are defined in, by name."""
    names = sorted({type(m).__module__ for m in twin.modules()})
    return [sys.modules[name] for name in names if name in sys.modules]


def owners_of(match: str, files: Sequence[ModuleType]) -> list[tuple[Any, str]]:
    """Where a dotted name is an attribute: in its module or class if loaded; for ``*.name`` in the model's files."""
    prefix, _, name = match.rpartition(".")
    if prefix == "*":
        return [(file, name) for file in files if inspect.isfunction(vars(file).get(name))]
    parts = prefix.split(".")
    for cut in range(len(parts), 0, -1):
        owner: Any = sys.modules.get(".".join(parts[:cut]))
        if owner is not None:
            for part in parts[cut:]:
                owner = getattr(owner, part, None)
            return [(owner, name), *_find_imports(owner, name, files)] if hasattr(owner, name) else []
    return []


def _find_imports(owner: Any, name: str, files: Sequence[ModuleType]) -> list[tuple[Any, str]]:
    """Where the model's files have a function under a name of their own: ``from owner import name``."""
    function = getattr(owner, name)
    if not inspect.ismodule(owner) or not inspect.isfunction(function):
        return []
    holders = [file for file in files if file is not owner]
    return [(holder, key) for holder in holders for key, value in vars(holder).items() if value is function]


def _exchange(owner: Any, name: str, entry: Rewrite, paths: dict[int, str], plan: Plan, stack: ExitStack) -> None:
    """Exchanges one attribute until the stack is closed."""
    raw = vars(owner).get(name)
    original = getattr(owner, name)

    @functools.wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        try:
            result = entry.run(partial(calling_module, paths), *args, **kwargs)
        except Declined as reason:
            plan.declined(entry.name, calling_module(paths), str(reason))
            return original(*args, **kwargs)
        if result is NotImplemented:
            return original(*args, **kwargs)
        plan.applied(entry.name, calling_module(paths))
        return result

    # What puts it back is known before it changes, and is none of this package's lines: an interrupt may fall on any.
    if name not in vars(owner):
        stack.callback(delattr, owner, name)
    stack.callback(setattr, owner, name, raw if name in vars(owner) else original)
    setattr(owner, name, staticmethod(replacement) if isinstance(raw, staticmethod) else replacement)


# Shared


def module_paths(twin: nn.Module) -> dict[int, str]:
    """Paths of a twin's modules, by identity."""
    return {id(module): path for path, module in twin.named_modules()}


def calling_module(paths: dict[int, str]) -> str:
    """Path of the module whose forward is running, found on the call stack."""
    code = nn.Module._call_impl.__code__
    for frame in frames():
        if frame.f_code is code:
            path = paths.get(id(frame.f_locals.get("self")))
            if path is not None:
                return path
    return ""
