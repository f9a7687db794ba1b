"""Functions that rewritten code calls. Outside an export each does what the original Python code does.

During an export, the file takes a decision whose condition may vary: both branches run, and a mask joins their
values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, KeysView, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.control_flow.run.answers import Margin, answer, nearest, negate, note_decision, present_log
from torch_onnx_compat.control_flow.run.belongings import is_followed
from torch_onnx_compat.control_flow.run.branch import Branch, call_in_scope
from torch_onnx_compat.control_flow.run.callees import callee
from torch_onnx_compat.control_flow.run.callees import is_same as same_object
from torch_onnx_compat.control_flow.run.decide import Statement, decide, truth_now
from torch_onnx_compat.control_flow.run.either import Either
from torch_onnx_compat.control_flow.run.exact import compare_exactly, promoted
from torch_onnx_compat.control_flow.run.iterables import CountedItems, as_counted_items, listed, repeat_items
from torch_onnx_compat.control_flow.run.join import UNDEFINED
from torch_onnx_compat.control_flow.run.lists import AppendLog, Rows
from torch_onnx_compat.control_flow.run.number_kinds import SYMBOLS
from torch_onnx_compat.control_flow.run.pieces import Pieces
from torch_onnx_compat.control_flow.run.refusal import refusal
from torch_onnx_compat.control_flow.run.runtime_loops import Loop, collect, for_, generate, steps, while_
from torch_onnx_compat.control_flow.run.session import as_tensor, current
from torch_onnx_compat.control_flow.run.slots import Slots
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.tracing import constant, is_tracing

__all__ = [
    "UNDEFINED",
    "Loop",
    "and_",
    "augment",
    "augment_item",
    "branch",
    "call_in_scope",
    "callee",
    "choose",
    "collect",
    "compare",
    "copy_container",
    "for_",
    "generate",
    "holds",
    "is_same",
    "listed",
    "not_",
    "or_",
    "steps",
    "subject",
    "while_",
]


def branch(
    test: Any,
    then: Callable[..., Any],
    otherwise: Callable[..., Any],
    scope: dict[str, Any],
    why: str = "",
    owners: dict[str, Callable[[], Any]] | None = None,
    *,
    grows: bool = False,
    returns: bool = False,
) -> Any:
    """An ``if`` statement: returns the value of one of two functions, or both values joined.

    Args:
        test: The condition.
        then: The statements under the ``if``.
        otherwise: Those under the ``else``.
        scope: Values of the functions' parameters, by name.
        why: The side effect that forbids running both; empty if there is none.
        owners: What the branches write attributes of, by the side effect's text.
        grows: Whether lists of different lengths become one whose length values decide.
        returns: Whether the function returns the value.
    """
    session = current()
    if session is None:
        return call_in_scope(then if answer(test) else otherwise, scope)
    if isinstance(test, Either):  # the decision is another function's, and is noted there
        test = test.condition
    else:
        note_decision(session, test)
    why = why or next((what for what, owner in (owners or {}).items() if not is_followed(owner)), "")
    return decide(session, test, Branch(then, scope), Branch(otherwise, scope), Statement(why, grows, returns))


def which(value: Any) -> Any:
    """The condition of the ``if`` after a call: whether what the call returned is its first value."""
    session = current()
    if session is not None:
        session.note_arrival(value)
    return value if isinstance(value, Either) else True


def first(value: Any) -> Any:
    """The first of two values of different kinds, or the one that there is."""
    return value.take_first() if isinstance(value, Either) else value


def second(value: Any) -> Any:
    """The second of two values of different kinds, or the one that there is."""
    return value.take_second() if isinstance(value, Either) else value


def choose(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """``then() if test else otherwise()``."""
    session = current()
    if session is None:
        return then() if answer(test) else otherwise()
    note_decision(session, test)
    return decide(session, test, Branch(then), Branch(otherwise))


def choose_any(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """``then() if test else otherwise()`` where it does not matter which: the example's, if anybody knows it."""
    session = current()
    if session is None:
        return then() if test else otherwise()
    return then() if truth_now(session.condition(test)) else otherwise()


def and_(first: Any, *rest: Callable[[], Any]) -> Any:
    """``first and …``; of tensors that may vary, their conjunction as a boolean tensor."""
    return _connect(first, rest, False)


def or_(first: Any, *rest: Callable[[], Any]) -> Any:
    """``first or …``; of tensors that may vary, their disjunction as a boolean tensor."""
    return _connect(first, rest, True)


def _connect(value: Any, rest: tuple[Callable[[], Any], ...], decisive: bool) -> Any:
    session = current()
    if session is None:
        return _connect_plain(value, rest, decisive)
    key = session.key()
    for part, operand in enumerate(rest, 1):
        note_decision(session, value, part)
        with session.within(key, -part):
            known = session.condition(value)
        if isinstance(known, bool):
            if known is decisive:
                return value
            with session.within(key, part):
                value = operand()
            continue
        number = session.exact(value)
        is_truth = number is None or number.dtype == torch.bool
        left = Branch(_thunk_of(decisive if is_truth else value))
        # Its decisions are those of this part, whether it runs as a branch or, above, as it is.
        right = Branch(operand, nesting=partial(session.within, key, part))
        with session.within(key, -part):
            other = decide(session, known, *((left, right) if decisive else (right, left)))
            value = session.condition(other) if is_truth else other
    note_decision(session, value, len(rest) + 1)
    return value


def _connect_plain(value: Any, rest: tuple[Callable[[], Any], ...], decisive: bool) -> Any:
    log = present_log()
    margins: list[Margin | None] = []
    for part, operand in enumerate((*rest, None), 1):
        if log is None and operand is None:
            return value
        margins.append(log.margin_of(value) if log is not None else None)
        if answer(value, part) is decisive or operand is None:
            break
        value = operand()
    if log is not None:
        log.conclude(value, nearest(margins, decisive))
    return value


def not_(value: Any) -> Any:
    """``not value``."""
    session = current()
    log = present_log()
    if session is None and log is not None:
        margin, truth = negate(log.margin_of(value)), not value
        log.conclude(truth, margin)
        return truth
    known = bool(value) if session is None else session.condition(value)
    if isinstance(known, bool) or session is None:
        return not known
    return session.note_number(~known)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "in": lambda item, container: item in container,
    "not in": lambda item, container: item not in container,
}


def compare(left: Any, *rest: Any) -> Any:
    """``left < right``, or a chain. Compares symbolic sizes as tensors: torch.export assumes that none is 0 or 1."""
    results = []
    for symbol, right in zip(rest[::2], rest[1::2], strict=True):
        results.append(_compare_two(left, symbol, right))
        left = right
    return results[0] if len(results) == 1 else and_(results[0], *map(_thunk_of, results[1:]))


def _compare_two(left: Any, symbol: str, right: Any) -> Any:
    result, session = _compared(left, symbol, right), current()
    if session is None or not isinstance(result, Tensor) or result.dim():
        return result
    is_bool = symbol in ("in", "not in") or None not in map(session.kind_of_number, (left, right))
    return session.note_number(result) if is_bool else result


def _compared(left: Any, symbol: str, right: Any) -> Any:
    if current() is not None:
        if symbol in ("in", "not in"):
            found = _contains(right, left)
            return found if symbol == "in" else not_(found)
        if symbol in ("==", "!=") and any(isinstance(side, _OF_UNKNOWN_LENGTH) for side in (left, right)):
            equal = _is_list(left, right)
            return equal if symbol == "==" else not_(equal)
        if symbol in ("==", "!=") and _are_alike(left, right) and (_holds_numbers(left) or _holds_numbers(right)):
            equal = _are_equal(left, right)
            return equal if symbol == "==" else not_(equal)
        compared = _compare_numbers(left, symbol, right)
        if compared is not None:
            return compared
        if (isinstance(left, SYMBOLS) or isinstance(right, SYMBOLS)) and _are_numbers(left, right):
            return _COMPARISONS[symbol](as_tensor(left), as_tensor(right))
    result = _COMPARISONS[symbol](left, right)
    log = present_log()
    if log is not None:
        log.compare(left, symbol, right, result)
    return result


def is_same(left: Any, right: Any) -> Any:
    """``left is right``, where neither is written as None."""
    return same_object(current(), left, right)


def is_sequence(value: Any, length: int) -> bool:
    """Whether a value is what the pattern of a sequence of some items matches.

    Raises:
        RefusedDecision: It is a list whose length depends on the inputs.
    """
    if isinstance(value, _OF_UNKNOWN_LENGTH):
        raise refusal("match of a list whose length depends on the inputs; compare it with ==.")
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)) and len(value) == length


def subject(value: Any) -> Any:
    """The subject of ``match value``.

    Raises:
        RefusedDecision: It holds a tensor that stands for a number, which no pattern of a number matches.
    """
    session = current()
    for item in tree.tensors_in(value) if session is not None and session.numbers else ():
        if session is not None and session.number_type(item) is not None:
            raise refusal("match of a number that values decide; compare it with if instead.")
    return value


_OF_UNKNOWN_LENGTH = (CountedItems, Rows)
"""What stands for a list, and has no length that C could read."""


def _is_list(left: Any, right: Any) -> Any:
    """``left == right`` where one of them is a list whose length depends on the inputs."""
    one, other = (left, right) if isinstance(left, _OF_UNKNOWN_LENGTH) else (right, left)
    session = current()
    is_counted = isinstance(one, Rows) and session is not None and isinstance(other, list) and len(other)
    return (as_counted_items(session, one) if is_counted else one) == other  # type: ignore[arg-type]


def _are_alike(left: Any, right: Any) -> bool:
    """Whether Python compares them item by item; a tuple never equals a list."""
    return any(isinstance(left, kind) and isinstance(right, kind) for kind in (tuple, list))


def _holds_numbers(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and any(_is_number(item) for item in value)


def _is_number(value: Any) -> bool:
    """Whether a value stands for a number: a size, or what values decide."""
    if isinstance(value, SYMBOLS):
        return True
    if not isinstance(value, Tensor) or value.dim():
        return False
    session = current()
    return is_tracing() or (session is not None and session.number_type(value) is not None)


def _compare_numbers(left: Any, symbol: str, right: Any) -> Any:
    """A comparison of numbers as Python makes it; None where no side is a number that values or sizes decide."""
    one, other = _exact(left), _exact(right)
    found: Any = None
    if one is not None and type(right) in (int, float):
        found = compare_exactly(one, symbol, right)
    elif other is not None and type(left) in (int, float):
        found = compare_exactly(other, symbol, left, turned=True)
    elif one is not None and other is not None and torch.float64 in (one.dtype, other.dtype):
        found = _COMPARISONS[symbol](*(side.reshape(1).to(torch.float64) for side in (one, other)))
    return found.reshape(()) if isinstance(found, Tensor) else found


def _exact(side: Any) -> Tensor | None:
    """A tensor of one element, which is the number; None for what is no number that values or sizes decide."""
    if isinstance(side, torch.SymInt):
        return as_tensor(side)
    session = current()
    return None if session is None else session.exact(side)


def _are_equal(left: Any, right: Any) -> Any:
    """``left == right`` of sequences, which C compares with the numbers of the example."""
    if len(left) != len(right) or not len(left):
        return len(left) == len(right)
    first, *rest = [_equality(a, b) for a, b in zip(left, right, strict=True)]
    return and_(first(), *rest)


def _equality(left: Any, right: Any) -> Callable[[], Any]:
    return lambda: _compare_two(left, "==", right)


MANY = 8
"""Whole numbers up to which a number is compared with each of them; with more, in one operation."""


def _contains(container: Any, value: Any) -> Any:
    """``value in container``; a size is compared with every item, as it is no key that could be looked up."""
    if isinstance(container, CountedItems):
        return container.contains(value)
    is_list = isinstance(value, _OF_UNKNOWN_LENGTH) and isinstance(container, (tuple, list))
    if not isinstance(container, (tuple, list, set, frozenset, dict, KeysView, range)) or not (
        is_list or _is_number(value) or _holds_numbers(value) or _holds_numbers(container)
    ):
        return value in container
    if isinstance(container, range) and len(container) and _is_number(value):
        return _lies_in(container, value)
    if is_tracing() and len(container) > MANY and _is_number(value) and all(type(i) in (int, bool) for i in container):
        number = promoted(as_tensor(value))
        if not number.is_floating_point():  # large whole numbers would be rounded to it
            return (number == constant(sorted(container), number, torch.int64)).any()
    items = [_equality(value, item) for item in container]
    return or_(items[0](), *items[1:]) if items else False


def _lies_in(numbers: range, value: Any) -> Any:
    """``value in range(…)``, which is not empty; a fraction lies in none."""
    number = promoted(as_tensor(value))
    least, most = sorted((numbers[0], numbers[-1]))
    found = (number >= least) & (number <= most)
    if numbers.step in (1, -1) and not number.is_floating_point():
        return found
    return found & ((number - numbers.start) % numbers.step == 0)


def _thunk_of(value: Any) -> Callable[[], Any]:
    return lambda: value


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(v, (Tensor, int, float, *SYMBOLS)) for v in values)


def holds(test: Any) -> Any:
    """The condition of an assert; True if it may vary, since the file cannot check it."""
    session = current()
    if session is None:
        return test
    known = session.condition(test)
    if isinstance(known, bool):
        return known
    session.drop_check(AssertionError())
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


def augment(name: str, value: Any, other: Any) -> Any:
    """``value += other`` and the other augmented assignments; not in place on a tensor that stands for a number."""
    in_place, fresh = _AUGMENTED[name]
    number = current() is not None and isinstance(value, Tensor) and value.dim() == 0
    return (fresh if number else in_place)(value, other)


def augment_item(name: str, item: Any, other: Any, owner: Any) -> Any:
    """What ``x[k] += other`` puts at ``x[k]``, where `item` is.

    It is not in place where ``x`` is a tensor, as the item is a view of it. Those of a list may have other names.
    """
    if isinstance(owner, Tensor) and current() is not None:
        return _AUGMENTED[name][1](item, other)
    return augment(name, item, other)


def repeat(items: Any, count: Any) -> Any:
    """``[None] * count``, and any other product with a list or a tuple that is written there."""
    session = current()
    if session is None or type(items) not in (list, tuple) or not session.is_dynamic(count):
        return items * count
    if items == [None]:
        return Slots(count)
    return repeat_items(items, count)


slice_ = slice
"""``1:2`` where an index is an argument of a function."""


def owner_of(value: Any, place: Any) -> Any:
    """What ``value[place][key] = item`` writes to: of a tensor the tensor itself, as its row is a view of it."""
    return value if _has_row(value, place) else value[place]


def key_of(value: Any, place: Any, key: Any) -> Any:
    """The index at which it writes there."""
    return (place, *(key if isinstance(key, tuple) else (key,))) if _has_row(value, place) else key


def _has_row(value: Any, place: Any) -> bool:
    is_number = isinstance(place, (int, *SYMBOLS)) or (isinstance(place, Tensor) and not place.dim())
    return current() is not None and isinstance(value, Tensor) and is_number and not isinstance(place, bool)


_COPIED = (list, dict, set, AppendLog, Rows, Pieces, Slots)


def copy_container(value: Any) -> Any:
    """A copy of a container that a branch is about to change, during an export."""
    session = current()
    if session is None or type(value) not in _COPIED:
        return value
    copy = value.copy()
    if not session.surveying:
        session.choices.copied(copy, value)
    return copy
