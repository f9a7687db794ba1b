"""Whether a statement only checks: it decides if an error is raised, and nobody catches that error."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch_onnx_compat.places import is_user_file


@dataclass(frozen=True)
class Place:
    """Where a frame is in its source."""

    filename: str
    line: int
    column: int | None = None
    """Of the expression that runs; None where Python does not tell, before 3.11."""
    end: tuple[int, int] | None = None
    """Line and column of that expression's end."""

    @classmethod
    def of(cls, frame: types.FrameType) -> Place:
        """Where a frame is now."""
        line, column, end = frame.f_lineno, None, None
        positions = getattr(frame.f_code, "co_positions", None)
        if positions is not None:
            found = next(itertools.islice(positions(), frame.f_lasti // 2, None), None)
            if found is not None and found[0] is not None:
                line, column, end = found[0], found[2], (found[1], found[3])
        return cls(frame.f_code.co_filename, line, column, end)


@functools.lru_cache(maxsize=512)
def is_guard(place: Place) -> bool:
    """Whether a place lies in an assert, or in the test of an if that does nothing but raise or warn."""
    for statement in innermost_statements(place):
        if isinstance(statement, ast.Assert):
            return True
        if isinstance(statement, ast.If):
            return _is_in_test(statement, place) and only_complains(statement)
        return is_assertion(statement)
    return False


@functools.lru_cache(maxsize=512)
def is_key_of_cache(place: Place) -> bool:
    """Whether a place computes a key under which the same function stores something: ``key = f"{h}x{w}"``."""
    statement = next(innermost_statements(place), None)
    keys = {target.id for target in getattr(statement, "targets", ()) if isinstance(target, ast.Name)}
    around = (n for n in ast.walk(tree_around(place)) if isinstance(n, ast.FunctionDef))
    inside = [node for function in around if contains(function, place) for node in ast.walk(function)]
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.slice, ast.Name)
        and node.slice.id in keys
        for node in inside
    )


@functools.lru_cache(maxsize=512)
def reads_one_size(place: Place) -> bool:
    """Whether every shape that the statement at a place reads is read for one size: ``x.shape[0]``, ``x.size(0)``."""
    statement = next(innermost_statements(place), None)
    nodes = list(ast.walk(statement)) if statement is not None else []
    single = {
        id(node.value) for node in nodes if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)
    }
    single |= {id(node.func) for node in nodes if isinstance(node, ast.Call) and node.args}
    reads = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in ("shape", "size")]
    return bool(reads) and all(id(node) in single for node in reads)


@functools.lru_cache(maxsize=512)
def called_names(place: Place) -> tuple[str, ...]:
    """Names of the functions that the expression at a place calls, such as ``self.table``; dots and names only."""
    calls = [
        node for statement in innermost_statements(place) for node in ast.walk(statement) if isinstance(node, ast.Call)
    ]
    here = [n for n in calls if n.lineno == place.line and place.column in (None, n.col_offset)]
    return tuple(dict.fromkeys(ast.unparse(n.func) for n in here if isinstance(n.func, (ast.Name, ast.Attribute))))


def is_caught(place: Place) -> bool:
    """Whether an error that is raised at a place may be caught by the statements around it."""
    return bool(kinds_caught(place))


def kinds_caught(place: Place) -> tuple[ast.expr | None, ...]:
    """The classes of the errors that the statements around a place catch and do not raise again; None for any error."""
    around = _caught_statements(tree_around(place))
    return tuple(kind for statement, kinds in around if contains(statement, place) for kind in kinds)


@functools.lru_cache(maxsize=512)
def _caught_statements(tree: ast.AST) -> tuple[tuple[ast.stmt, tuple[ast.expr | None, ...]], ...]:
    """The statements of a tree whose errors the statement around them may catch, with the classes of these."""
    blocks = (node for node in ast.walk(tree) if isinstance(node, (ast.Try, ast.With)))
    caught = ((block.body, _kinds_of_block(block)) for block in blocks)
    return tuple((statement, kinds) for body, kinds in caught if kinds for statement in body)


def _kinds_of_block(block: ast.Try | ast.With) -> tuple[ast.expr | None, ...]:
    if isinstance(block, ast.Try):
        return tuple(handler.type for handler in block.handlers if not isinstance(handler.body[-1], ast.Raise))
    calls = [item.context_expr for item in block.items if isinstance(item.context_expr, ast.Call)]
    return tuple(kind for c in calls if ast.unparse(c.func).rpartition(".")[2] == "suppress" for kind in c.args)


def is_caught_on_stack(frames: Iterable[types.FrameType]) -> bool:
    """Whether the model's own code may catch an error that is raised now in one of these frames.

    Asked at most calls of a trace, so the byte code and the lines decide where they can: it takes longer to find where
    in its line a frame is.
    """
    return any(
        _has_handlers(frame.f_code)
        and is_user_file(frame.f_code.co_filename)
        and is_caught(Place(frame.f_code.co_filename, frame.f_lineno))
        and is_caught(Place.of(frame))
        for frame in frames
    )


def _has_handlers(code: types.CodeType) -> bool:
    """Whether a function may catch an error anywhere; before 3.11, Python has no table of it."""
    return bool(getattr(code, "co_exceptiontable", True))


def innermost_statements(place: Place) -> Iterator[ast.stmt]:
    """The statements around a place, the innermost first; none where a line holds two and Python cannot tell."""
    around = [
        node
        for node in ast.walk(tree_around(place))
        if isinstance(node, ast.stmt) and contains(node, place) and not isinstance(node, _SCOPES)
    ]
    if place.column is None and sum(node.lineno == place.line for node in around) > 1:
        return
    yield from sorted(around, key=lambda node: (node.lineno, node.col_offset), reverse=True)


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def contains(node: ast.stmt | ast.expr, place: Place) -> bool:
    """Whether a node's text contains a place."""
    start, end = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    if place.column is None:
        return start[0] <= place.line <= end[0]
    return start <= (place.line, place.column) < end


def _is_in_test(statement: ast.If, place: Place) -> bool:
    """Whether a place lies in an if's test; Python 3.11 has the bool() of the whole test where the statement begins."""
    return contains(statement.test, place) or (place.line, place.column) == (statement.lineno, statement.col_offset)


def only_complains(statement: ast.If) -> bool:
    """Whether every branch, at any depth, raises or warns."""
    return all(
        isinstance(s, ast.Raise) or is_warning(s) or (isinstance(s, ast.If) and only_complains(s))
        for s in (*statement.body, *statement.orelse)
    )


def is_warning(statement: ast.stmt) -> bool:
    """Whether a statement only tells somebody something; a model's own method may do more."""
    owner, _, name = _statement_call(statement).rpartition(".")
    if name in ("debug", "info", "error"):
        is_logger = owner.rpartition(".")[2].lower().strip("_") in ("log", "logger", "logging")
        return is_logger or owner.startswith("logging.getLogger(")
    is_print = name == "print" and not any(_is_read_again(node) for node in ast.walk(statement))
    return (is_print or name in ("warn", "warning", "warning_once")) and owner != "self"


def _is_read_again(node: ast.AST) -> bool:
    """Whether it is the file that something is printed to, and not one that only people read."""
    if not isinstance(node, ast.keyword) or node.arg != "file":
        return False
    return ast.unparse(node.value) not in ("sys.stderr", "sys.stdout")


def is_assertion(statement: ast.stmt) -> bool:
    """Whether a statement is a call of one of torch's assertions."""
    owner, _, name = _statement_call(statement).rpartition(".")
    return (owner, name) == ("", "_assert") or (owner == "torch" and name.startswith(ASSERTIONS))


ASSERTIONS = ("_assert", "_check")
"""What the names of torch's assertions begin with."""


def _statement_call(statement: ast.stmt) -> str:
    """The function that a statement calls without a use for its result; empty for any other statement."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return ast.unparse(statement.value.func)
    return ""


def tree_around(place: Place) -> ast.AST:
    """The statement of a file, at the outermost level, that a place lies in; files take a tenth of a second to parse.

    Its first line is the one above the place where a line begins without an indent. Where that is one of a text over
    several lines, the statement's text is none that Python parses, since its quotes do not match, and the whole file is
    parsed.
    """
    lines = linecache.getlines(place.filename)
    here = min(place.line, len(lines))
    starts = (number for number in range(here - 1, 0, -1) if not lines[number].startswith(_CONTINUED))
    ends = (number for number in range(here, len(lines)) if not lines[number].startswith(_CONTINUED))
    start, end = next(starts, 0), next(ends, len(lines))
    tree = _parse_lines(place.filename, start, end) or _parse_lines(place.filename, 0, len(lines))
    return tree or ast.Module(body=[], type_ignores=[])


_CONTINUED = (*" \t\r\n\f#)]}", "else", "elif", "except", "finally")
"""What a line begins with that goes on with the statement above it."""


@functools.lru_cache(maxsize=512)
def _parse_lines(filename: str, start: int, end: int) -> ast.AST | None:
    """Some lines of a file as a tree, whose line numbers are the file's; None where they are no statements."""
    lines = linecache.getlines(filename)
    try:
        return ast.parse("\n" * start + "".join(lines[start:end]))
    except SyntaxError:
        return None
