"""Makes a loop that runs in the file: runs the body on copies to find out what it carries, then makes the loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.control_flow.run.aliases import copy_of, pause_watch, present_aliases
from torch_onnx_compat.control_flow.run.answers import present_site
from torch_onnx_compat.control_flow.run.belongings import bind_attributes
from torch_onnx_compat.control_flow.run.branch import Branch, NoConditional
from torch_onnx_compat.control_flow.run.call_sequence import CallSequence
from torch_onnx_compat.control_flow.run.iterables import CountedItems
from torch_onnx_compat.control_flow.run.lengths import at_least, at_most, is_scannable
from torch_onnx_compat.control_flow.run.lists import AppendLog, Part, Rows
from torch_onnx_compat.control_flow.run.loop_plan import LoopPlan, dims_that_differ
from torch_onnx_compat.control_flow.run.number_kinds import is_number
from torch_onnx_compat.control_flow.run.refusal import RefusedDecision, here, refusal
from torch_onnx_compat.control_flow.run.rounds import (
    Result,
    Round,
    flatten_values,
    initial_value,
    is_empty,
    last_of,
    length_of,
    numbers_among,
)
from torch_onnx_compat.control_flow.run.session import Session, Trial, as_tensor
from torch_onnx_compat.control_flow.run.slots import Slots
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.places import first_line, short
from torch_onnx_compat.tracing import is_tracing, without_tracing


def make_loop(
    session: Session, one: Round, source: CountedItems | None, values: dict[str, Any], leaves_early: bool
) -> Any:
    """Makes a loop whose number of rounds depends on the inputs.

    Args:
        session: Of the run.
        one: Its body.
        source: The items of a ``for``; None for a ``while``.
        values: The values of the names before the loop.
        leaves_early: Whether the body may end the loop.

    Returns:
        The values of the names after the loop.

    Raises:
        RefusedDecision: It has no equivalent; says where and why.
    """
    session.trials.append(Trial(here()))
    try:
        made = _build_loop(session, one, source, values, leaves_early)
        _note_unknown_kinds(session, values, made)
    except RefusedDecision:
        session.peel()
        raise
    except NoConditional as obstacle:
        session.peel()
        raise refusal(f"how often this loop runs depends on the inputs, and {obstacle}.") from obstacle
    except Exception as error:
        session.peel()
        raise refusal(
            f"how often this loop runs depends on the inputs, and it cannot become an ONNX Loop: "
            f"{type(error).__name__}: {first_line(error)}."
        ) from error
    finally:
        session.trials.pop()
    session.mark("Loop")
    return made


def _build_loop(
    session: Session, one: Round, source: CountedItems | None, values: dict[str, Any], leaves_early: bool
) -> dict[str, Any]:
    if source is None or leaves_early or session.trials[-1].place not in session.peeled:
        return _build_rounds(
            session, one, source.length if source is not None else None, values, leaves_early=leaves_early
        )
    length = source.length
    if session.from_data(length) and any(value is None for value in values.values()):
        raise NoConditional("a name is None before the loop, and values decide whether it has a round")
    python_values = {n: value for n, value in values.items() if value is None or is_number(value) or is_empty(value)}
    start = replace(one, item=lambda _: source.at(0), python_values=python_values)
    first = _build_rounds(session, start, at_most(length, 1), values, starts=True)
    grown = {name: AppendLog() for name, value in values.items() if isinstance(value, AppendLog)}
    later = replace(one, item=lambda number: source.at(number + 1), scope={**one.scope, **first})
    return _build_rounds(session, later, at_least(length - 1, 0), {**{n: first[n] for n in values}, **grown})


def _build_rounds(
    session: Session,
    one: Round,
    length: Any,
    values: dict[str, Any],
    *,
    leaves_early: bool = False,
    starts: bool = False,
) -> dict[str, Any]:
    number = None if length is None else _first_number(length)
    session.trials[-1].number = number
    originals: dict[int, tuple[Tensor, Tensor]] = {}

    def clone_leaf(leaf: Any) -> Any:
        """Gives each name a tensor of its own, since the body may read the same tensor from outside."""
        if not isinstance(leaf, Tensor):
            return leaf
        copy = copy_of(leaf)
        originals[id(copy)] = copy, leaf
        return copy

    ends = {key: value for name in values for key, value in _ends_of(name, values[name], one.scope).items()}
    before = tree.map_leaves({**values, **ends}, clone_leaf)
    trial = one(number, tree.map_leaves(before, _same_leaf))  # new containers, since a round may change them
    bind_attributes(session, (), (), trial.bound)  # no loop carries them: whoever reads one first is refused
    asked = {key for name, log in trial.rows.items() for key in _asked_of(name, log)}
    before = {name: old for name, old in before.items() if name in asked or name not in ends}
    initial = {name: initial_value(name, old, trial.values.get(name), starts=starts) for name, old in before.items()}
    if starts:
        session.trials[-1].counts = frozenset(
            name
            for name, old in values.items()
            if is_number(old) and session.kind_of_number(trial.values.get(name)) is not None
        )
    else:
        _note_unknown_kinds(session, before, initial)
    _note_growth(session, initial, trial)
    session.vary(tree.tensors_in((initial, number)))
    names = [] if starts else [n for n, old in before.items() if _becomes_tensor(session, old, trial.values.get(n))]
    _mark_shared(initial, trial)
    # Again, with the types of the values in later rounds.
    trial = _try_later_round(one, number, before, initial, names)
    site = present_site()
    if session.surveying and number is not None:
        found = _ragged_axes(one, length, initial, trial)
        session.ragged.update({(site, name): axis for name, axis in found.items()})
    ragged = {name: session.ragged[site, name] for name in trial.rows if (site, name) in session.ragged}
    plan = LoopPlan(session, one, initial, trial, {key: leaf for key, (_, leaf) in originals.items()}, ragged)
    with pause_watch():  # the trial has shown what a round reads
        return _make(session, one, plan, length, leaves_early=leaves_early)


def _make(session: Session, one: Round, plan: LoopPlan, length: Any, *, leaves_early: bool) -> dict[str, Any]:
    if length is None:
        assert one.test is not None
        go = session.condition(Branch(one.test, {**one.scope, **plan.initial})())
        return plan.while_loop(as_tensor(go), None, None)
    if leaves_early or not (is_tracing() or is_scannable(length)):
        return plan.while_loop(as_tensor(length) > 0, torch.zeros((), dtype=torch.int64), length)
    return plan.for_loop(length)


def _try_later_round(
    one: Round, number: Tensor | None, before: dict[str, Any], initial: dict[str, Any], names: list[str]
) -> Result:
    """Tries a round on the tensors that the loop carries.

    Args:
        one: The round.
        number: Its number.
        before: The values of the names before the loop.
        initial: What the loop carries in their place.
        names: The names that hold numbers before the loop, and tensors after a round.

    Raises:
        NoConditional: The first round does something else with the numbers than with the tensors: the code asks which
            of the two they are.
    """
    if not names:
        return one(number, tree.map_leaves(initial, _same_leaf))
    numbers, tensors = zip(
        *(pair for name in names for pair in numbers_among(before[name], initial[name])), strict=True
    )
    calls = []
    for values in ({name: before[name] for name in names}, {}):
        with CallSequence(numbers, tensors) as made:
            trial = one(number, {**tree.map_leaves(initial, _same_leaf), **values})
        calls.append(made.finish(trial.values))
    if calls[0] != calls[1]:
        raise NoConditional(
            f"its first round, before which {names[0]!r} is a number, does what no later one does; begin with None or "
            f"with a tensor"
        )
    return trial


def _becomes_tensor(session: Session, old: Any, new: Any) -> bool:
    """Whether a name holds a number before a loop, or several, and a tensor after a round."""
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)) and not isinstance(old, Slots):
        return any(_becomes_tensor(session, a, b) for a, b in zip(old, new, strict=False))
    if isinstance(old, dict) and isinstance(new, dict):
        return any(_becomes_tensor(session, value, new.get(key)) for key, value in old.items())
    return is_number(old) and isinstance(new, Tensor) and session.kind_of_number(new) is None


def _note_unknown_kinds(session: Session, before: dict[str, Any], values: dict[str, Any]) -> None:
    """Notes the tensors that a loop carries, or ends with, in the place of Python numbers."""
    tensors = [tensor for name, old in before.items() for _, tensor in numbers_among(old, values[name])]
    tensors += [values[name] for name in session.trials[-1].counts if isinstance(values.get(name), Tensor)]
    for tensor in tensors:
        session.unknown_kinds.note(
            tensor, "a number before a loop whose length varies, and begins as a tensor in the file"
        )
    if tensors:
        session.users.begin()  # whoever asks from here on is rewritten, too


def _note_growth(session: Session, values: dict[str, Any], trial: Result) -> None:
    """Notes in which dimensions carried tensors have other sizes after a round: they differ from round to round."""
    structure, before = flatten_values(values)
    found, news = flatten_values({**values, **trial.values})
    if found == structure:
        dims = [dims_that_differ(old, new) for old, new in zip(before, news, strict=True)]
        session.note_data_dims(before, dims)


def _mark_shared(values: dict[str, Any], trial: Result) -> None:
    """Marks what a later round has under one name, and changes under another one."""
    structure, before = flatten_values(values)
    found, news = flatten_values({**values, **trial.values})
    if found != structure:
        return
    aliases = present_aliases()
    for old, new in zip(before, news, strict=True):
        written = [tensor for tensor, _ in trial.writes.values() if aliases.may_share(new, [tensor])]
        is_own = all(tensor is old for tensor in written) and sum(aliases.may_share(new, [one]) for one in news) == 1
        if new is not old and written and not is_own:  # a name that a round writes to may be the same tensor or not
            aliases.mark(old, short(*here()))


def _ragged_axes(one: Round, length: Any, values: dict[str, Any], first: Result) -> dict[str, int]:
    """By list: the axis on which what one round appends to it differs in size from what another one does.

    The last round may have a shorter piece than the others; where it has not, a round after it has an empty one.
    """
    if not is_tracing() or not any(log.parts for log in first.rows.values()):
        return {}
    found: dict[str, int] = {}
    for after in (0, 1):
        with without_tracing():
            try:
                last = one(torch.tensor(int(as_tensor(length)) - 1 + after), tree.map_leaves(values, _same_leaf))
            except Exception:  # it tells nothing then; the proof tries other lengths
                continue
            pairs = [(name, log, last.rows[name].parts) for name, log in first.rows.items() if name in last.rows]
            for name, log, parts in pairs:
                axes = _axes_that_differ(log.parts, parts)
                if axes and not (after and log.asked):
                    found.setdefault(name, axes[0])
    return found


def _axes_that_differ(ours: list[Part], theirs: list[Part]) -> list[int]:
    if len(ours) != 1 or len(theirs) != 1 or not all(isinstance(p.value, Tensor) for p in (*ours, *theirs)):
        return []
    sizes = zip(ours[0].value.shape, theirs[0].value.shape, strict=False)
    return [axis for axis, (one, other) in enumerate(sizes) if int(one) != int(other)][:1]


def _ends_of(name: str, value: Any, scope: dict[str, Any]) -> dict[str, Any]:
    """Of a list that a loop appends to: its last item and its length before the loop, by the names in the loop."""
    if not isinstance(value, AppendLog):
        return {}
    before = scope.get(name)
    if isinstance(before, AppendLog):
        return {last_of(name): before.last, length_of(name): before.length}
    if isinstance(before, Rows):
        if any(part.axis is not None for part in before.parts):
            return {last_of(name): None, length_of(name): None}
        last = scope[last_of(name)] if last_of(name) in scope else before.last()
        return {last_of(name): last, length_of(name): before.count_items()}
    return {last_of(name): before[-1] if before else None, length_of(name): len(before or ())}


def _asked_of(name: str, log: AppendLog) -> list[str]:
    return [key for what, key in (("last", last_of(name)), ("length", length_of(name))) if what in log.asked]


def _same_leaf(leaf: Any) -> Any:
    return leaf


def _first_number(length: Any) -> Tensor:
    """The number of the first round, 0, computed from the length: the trial then depends on the inputs too."""
    return as_tensor(length) * 0
