"""Makes an ONNX If of branches that a mask cannot join: torch.cond under dynamo, a scripted if under TorchScript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.control_flow.run.aliases import pause_watch, stand_for
from torch_onnx_compat.control_flow.run.belongings import Attribute, bind_attributes, sort_attributes
from torch_onnx_compat.control_flow.run.branch import Branch, NoConditional, flatten, unflatten
from torch_onnx_compat.control_flow.run.guard import Guard, attempt
from torch_onnx_compat.control_flow.run.lifting import Lifting, Table, clone_arguments, note_made
from torch_onnx_compat.control_flow.run.lists import RowStacker
from torch_onnx_compat.control_flow.run.refusal import RefusedDecision
from torch_onnx_compat.control_flow.run.session import Session
from torch_onnx_compat.places import first_line
from torch_onnx_compat.tracing import is_tracing, without_tracing
from torch_onnx_compat.watch import without_watchers


def make_if(session: Session, condition: Tensor, then: Branch, otherwise: Branch) -> Any:
    """Makes an ONNX If, gives the attributes that its branches bind their values, and returns its value.

    Raises:
        NoConditional: A branch yields a value that is no tensor, or the exporter refuses the If.
    """
    try:
        branches = _BranchFunction(then), _BranchFunction(otherwise)
        read = session.fixed_last(_find_reads(branches))
        kept, lost = sort_attributes(condition, [branch.bound for branch in branches])
        if kept:
            for branch in branches:
                branch.attributes = kept
            read = session.fixed_last(_find_reads(branches))
        if not read and is_tracing():
            raise NoConditional("the branches read no tensor")
        sides = [branch.results for branch in branches]
        with pause_watch():  # the trials have shown what the branches read
            chosen = _make(session, condition, branches, read)
        note_made(chosen)
        for result, *either in zip(chosen, *sides, strict=True):
            stand_for(result, either)
        value, values = unflatten(branches[0].structure, iter(chosen))
        bind_attributes(session, kept, values, lost)
        return value
    except (NoConditional, RefusedDecision):
        raise
    except Exception as error:
        raise NoConditional(f"{type(error).__name__}: {first_line(error)}") from error


def _make(
    session: Session, condition: Tensor, branches: tuple[_BranchFunction, _BranchFunction], read: list[Tensor]
) -> tuple[Tensor, ...]:
    (_, *given) = handed = clone_arguments([condition, *read])
    if is_tracing():
        return _script_both(session, handed[0], branches, read, given)
    _check_alike(branches)
    with without_watchers() as under_watchers:
        then, otherwise = (under_watchers(branch.over(read)) for branch in branches)
        chosen: tuple[Tensor, ...] = internals.call_cond(handed[0], then, otherwise, given)
    return chosen


class _BranchFunction:
    """A branch as a function of the tensors that both branches read."""

    def __init__(self, piece: Branch) -> None:
        self._piece = piece
        self.structure: Any = None
        self.results: list[Tensor] = []
        self.bound: dict[Attribute, Any] = {}
        """The attributes that it binds, with their values; found by `find_reads`."""
        self.attributes: tuple[Attribute, ...] = ()
        """Those whose values are results of the If."""

    def find_reads(self) -> list[Tensor]:
        """Runs the branch, and returns the tensors from outside that it reads or returns."""
        lifting = Lifting(None, ())
        self._run(lifting)
        passed_on = [tensor for tensor in self.results if id(tensor) not in lifting.made]
        return [*lifting.outside.values(), *passed_on]

    def over(self, read: list[Tensor]) -> Any:
        """The branch as a function of tensors that replace the tensors in `read`, in this order."""

        def run(*tensors: Tensor) -> tuple[Tensor, ...]:
            table: Table = {id(old): (old, new) for old, new in zip(read, tensors, strict=True)}
            lifting = Lifting(table, ())
            self._run(lifting)
            if lifting.outside:
                raise NoConditional("a branch reads different tensors each time")
            # torch.cond refuses a result that is one of the arguments, and results whose strides differ.
            return tuple(_make_contiguous(table.get(id(t), (t, t))[1]) for t in self.results)

        return run

    def _run(self, lifting: Lifting) -> None:
        with RowStacker(), lifting:
            outcome = attempt(self._piece, Guard(sizes_vary=False))
        if outcome.error is not None:
            raise outcome.error
        if outcome.writes:
            raise NoConditional("a branch writes in place into a tensor from outside")
        self.results = []
        self.bound = outcome.bound
        values = tuple(outcome.bound.get(attribute, attribute.value) for attribute in self.attributes)
        self.structure = flatten((outcome.value, values), self.results)


def _find_reads(branches: Sequence[_BranchFunction]) -> list[Tensor]:
    return list({id(t): t for branch in branches for t in branch.find_reads()}.values())


def _make_contiguous(tensor: Tensor) -> Tensor:
    return tensor.clone(memory_format=torch.contiguous_format)


def _check_alike(branches: tuple[_BranchFunction, _BranchFunction]) -> None:
    if branches[0].structure != branches[1].structure:
        raise NoConditional("the branches yield different structures")
    for one, other in zip(branches[0].results, branches[1].results, strict=True):
        if one.dtype != other.dtype:
            raise NoConditional(f"a result is {one.dtype} in one branch and {other.dtype} in the other")
    if not branches[0].results:
        raise NoConditional("the branches yield no tensor")


def _script_both(
    session: Session,
    condition: Tensor,
    branches: tuple[_BranchFunction, _BranchFunction],
    read: list[Tensor],
    given: list[Tensor],
) -> tuple[Tensor, ...]:
    """Traces both branches separately; a scripted if calls one of them."""
    with without_tracing():
        examples = tuple(tensor.detach().clone() for tensor in read)
    dims, kinds = session.data_dims(read), session.kinds_of(read)

    def inner(branch: _BranchFunction) -> Callable[..., Any]:
        run = branch.over(read)

        def traced(*tensors: Tensor) -> Any:
            session.note_data_dims(tensors, dims)
            session.note_kinds(tensors, kinds)
            return run(*tensors)

        return traced

    with session.inner_trace(session.count_varying(read)), without_tracing():
        functions = [torch.jit.trace(inner(branch), examples, check_trace=False) for branch in branches]
        _check_alike(branches)
        chooser = internals.script_if(functions[0], functions[1], len(examples), len(branches[0].results))
    made = chooser(condition, *given)
    return made if isinstance(made, tuple) else (made,)
