"""What rewritten functions call. Outside an export every function here does what plain Python would have done.

During an export, a decision whose condition may vary is taken in the file: both branches run, and what they made is
joined by a mask.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from torch_onnx_compat.control_flow.callees import callee
from torch_onnx_compat.control_flow.decide import decide, joined_or_refused
from torch_onnx_compat.control_flow.iterables import Appended, Counted, counted
from torch_onnx_compat.control_flow.join import UNDEFINED
from torch_onnx_compat.control_flow.loop_form import ITEM
from torch_onnx_compat.control_flow.looping import looped
from torch_onnx_compat.control_flow.piece import Piece
from torch_onnx_compat.control_flow.rounds import Round
from torch_onnx_compat.control_flow.session import SYMBOLS, Session, as_tensor, current, here, refused

__all__ = [
    "UNDEFINED",
    "Loop",
    "and_",
    "augmented",
    "branch",
    "callee",
    "choose",
    "collect",
    "compare",
    "for_",
    "forked",
    "holds",
    "not_",
    "or_",
    "resumed",
    "steps",
    "while_",
]

MAX_STEPS = 64
"""A ``while`` that has not ended by itself after so many rounds has no bound that can be seen."""


def branch(
    test: Any, then: Callable[..., Any], otherwise: Callable[..., Any], scope: dict[str, Any], why: str = ""
) -> Any:
    """An ``if`` statement: what one of the two functions returns, or both joined.

    Args:
        test: The condition.
        then: The statements under the ``if``.
        otherwise: Those under the ``else``.
        scope: Values of the functions' parameters, by name.
        why: What stands against running both.
    """
    session = current()
    if session is None:
        return resumed(then if test else otherwise, scope)
    return decide(session, test, Piece(then, scope), Piece(otherwise, scope), why)


def choose(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """``then() if test else otherwise()``."""
    session = current()
    if session is None:
        return then() if test else otherwise()
    return decide(session, test, Piece(then), Piece(otherwise))


def resumed(function: Callable[..., Any], scope: dict[str, Any]) -> Any:
    """Calls a function with the values that its parameters have in a scope."""
    return Piece(function, scope)()


def and_(first: Any, *rest: Callable[[], Any]) -> Any:
    """``first and …``; of tensors, in a decision, their conjunction as a boolean."""
    return _connected(first, rest, False)


def or_(first: Any, *rest: Callable[[], Any]) -> Any:
    """``first or …``; of tensors, in a decision, their disjunction as a boolean."""
    return _connected(first, rest, True)


def _connected(value: Any, rest: tuple[Callable[[], Any], ...], decisive: bool) -> Any:
    session = current()
    for operand in rest:
        known = bool(value) if session is None else session.condition(value)
        if isinstance(known, bool):
            if known is decisive:
                return value
            value = operand()
            continue
        assert session is not None
        other = (
            decide(session, known, Piece(_yes), Piece(operand))
            if decisive
            else decide(session, known, Piece(operand), Piece(_no))
        )
        value = session.condition(other)
    return value


def _yes() -> bool:
    return True


def _no() -> bool:
    return False


def not_(value: Any) -> Any:
    """``not value``."""
    session = current()
    known = bool(value) if session is None else session.condition(value)
    return (not known) if isinstance(known, bool) else ~known


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def compare(left: Any, *rest: Any) -> Any:
    """``left < right``, or a chain; symbolic sizes are compared as tensors, since they claim never to be 0 or 1."""
    results = []
    for symbol, right in zip(rest[::2], rest[1::2], strict=True):
        if current() is not None and (isinstance(left, SYMBOLS) or isinstance(right, SYMBOLS)):
            pair = (as_tensor(left), as_tensor(right)) if _are_numbers(left, right) else (left, right)
            results.append(_COMPARISONS[symbol](*pair))
        else:
            results.append(_COMPARISONS[symbol](left, right))
        left = right
    return results[0] if len(results) == 1 else and_(results[0], *map(_given, results[1:]))


def _given(value: Any) -> Callable[[], Any]:
    return lambda: value


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(v, (Tensor, int, float, *SYMBOLS)) for v in values)


def holds(test: Any) -> Any:
    """The condition of an assert; one that may vary cannot be checked in the file and passes."""
    session = current()
    if session is None:
        return test
    known = session.condition(test)
    if isinstance(known, bool):
        return known
    session.drop_check()
    return True


_AUGMENTED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "Add": (operator.iadd, operator.add),
    "Sub": (operator.isub, operator.sub),
    "Mult": (operator.imul, operator.mul),
    "Div": (operator.itruediv, operator.truediv),
    "FloorDiv": (operator.ifloordiv, operator.floordiv),
    "Mod": (operator.imod, operator.mod),
    "Pow": (operator.ipow, operator.pow),
    "MatMult": (operator.imatmul, operator.matmul),
    "BitAnd": (operator.iand, operator.and_),
    "BitOr": (operator.ior, operator.or_),
    "BitXor": (operator.ixor, operator.xor),
    "LShift": (operator.ilshift, operator.lshift),
    "RShift": (operator.irshift, operator.rshift),
}


def augmented(name: str, value: Any, other: Any) -> Any:
    """``value += other`` and its like; a tensor that stands for a Python number is not written in place."""
    in_place, fresh = _AUGMENTED[name]
    number = current() is not None and isinstance(value, Tensor) and value.dim() == 0
    return (fresh if number else in_place)(value, other)


def forked(value: Any) -> Any:
    """A copy of a container that a branch is about to change, during an export."""
    return value.copy() if current() is not None and type(value) in (list, dict, set, Appended) else value


def steps() -> Iterator[int]:
    """The rounds of a ``while``.

    Raises:
        Refused: It does not end by itself.
    """
    number = 0
    while current() is None or number < MAX_STEPS:
        yield number
        number += 1
    session = current()
    assert session is not None
    session.unbounded.add(here())
    raise refused(
        f"a while loop depends on a tensor and has no bound: it went on for {MAX_STEPS} rounds; state one, e.g. "
        f"`while {'<condition>'} and n < 50`."
    )


def _nothing() -> Any:
    return UNDEFINED


class Loop:
    """A loop that decisions leave; every leave is recorded, and the first whose condition holds wins in the end."""

    def __init__(self) -> None:
        self._leaves: list[tuple[Any, tuple[Any, ...]]] = []

    def leave(self, test: Any, function: Callable[..., Any], scope: dict[str, Any]) -> bool:
        """Records a leave; true if the loop ends here for every input."""
        session = current()
        known = bool(test) if session is None else session.condition(test)
        if known is False:
            return False
        if known is True:
            self._leaves.append((True, resumed(function, scope)))
            return True
        assert session is not None
        self._leaves.append((known, decide(session, known, Piece(function, scope), Piece(_nothing))))
        return False

    def joined(self, scope: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
        """What the loop left behind: whether it returned, what, and the values of its names."""
        result: Any = (False, UNDEFINED, *(scope.get(name, UNDEFINED) for name in names))
        for test, state in reversed(self._leaves):
            result = state if test is True else joined_or_refused(test, state, result)
        return tuple(result)


def for_(
    items: Any,
    body: Callable[..., Any],
    scope: dict[str, Any],
    names: tuple[str, ...],
    appended: tuple[str, ...] = (),
    leaves: bool = False,
    why: str = "",
) -> tuple[Any, ...]:
    """A ``for``: in Python, or in the file if its length may vary.

    Args:
        items: What it runs over.
        body: Takes the item and the names that it reads; returns whether to go on, and all names.
        scope: Values of the body's parameters, by name.
        names: What it carries from round to round.
        appended: Those of them that the body appends to.
        leaves: Whether the body may say not to go on.
        why: What stands against a loop in the file.
    """
    session = current()
    source = counted(session, items) if session is not None else None
    if session is not None and source is not None:
        return _in_file(session, Round(session, body, names, source.at, None, scope), source, appended, leaves, why)
    state = dict(scope)
    for one in items:
        go, *news = resumed(body, {**state, ITEM: one})
        state.update(zip(names, news, strict=True))
        known = bool(go) if session is None else session.condition(go)
        if not isinstance(known, bool):
            raise refused("a decision that depends on the inputs leaves a loop that is rewritten for its length.")
        if not known:
            break
    return tuple(state.get(name, UNDEFINED) for name in names)


def while_(
    test: Callable[..., Any],
    body: Callable[..., Any],
    scope: dict[str, Any],
    names: tuple[str, ...],
    appended: tuple[str, ...] = (),
    why: str = "",
) -> tuple[Any, ...]:
    """A ``while`` that does not end by itself when it is unrolled; parameters as of `for_`."""
    session = current()
    state = dict(scope)
    while True:
        known = bool(resumed(test, state)) if session is None else session.condition(resumed(test, state))
        if not isinstance(known, bool):
            assert session is not None
            return _in_file(session, Round(session, body, names, None, test, state), None, appended, True, why)
        if not known:
            return tuple(state.get(name, UNDEFINED) for name in names)
        go, *news = resumed(body, state)
        going = bool(go) if session is None else session.condition(go)
        if not isinstance(going, bool):
            assert session is not None
            return _in_file(session, Round(session, body, names, None, test, state), None, appended, True, why)
        state.update(zip(names, news, strict=True))
        if not going:
            return tuple(state.get(name, UNDEFINED) for name in names)


def _in_file(
    session: Session, one: Round, source: Counted | None, appended: tuple[str, ...], leaves: bool, why: str
) -> tuple[Any, ...]:
    if why:
        raise refused(f"how often this loop runs depends on the inputs, and {why}; move that out of the loop.")
    values = {name: one.scope.get(name, UNDEFINED) for name in one.names}
    values.update((n, Appended()) for n in appended if isinstance(values.get(n), (list, Appended)))
    after = looped(session, one, source, values, leaves)
    return tuple(after[name] for name in one.names)


def collect(items: Any, function: Callable[..., Any], star: bool = False) -> Any:
    """``[function(item) for item in items]``; with `star`, of an item's parts."""
    session = current()
    source = counted(session, items) if session is not None else None
    if source is None:
        return [function(*item) if star else function(item) for item in items]

    def body(item_of_loop: Any, made: Any) -> tuple[bool, Any]:
        made.append(function(*item_of_loop) if star else function(item_of_loop))
        return True, made

    return for_(source, body, {"made": []}, ("made",), ("made",))[0]
