"""The rewritten functions of one model, and the context in which they replace the originals."""

from __future__ import annotations

import ast
import difflib
import inspect
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from torch_onnx_compat.control_flow.find.calls import CallSite
from torch_onnx_compat.control_flow.find.sites import Event, functions_of
from torch_onnx_compat.control_flow.find.source import (
    Definition,
    FunctionNode,
    Unrewritable,
    codes_inside,
    compile_definition,
    definition,
    place_of,
)
from torch_onnx_compat.control_flow.find.syntax import walk_all, walk_scope
from torch_onnx_compat.control_flow.lower.expressions import tells_numbers_apart
from torch_onnx_compat.control_flow.lower.openings import open_calls
from torch_onnx_compat.control_flow.lower.printing import lines_before_and_after
from torch_onnx_compat.control_flow.lower.statements import lower
from torch_onnx_compat.garbage import pause_collection
from torch_onnx_compat.handlers import let_handlers_tell

MOST_SPLITS = 4
"""Decisions into whose branches the rest of a function moves, at most: each doubles what is exported of the rest."""


@dataclass
class Rewriting:
    """Functions whose code is exchanged while a model runs.

    The function objects stay, with their defaults and closures. So every reference to one (of a decorator, a subclass,
    a property) runs the new code, and putting the old code back restores everything.
    """

    obstacles: dict[str, str] = field(default_factory=dict)
    """Places of decisions that could not be rewritten, and the reason."""
    _lines: dict[str, set[int]] = field(default_factory=dict)
    _loops: dict[str, set[int]] = field(default_factory=dict)
    """Files and lines of loops that cannot be unrolled."""
    _splits: dict[str, set[int]] = field(default_factory=dict)
    """Files and lines of decisions into whose branches the rest of the function moves."""
    _calls: set[CallSite] = field(default_factory=set)
    """Calls that return values of two kinds, after which the rest of the function moves into two branches."""
    open_calls: set[CallSite] = field(default_factory=set)
    """Those of which the function could be rewritten."""
    _codes: dict[types.CodeType, types.CodeType] = field(default_factory=dict)
    _originals: dict[types.CodeType, types.CodeType] = field(default_factory=dict)
    _functions: dict[types.CodeType, list[types.FunctionType]] = field(default_factory=dict)
    _inside: set[types.CodeType] = field(default_factory=set)
    """Codes of the functions inside rewritten ones."""
    _asked: set[types.CodeType] = field(default_factory=set)
    """Codes of functions that were given to extend_to."""

    def __bool__(self) -> bool:
        return bool(self._codes)

    def extend(self, events: Iterable[Event]) -> bool:
        """Rewrites the functions that took these decisions; returns whether any function changed."""
        stale: dict[types.CodeType, int] = {}
        for event in events:
            lines = self._lines.setdefault(event.filename, set())
            # A function inside a rewritten one is made by it, and so is rewritten with it.
            codes = [self._originals.get(c, c) for c in event.codes if c not in self._inside]
            for code in codes:
                if event.line not in lines or (code not in self._functions and code not in stale):
                    stale[code] = event.line
            lines.add(event.line)
        return self._rewrite(stale)

    def extend_to(self, codes: Iterable[types.CodeType]) -> bool:
        """Rewrites those of these functions that tell numbers from tensors; returns whether any function changed.

        They take no decision that a trace sees, but may be given a tensor in a number's place.
        """
        new = {code for code in codes if code not in self._inside and code not in self._originals} - self._asked
        self._asked |= new
        return self._rewrite({code: code.co_firstlineno for code in new if self._tells_numbers_apart(code)})

    def _tells_numbers_apart(self, code: types.CodeType) -> bool:
        try:
            return code not in self._codes and tells_numbers_apart(definition(code).node)
        except Unrewritable:
            return False

    def mark_loops(self, places: Iterable[tuple[str, int]]) -> bool:
        """Marks loops as loops that run in the file; returns whether any function changed."""
        return self._mark(self._loops, places)

    def mark_splits(self, places: Iterable[tuple[str, int]]) -> bool:
        """Marks decisions into whose branches the rest of the function moves; returns whether any function changed."""
        room = MOST_SPLITS - sum(map(len, self._splits.values()))
        new = [place for place in sorted(places) if place[1] not in self._splits.get(place[0], ())]
        return self._mark(self._splits, new[:room])

    def mark_calls(self, sites: Iterable[CallSite]) -> bool:
        """Moves the rest of a function into two branches after some calls; returns whether any function changed."""
        room = MOST_SPLITS - len(self._calls)
        new = sorted(set(sites) - self._calls, key=lambda site: (site.filename, site.line))[:room]
        self._calls.update(new)
        codes = ((self._originals.get(c, c), site) for site in new for c in site.codes if c not in self._inside)
        return self._rewrite({code: site.line for code, site in codes})

    def _mark(self, marked: dict[str, set[int]], places: Iterable[tuple[str, int]]) -> bool:
        stale: dict[types.CodeType, int] = {}
        for filename, line in places:
            lines = marked.setdefault(filename, set())
            if line not in lines:
                lines.add(line)
                stale.update((code, line) for code in self._codes if code.co_filename == filename)
        return self._rewrite(stale)

    def _rewrite(self, stale: dict[types.CodeType, int]) -> bool:
        unknown = [code for code in stale if code not in self._functions]
        self._functions.update(functions_of(unknown))
        with pause_collection():
            renewed = [self._renew(code, line) for code, line in stale.items()]
        return any(renewed)

    def _renew(self, code: types.CodeType, line: int) -> bool:
        """Rewrites one function; returns whether that was possible."""
        if not self._functions[code]:
            return False  # created by a call that is over; the enclosing function is rewritten instead
        try:
            found = definition(code)
            if code.co_flags & inspect.CO_GENERATOR and self._decides(code, found.node):
                raise Unrewritable(_GENERATOR)
            node = self._lower_definition(code, found)
            let_handlers_tell(node)
            new = compile_definition(node, found.owner, code)
        except Unrewritable as reason:
            self.obstacles[place_of(code.co_filename, line)] = str(reason)
            return False
        self._codes[code] = new
        self._originals[new] = code
        self._inside.update(codes_inside(new))
        return True

    def _decides(self, code: types.CodeType, node: FunctionNode) -> bool:
        """Whether decisions were seen in a function; without any, its statements stay as they are."""
        lines = self._lines.get(code.co_filename, ())
        return any(_holds(node, line) for line in lines)

    def _lower_definition(self, code: types.CodeType, found: Definition) -> FunctionNode:
        name = code.co_filename
        self.open_calls |= open_calls(found.node, [site for site in self._calls if site.filename == name])
        lines, loops, splits = (self._outside_generators(marked, name, found.node) for marked in self._marked)
        return lower(found.node, lines, loops, splits, found.libraries)

    @property
    def _marked(self) -> tuple[dict[str, set[int]], ...]:
        return self._lines, self._loops, self._splits

    def _outside_generators(self, marked: dict[str, set[int]], name: str, node: FunctionNode) -> set[int]:
        """The marked lines of a file but for the decisions about what a generator inside a function yields."""
        lines = marked.get(name, set())
        inside = lines & {line for one in walk_all(node) for line in _lines_about_yields(one)}
        self.obstacles.update({place_of(name, line): _GENERATOR for line in inside})
        return lines - inside

    @contextmanager
    def apply(self) -> Iterator[None]:
        """While active, the functions run their rewritten code."""
        exchanged: list[tuple[types.FunctionType, types.CodeType]] = []
        try:
            for code, new in self._codes.items():
                for function in self._functions[code]:
                    exchanged.append((function, function.__code__))
                    function.__code__ = new
            yield
        finally:
            for function, code in reversed(exchanged):
                function.__code__ = code

    def diff(self) -> str:
        """A unified diff of each function."""
        parts: list[str] = []
        for code in self._codes:
            old, new = lines_before_and_after(code, partial(self._lower_definition, code))
            name = f"{place_of(code.co_filename, code.co_firstlineno)} {code.co_name}"
            parts += difflib.unified_diff(old, new, f"{name} (original)", f"{name} (rewritten)", lineterm="", n=2)
        return "\n".join(parts)


_GENERATOR = "it is a generator, which runs piece by piece; append the items to a list, and return that"


def _lines_about_yields(node: ast.AST) -> range:
    """The lines of a statement's condition, or of what it loops over, where values are yielded inside; else none."""
    if not isinstance(node, (ast.If, ast.While, ast.For)):
        return range(0)
    if not any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in walk_scope(node)):
        return range(0)
    head = node.iter if isinstance(node, ast.For) else node.test
    return range(node.lineno, (head.end_lineno or head.lineno) + 1)


def _holds(node: FunctionNode, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
