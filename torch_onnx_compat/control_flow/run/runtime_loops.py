"""The run-time functions of loops: a loop is unrolled in Python if its length is fixed, else made by looping.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from torch_onnx_compat.control_flow.lower.loop_form import ITEM
from torch_onnx_compat.control_flow.run.aliases import copy_of, present_aliases, stand_for
from torch_onnx_compat.control_flow.run.answers import answer, note_decision, note_loop, note_round
from torch_onnx_compat.control_flow.run.belongings import State, bind_attributes, sort_attributes, take_state
from torch_onnx_compat.control_flow.run.branch import Branch, call_in_scope
from torch_onnx_compat.control_flow.run.decide import Statement, decide, join_or_refuse, truth_now
from torch_onnx_compat.control_flow.run.exit_writes import ExitWrites
from torch_onnx_compat.control_flow.run.iterables import CountedItems, as_counted_items, as_fixed_items
from torch_onnx_compat.control_flow.run.join import UNDEFINED
from torch_onnx_compat.control_flow.run.lists import AppendLog, Rows
from torch_onnx_compat.control_flow.run.looping import make_loop
from torch_onnx_compat.control_flow.run.refusal import here, refusal
from torch_onnx_compat.control_flow.run.rounds import Round
from torch_onnx_compat.control_flow.run.session import OpenLoop, Session, current
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.places import short
from torch_onnx_compat.tracing import is_tracing

MAX_STEPS = 64
"""Rounds up to which a ``while`` is unrolled; beyond it the loop is taken to have no bound."""


def steps() -> Iterator[int]:
    """The rounds of a ``while``.

    Raises:
        RefusedDecision: It has not ended after MAX_STEPS rounds.
    """
    number = 0
    while current() is None or number < MAX_STEPS:
        yield number
        number += 1
    session = current()
    assert session is not None
    session.unbounded.add(here())
    raise refusal(
        f"a while loop depends on a tensor and has no bound: it went on for {MAX_STEPS} rounds; state one, e.g. "
        f"`while {'<condition>'} and n < 50`."
    )


def _nothing() -> Any:
    return UNDEFINED


class Loop:
    """Records the exits of a loop that decisions may leave; the first one whose condition holds gives its values.

    So it does for the attributes of modules, which the rounds after an exit write all the same.
    """

    def __init__(self) -> None:
        self._leaves: list[tuple[Any, tuple[Any, ...], State]] = []
        self._copies: dict[int, tuple[Tensor, int, Tensor]] = {}
        """By identity: a tensor, its version, and the copy of it that exits leave the loop with."""
        self._kept: list[tuple[Tensor, Tensor]] = []
        """All these tensors and copies."""
        self._writes = ExitWrites()
        self._open = OpenLoop(here())
        session = current()
        if session is not None:
            session.open_loops.append(self._open)

    def leave(self, test: Any, function: Callable[..., Any], scope: dict[str, Any]) -> bool:
        """Records an exit; returns True if the loop ends here for every input."""
        session = current()
        if session is None:
            known: bool | Tensor = answer(test)
            note_round(self, goes_on=not known)
        else:
            note_decision(session, test)
            note_loop(session, test)
            known = session.condition(test)
            if not isinstance(known, bool) and session.surveying:
                self._open.is_over |= truth_now(known)
                if not session.others and not session.from_data(known):
                    # Whether sizes are the same elsewhere is not known yet; a loop that they end would not end.
                    known = truth_now(known)
        if known is False:
            return False
        if known is True:
            self._leaves.append((True, call_in_scope(function, scope), State()))
            return True
        assert session is not None
        branch = Branch(function, scope)
        values = decide(session, known, branch, Branch(_nothing))
        self._leaves.append((known, values, take_state([branch], session.reach, scope)))
        self._writes.add_exit(known)
        return False

    def keep(self, value: Any) -> Any:
        """A copy of a value that an exit leaves the loop with: the rounds after it may change it in place."""
        return value if current() is None else tree.map_leaves(value, self._copy)

    def _copy(self, value: Any) -> Any:
        if isinstance(value, (AppendLog, Rows)):
            return value.copy()
        if not isinstance(value, Tensor):
            return value
        # Exits of later rounds have what did not change since in common, and need not join it.
        known, version, copy = self._copies.get(id(value), (None, -1, value))
        if known is None or version != value._version:
            copy = copy_of(value)
            present_aliases().forget(copy)
            self._copies[id(value)] = value, value._version, copy
            self._kept.append((value, copy))
        return copy

    def join_leaves(self, scope: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
        """Joins the exits: whether the loop returned, the returned value, and the values of the names."""
        self._writes.join(self._copies)
        for value, copy in self._kept:
            stand_for(copy, [value])
        result: Any = (False, UNDEFINED, *(scope.get(name, UNDEFINED) for name in names))
        for test, values, state in reversed(self._leaves):
            if test is not True:
                self._join_attributes(test, state)
            result = values if test is True else join_or_refuse(test, values, result)
        for value, version, _ in self._copies.values():
            if value._version != version:  # under another name it has what rounds wrote that are not made
                present_aliases().mark(value, short(*here()))
        session = current()
        if session is not None:
            session.open_loops.remove(self._open)
        return tuple(result)

    def _join_attributes(self, test: Tensor, state: State) -> None:
        """Gives the attributes that were bound since an exit the values that they had there, if the loop ended there.

        Raises:
            RefusedDecision: Something else of a module was changed since.
        """
        session = current()
        assert session is not None
        changed = state.change()
        if changed and not session.surveying:
            raise refusal(
                f"a loop is left by a decision that depends on the inputs, and {changed} is changed in a round after "
                f"it; move that out of the loop."
            )
        bound = state.bindings()
        kept, lost = sort_attributes(test, [{one: values[at] for one, values in bound.items()} for at in (0, 1)])
        joined = [join_or_refuse(test, *bound[attribute]) for attribute in kept]
        bind_attributes(session, kept, joined, lost)


def for_(
    items: Any,
    body: Callable[..., Any],
    scope: dict[str, Any],
    names: tuple[str, ...],
    appended: tuple[str, ...] = (),
    leaves: bool = False,
    why: str = "",
    *,
    is_whole: bool = False,
) -> tuple[Any, ...]:
    """A ``for``: runs in Python, or in the file if its length may vary.

    Args:
        items: The items.
        body: Takes the item and the names that it reads; returns whether to go on, and all names.
        scope: Values of the body's parameters, by name.
        names: Names that it carries from round to round.
        appended: The names among them of lists that the body appends to.
        leaves: Whether the body may end the loop.
        why: The side effect that forbids a loop in the file; empty if there is none.
        is_whole: Whether it runs in the file though its length is fixed, as Python cannot leave it.
    """
    session = current()
    source = as_counted_items(session, items) if session is not None else None
    if source is None and is_whole and session is not None and is_tracing():
        source = as_fixed_items(items)
    if session is not None and source is not None:
        note_loop(session, source.length)
        return _loop_in_file(
            session, Round(session, body, names, source.at, None, scope), source, appended, leaves, why
        )
    state = dict(scope)
    loop = object()
    for one in items:
        note_round(loop, goes_on=True)
        go, *news = call_in_scope(body, {**state, ITEM: one})
        state.update(zip(names, news, strict=True))
        known = answer(go) if session is None else session.condition(go)
        if not isinstance(known, bool):
            raise refusal("a decision that depends on the inputs leaves a loop that is rewritten for its length.")
        if not known:
            break
    note_round(loop, goes_on=False)
    return tuple(state.get(name, UNDEFINED) for name in names)


def while_(
    test: Callable[..., Any],
    body: Callable[..., Any],
    scope: dict[str, Any],
    names: tuple[str, ...],
    appended: tuple[str, ...] = (),
    why: str = "",
) -> tuple[Any, ...]:
    """A ``while`` that does not end when it is unrolled; other parameters as in `for_`."""
    session = current()
    state = dict(scope)
    loop = object()
    while True:
        tested = call_in_scope(test, state)
        if session is None:
            known: bool | Tensor = bool(tested)
            note_round(loop, goes_on=bool(known))
        else:
            note_loop(session, tested)
            known = session.condition(tested)
        if not isinstance(known, bool):
            assert session is not None
            return _loop_in_file(session, Round(session, body, names, None, test, state), None, appended, True, why)
        if not known:
            return tuple(state.get(name, UNDEFINED) for name in names)
        go, *news = call_in_scope(body, state)
        going = bool(go) if session is None else session.condition(go)
        if not isinstance(going, bool):
            assert session is not None
            return _loop_in_file(session, Round(session, body, names, None, test, state), None, appended, True, why)
        state.update(zip(names, news, strict=True))
        if not going:
            return tuple(state.get(name, UNDEFINED) for name in names)


def _loop_in_file(
    session: Session, one: Round, source: CountedItems | None, appended: tuple[str, ...], leaves: bool, why: str
) -> tuple[Any, ...]:
    if why:
        raise refusal(f"how often this loop runs depends on the inputs, and {why}; move that out of the loop.")
    values = {name: one.scope.get(name, UNDEFINED) for name in one.names}
    values.update((n, AppendLog()) for n in appended if isinstance(values.get(n), (list, AppendLog)))
    after = make_loop(session, one, source, values, leaves)
    return tuple(after[name] for name in one.names)


def collect(
    items: Any, function: Callable[..., Any], star: bool = False, keep: Callable[..., Any] | None = None
) -> Any:
    """``[function(item) for item in items if keep(item)]``; with `star`, ``function(*item)``."""
    session = current()
    source = as_counted_items(session, items) if session is not None else None
    if session is None or (source is None and keep is None):
        return list(_generate(items, function, star, keep))
    call = _call_star if star else _call

    def body(item_of_loop: Any, made: Any) -> tuple[bool, Any]:
        def longer() -> Any:
            grown = made.copy()
            grown.append(call(function, item_of_loop))
            return grown

        if keep is None:
            return True, longer()
        test = call(keep, item_of_loop)
        note_decision(session, test)
        return True, decide(session, test, Branch(longer), Branch(lambda: made), Statement(grows=True))

    if source is not None:
        return for_(source, body, {"made": []}, ("made",), ("made",))[0]
    made: Any = []
    for item in items:
        _, made = body(item, made)
    return made


def generate(
    items: Any, function: Callable[..., Any], star: bool = False, keep: Callable[..., Any] | None = None
) -> Any:
    """``(function(item) for item in items if keep(item))``, as in `collect`; a list if its length may vary."""
    session = current()
    if session is not None and as_counted_items(session, items) is not None:
        return collect(items, function, star, keep)
    return _generate(items, function, star, keep)


def _generate(items: Any, function: Callable[..., Any], star: bool, keep: Callable[..., Any] | None) -> Iterator[Any]:
    call = _call_star if star else _call
    return (call(function, item) for item in items if keep is None or answer(call(keep, item)))


def _call(function: Callable[..., Any], item: Any) -> Any:
    return function(item)


def _call_star(function: Callable[..., Any], item: Any) -> Any:
    return function(*item)
