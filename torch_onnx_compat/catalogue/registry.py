"""The three decorators, and the registry they fill."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ParamSpec, TypedDict, TypeVar

import torch
from torch import nn
from typing_extensions import Unpack

from torch_onnx_compat.catalogue.entry import (
    EXPORTERS,
    MIN_OPSET,
    Entry,
    Exactness,
    Exporter,
    Machinery,
    Need,
    Operator,
    Rewrite,
    RewriteKind,
    Symbolic,
    qualified_name,
)
from torch_onnx_compat.errors import ArgumentError, ClashError, CompatError, unknown_name

P = ParamSpec("P")
R = TypeVar("R")

MAX_OPSET = 99
TORCH_PAGE = "https://docs.pytorch.org/docs/stable/generated/{}.html"
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
                    f"{_describe_claim(entry)} for opset {low}..{high} is registered by both {other.owner} "
                    f"({other.name!r}) and {entry.owner} ({entry.name!r}); give one of them targets or a narrower "
                    f"opset range."
                )
        self._entries[entry.name] = entry

    def with_entries(self, extra: Iterable[Any]) -> Registry:
        """A copy with entries for one call: one of a name that is there takes its place, others are tried first.

        Args:
            extra: Functions decorated with `symbolic`, `decomposition` or `rewrite`, or Entry objects.

        Raises:
            CompatError: One of them is neither.
        """
        added = Registry(entry_of(item) for item in extra)
        if not len(added):
            return self
        replaced, claimed = {e.name: e for e in added}, {e.op for e in added.symbolics()}
        there = [
            replaced.get(e.name, e)
            for e in self
            if e.name in replaced or not (isinstance(e, Symbolic) and e.op in claimed)
        ]
        return Registry([*(e for e in added if e.name not in self), *there])

    def arrange(self, modules: Sequence[str]) -> None:
        """Puts the entries of these modules first, in this order, whatever order they were imported in."""
        place = {module: number for number, module in enumerate(modules)}
        ordered = sorted(self, key=lambda entry: place.get(entry.owner, len(place)))
        self._entries = {entry.name: entry for entry in ordered}

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
        raise CompatError(
            f"{item!r} is no catalogue entry; "
            f"decorate it with @symbolic(...), @decomposition(...) or @rewrite(...) first."
        )
    return entry


class Declaration(TypedDict, total=False):
    """What every decorator takes besides what is replaced.

    Attributes:
        name: Name of the entry; the function's name by default.
        needed_on: Exporters that fail or err without the entry.
        avoids: ONNX operators that stock torch emits here and this entry does not.
        always: The entry is right and no slower everywhere.
        fixed_in: First torch version that does without the entry, e.g. "2.7".
        opset: First and last opset for which the body is right.
        targets: Targets it is meant for; none means any.
        exactness: How close the result is to eager torch.
        error: Largest relative error of an APPROXIMATE entry.
        source: Where the mathematics can be read; by default the ``Source:`` of the body's docstring, else of its
            module's, else torch's page on what is replaced.
        issue: Upstream issue.
        registry: Where to put the entry; None keeps it out of every registry, for one call's ``symbolics=[...]`` or
            ``rewrites=[...]``.
    """

    name: str
    needed_on: Iterable[Exporter]
    avoids: Iterable[str | Operator]
    always: bool
    fixed_in: str
    opset: tuple[int, int]
    targets: Iterable[str]
    exactness: Exactness
    error: float
    source: str
    issue: str
    registry: Registry | None


def symbolic(
    op: str | type[torch.autograd.Function], **declaration: Unpack[Declaration]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Registers how a torch operator is written in ONNX operators, for both exporters.

    Args:
        op: Qualified operator, e.g. ``"aten::fmod"``, of which every overload is meant, or an autograd Function.
        **declaration: See `Declaration`.

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
    return _registering(Symbolic, declaration, op=op)


def decomposition(
    function: Callable[..., Any] | tuple[Callable[..., Any], ...], **declaration: Unpack[Declaration]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Registers how a torch function is written in other torch functions, for both exporters.

    Args:
        function: Such as ``torch.roll``, its method included; a tuple when one body serves several.
        **declaration: See `Declaration`.

    Returns:
        A decorator that returns its function unchanged. The function takes the call's arguments, but for ``out=``,
        with which no entry is applied. It may call `decline` where it could be expected to apply and does not; it may
        return NotImplemented where nobody would expect it to, which leaves no note.

    Raises:
        CompatError: It is no function, or an APPROXIMATE entry states no error.
        ClashError: Another entry has the name.
    """
    return _registering(Rewrite, declaration, **_match_fields(function, ("function",), "a torch function"))


def rewrite(match: Any, **declaration: Unpack[Declaration]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Registers an equivalent for a module class or a Python function; for a torch function, see `decomposition`.

    Args:
        match: What is replaced; a tuple when one body serves several.
            A class of modules, or ``"module:package.Class"`` (``*`` allowed) for one that may not be installed: the
            body takes the module and returns its replacement.
            ``"package.module.function"``: a Python function or method that torch cannot see called; the body takes
            the call's arguments, and the attribute is exchanged only while a model is exported. ``"*.function"`` means
            the function of that name in any module that defines a class of the model.
        **declaration: See `Declaration`.

    Returns:
        A decorator that returns its function unchanged. The body may call `decline` where it could be expected to
        apply and does not; it may return NotImplemented where nobody would expect it to, which leaves no note.

    Raises:
        CompatError: The match is none of these, or an APPROXIMATE entry states no error.
        ClashError: Another entry has the name.
    """
    wanted = "an nn.Module class, 'module:package.Class', a torch function, 'package.module.function' or '*.function'"
    return _registering(Rewrite, declaration, **_match_fields(match, ("module", "attribute", "function"), wanted))


def machinery(package: str, **declaration: Unpack[Declaration]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Lists in the catalogue what a package of this project does, so that `include` and `exclude` can name it.

    Args:
        package: Dotted name.
        **declaration: See `Declaration`.

    Returns:
        A decorator of a function that is never called: its name is the entry's, its docstring tells what is done.
    """
    return _registering(Machinery, declaration, package=package)


def _match_fields(match: Any, kinds: Sequence[RewriteKind], wanted: str) -> dict[str, Any]:
    """The fields `kind` and `match` of a Rewrite."""
    members = match if isinstance(match, tuple) else (match,)
    found = [_kind(one) for one in members]
    for one, kind in zip(members, found, strict=True):
        if kind not in kinds:
            raise CompatError(f"rewrite of {one!r}: wanted {wanted}.")
    if len(set(found)) != 1:
        raise CompatError(f"rewrite of {match!r}: all of a tuple's members must be of one kind.")
    plain = tuple(one.removeprefix("module:") if isinstance(one, str) else one for one in members)
    return {"kind": found[0], "match": plain}


def _kind(match: Any) -> RewriteKind | None:
    if isinstance(match, str):
        return "module" if match.startswith("module:") else "attribute" if "." in match else None
    if isinstance(match, type):
        return "module" if issubclass(match, nn.Module) else None
    return "function" if callable(match) else None


def _registering(
    entry_type: type[Entry], declaration: Declaration, **own: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    for unknown in declaration.keys() - Declaration.__annotations__.keys():
        raise unknown_name("keyword", unknown, Declaration.__annotations__)
    exactness, error = declaration.get("exactness", Exactness.ROUNDING), declaration.get("error", 0.0)
    need = _need(declaration)

    def decorate(body: Callable[P, R]) -> Callable[P, R]:
        entry = entry_type(
            name=declaration.get("name") or body.__name__,
            body=body,
            need=need,
            opset=declaration.get("opset", (MIN_OPSET, MAX_OPSET)),
            targets=frozenset(declaration.get("targets", ())),
            exactness=exactness,
            error=error,
            source=declaration.get("source") or _source(body, own.get("match", ())),
            issue=declaration.get("issue", ""),
            owner=body.__module__,
            **own,
        )
        if exactness is Exactness.APPROXIMATE and not error > 0:
            raise CompatError(f"entry {entry.name!r} is APPROXIMATE and must state its largest relative error.")
        registry = declaration.get("registry", DEFAULT)
        if registry is not None:
            registry.add(entry)
        setattr(body, _ATTRIBUTE, entry)
        return body

    return decorate


def _need(declaration: Declaration) -> Need:
    named = declaration.get("needed_on", ())
    if isinstance(named, str):
        raise ArgumentError(f"needed_on={named!r} is a str; wanted a list of exporters: needed_on=({named!r},).")
    exporters = frozenset(named)
    for name in exporters - set(EXPORTERS):
        raise unknown_name("exporter", name, EXPORTERS)
    operators = tuple(Operator(a) if isinstance(a, str) else a for a in declaration.get("avoids", ()))
    return Need(exporters, operators, declaration.get("always", False), declaration.get("fixed_in", ""))


def _source(body: Callable[..., Any], replaced: Sequence[Any] = ()) -> str:
    """The ``Source:`` of the body's docstring, else of its module's, else torch's page on what is replaced."""
    for holder in (body, inspect.getmodule(body)):
        _, found, rest = (inspect.getdoc(holder) or "").partition("Source:")
        if found:
            return " ".join(rest.partition("\n\n")[0].split())
    name = qualified_name(replaced[0]) if replaced else ""
    return TORCH_PAGE.format(name) if name.startswith("torch.") else ""


def _describe_claim(entry: Entry) -> str:
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
