"""The two decorators, and the registry they fill."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

import torch
from torch import nn

from torch_onnx_compat.entry import (
    EXPORTERS,
    MIN_OPSET,
    Entry,
    Exactness,
    Exporter,
    Need,
    Operator,
    Rewrite,
    RewriteKind,
    Symbolic,
)
from torch_onnx_compat.errors import ClashError, CompatError, unknown_name

P = ParamSpec("P")
R = TypeVar("R")

MAX_OPSET = 99
_ATTRIBUTE = "__torch_onnx_compat_entry__"


class Registry:
    """Entries by name; refuses two that claim the same thing equally specifically."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Adds an entry.

        Raises:
            ClashError: Another entry has the name, or claims the same operator for the same opsets and targets.
        """
        same = self._entries.get(entry.name)
        if same is not None:
            raise ClashError(
                f"entry {entry.name!r} is registered by both {same.owner} and {entry.owner}; rename one of them."
            )
        for other in self._entries.values():
            if _clash(entry, other):
                low, high = max(entry.opset[0], other.opset[0]), min(entry.opset[1], other.opset[1])
                raise ClashError(
                    f"{_claimed(entry)} for opset {low}..{high} is registered by both {other.owner} "
                    f"({other.name!r}) and {entry.owner} ({entry.name!r}); give one of them targets or a narrower "
                    f"opset range."
                )
        self._entries[entry.name] = entry

    def extended(self, extra: Iterable[Any]) -> Registry:
        """A copy with entries for one call, which win over entries of the same name or operator.

        Args:
            extra: Functions decorated with `symbolic` or `rewrite`, or Entry objects.

        Raises:
            CompatError: One of them is neither.
        """
        added = Registry(entry_of(item) for item in extra)
        if not len(added):
            return self
        claimed = {e.op for e in added.symbolics()}
        kept = (e for e in self if e.name not in added and not (isinstance(e, Symbolic) and e.op in claimed))
        return Registry([*kept, *added])

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise unknown_name("entry", name, self._entries) from None

    def symbolics(self) -> list[Symbolic]:
        """The symbolics, in order of registration."""
        return [e for e in self if isinstance(e, Symbolic)]

    def rewrites(self) -> list[Rewrite]:
        """The rewrites, in order of registration."""
        return [e for e in self if isinstance(e, Rewrite)]


DEFAULT = Registry()
"""Where the decorators put entries unless they are told otherwise."""


def entry_of(item: Any) -> Entry:
    """The Entry that a decorator made of a function, or the Entry itself.

    Raises:
        CompatError: The item was not decorated.
    """
    entry = item if isinstance(item, Entry) else getattr(item, _ATTRIBUTE, None)
    if not isinstance(entry, Entry):
        raise CompatError(f"{item!r} is no catalogue entry; decorate it with @symbolic(...) or @rewrite(...) first.")
    return entry


def symbolic(
    op: str | type[torch.autograd.Function],
    *,
    name: str | None = None,
    needed_on: Iterable[Exporter] = (),
    avoids: Iterable[str | Operator] = (),
    always: bool = False,
    fixed_in: str = "",
    opset: tuple[int, int] = (MIN_OPSET, MAX_OPSET),
    targets: Iterable[str] = (),
    exactness: Exactness = Exactness.ROUNDING,
    error: float = 0.0,
    source: str = "",
    issue: str = "",
    registry: Registry | None = DEFAULT,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Registers how a torch operator is written in ONNX operators, for both exporters.

    Args:
        op: Qualified operator, e.g. ``"aten::fmod"``, of which every overload is meant, or an autograd Function.
        name: Name of the entry; the function's name by default.
        needed_on: Exporters that fail or err without the entry.
        avoids: ONNX operators that stock torch emits here and this entry does not.
        always: The entry is right and no slower everywhere.
        fixed_in: First torch version that does without the entry, e.g. "2.7".
        opset: First and last opset for which the body is right.
        targets: Targets it is meant for; none means any.
        exactness: How close the result is to eager torch.
        error: Largest relative error of an APPROXIMATE entry.
        source: Where the operator's definition can be read.
        issue: Upstream issue.
        registry: Where to put the entry; None keeps it out of every registry (for ``symbolics=[...]``).

    Returns:
        A decorator that returns its function unchanged. The function takes ``op: Ops``, then the operator's
        arguments by the names of its schema, annotated `Value`, a Python type, or both.

    Raises:
        CompatError: The operator is not qualified, or an APPROXIMATE entry states no error.
        ClashError: Another entry claims the same.
    """
    if isinstance(op, type):
        op = f"autograd::{op.__module__}.{op.__qualname__}"
    if "::" not in op:
        raise CompatError(f"symbolic {op!r}: the operator needs its namespace, e.g. 'aten::{op}'.")
    need = _need(needed_on, avoids, always, fixed_in)

    def decorate(body: Callable[P, R]) -> Callable[P, R]:
        _register(
            Symbolic(
                name=name or body.__name__,
                body=body,
                need=need,
                opset=opset,
                targets=frozenset(targets),
                exactness=exactness,
                error=error,
                source=source or _source(body),
                issue=issue,
                op=op,
                owner=body.__module__,
            ),
            registry,
        )
        return body

    return decorate


def rewrite(
    match: Any,
    *,
    name: str | None = None,
    needed_on: Iterable[Exporter] = (),
    avoids: Iterable[str | Operator] = (),
    always: bool = False,
    fixed_in: str = "",
    opset: tuple[int, int] = (MIN_OPSET, MAX_OPSET),
    targets: Iterable[str] = (),
    exactness: Exactness = Exactness.ROUNDING,
    error: float = 0.0,
    source: str = "",
    issue: str = "",
    registry: Registry | None = DEFAULT,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Registers an equivalent for a module class, a torch function or a Python function.

    Args:
        match: What is replaced; a tuple when one body serves several.
            A class of modules, or ``"module:package.Class"`` (``*`` allowed) for one that may not be installed: the
            body takes the module and returns its replacement.
            A torch function such as ``torch.roll``, its method included: the body takes the call's arguments.
            ``"package.module.function"``: a Python function or method that torch cannot see called; the body takes
            the call's arguments, and the attribute is exchanged only while a model is exported. ``"*.function"`` means
            the function of that name in any module that defines a class of the model.
        name: Name of the entry; the function's name by default.
        needed_on: Exporters that fail or err without the entry.
        avoids: ONNX operators that stock torch emits here and this entry does not.
        always: The entry is right and no slower everywhere.
        fixed_in: First torch version that does without the entry, e.g. "2.7".
        opset: First and last opset for which the body is right.
        targets: Targets it is meant for; none means any.
        exactness: How close the result is to eager torch.
        error: Largest relative error of an APPROXIMATE entry.
        source: Where the mathematics can be read.
        issue: Upstream issue.
        registry: Where to put the entry; None keeps it out of every registry (for ``rewrites=[...]``).

    Returns:
        A decorator that returns its function unchanged. The body may call `decline` where it could be expected to
        apply and does not; it may return NotImplemented where nobody would expect it to, which leaves no note.

    Raises:
        CompatError: The match is none of the three.
        ClashError: Another entry claims the same.
    """
    kinds = [_kind(one) for one in (match if isinstance(match, tuple) else (match,))]
    if len({kind for kind, _ in kinds}) != 1:
        raise CompatError(f"rewrite of {match!r}: all of a tuple's members must be of one kind.")
    need = _need(needed_on, avoids, always, fixed_in)

    def decorate(body: Callable[P, R]) -> Callable[P, R]:
        _register(
            Rewrite(
                name=name or body.__name__,
                body=body,
                need=need,
                opset=opset,
                targets=frozenset(targets),
                exactness=exactness,
                error=error,
                source=source or _source(body),
                issue=issue,
                kind=kinds[0][0],
                match=tuple(matched for _, matched in kinds),
                owner=body.__module__,
            ),
            registry,
        )
        return body

    return decorate


def _kind(match: Any) -> tuple[RewriteKind, Any]:
    if isinstance(match, str):
        if match.startswith("module:"):
            return "module", match.removeprefix("module:")
        if "." in match:
            return "attribute", match
    elif isinstance(match, type) and issubclass(match, nn.Module):
        return "module", match
    elif callable(match) and not isinstance(match, type):
        return "function", match
    raise CompatError(
        f"rewrite of {match!r}: wanted an nn.Module class, 'module:package.Class', a torch function, "
        f"'package.module.function' or '*.function'."
    )


def _need(needed_on: Iterable[Exporter], avoids: Iterable[str | Operator], always: bool, fixed_in: str) -> Need:
    exporters = frozenset(needed_on)
    for name in exporters - set(EXPORTERS):
        raise unknown_name("exporter", name, EXPORTERS)
    operators = tuple(Operator(a) if isinstance(a, str) else a for a in avoids)
    return Need(exporters, operators, always, fixed_in)


def _register(entry: Entry, registry: Registry | None) -> None:
    top = entry.owner.partition(".")[0]
    if top in ("symbolics", "rewrites"):
        # The same file under two names would register twice; only the packaged name is the catalogue's.
        raise CompatError(f"{entry.owner} was imported by its checkout path; import torch_onnx_compat.{entry.owner}.")
    if entry.exactness is Exactness.APPROXIMATE and not entry.error > 0:
        raise CompatError(f"entry {entry.name!r} is APPROXIMATE and must state its largest relative error.")
    if registry is not None:
        registry.add(entry)
    setattr(entry.body, _ATTRIBUTE, entry)


def _source(body: types.FunctionType | Callable[..., Any]) -> str:
    """The ``Source:`` lines of the docstring of the module that holds the body."""
    doc = inspect.getdoc(inspect.getmodule(body)) or ""
    _, found, rest = doc.partition("Source:")
    return " ".join(rest.partition("\n\n")[0].split()) if found else ""


def _claimed(entry: Entry) -> str:
    if isinstance(entry, Symbolic):
        return f"symbolic {entry.op!r}"
    assert isinstance(entry, Rewrite)
    return f"rewrite of {entry.replaces!r}"


def _clash(a: Entry, b: Entry) -> bool:
    """Whether two symbolics claim one operator equally specifically; rewrites of one thing are tried in turn."""
    if not (isinstance(a, Symbolic) and isinstance(b, Symbolic)) or a.op != b.op:
        return False
    overlap = a.opset[0] <= b.opset[1] and b.opset[0] <= a.opset[1]
    if not overlap or bool(a.targets) != bool(b.targets) or (a.targets and not a.targets & b.targets):
        return False
    return a.opset == b.opset or not (_inside(a.opset, b.opset) or _inside(b.opset, a.opset))


def _inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
