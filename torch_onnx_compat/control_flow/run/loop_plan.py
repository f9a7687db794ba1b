"""Plans a loop that runs in the file, and makes the ONNX Loop or Scan of it, as each exporter wants it.

The loop carries tensors from round to round. An exit becomes one more carried value, whether to go on. A list that
the loop appends to becomes a tensor with one more axis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.control_flow.run.branch import NoConditional
from torch_onnx_compat.control_flow.run.guard import refuse_shared
from torch_onnx_compat.control_flow.run.iterables import AppendLog, Rows
from torch_onnx_compat.control_flow.run.lifting import clone_arguments
from torch_onnx_compat.control_flow.run.rounds import Result, Round, flatten_values, unflatten_values
from torch_onnx_compat.control_flow.run.session import Session, as_tensor
from torch_onnx_compat.tracing import is_tracing, without_tracing
from torch_onnx_compat.watch import Watcher


@dataclass
class LoopPlan:
    """The tensors that a loop carries, writes to and reads, and the calls that make the loop."""

    session: Session
    one: Round
    initial: dict[str, Any]
    trial: Result
    originals: dict[int, Tensor]
    """The tensors that the names hold before the loop, by the identity of their copies in `initial`."""

    def __post_init__(self) -> None:
        self.structure, before = flatten_values(self.initial)
        found, news = flatten_values({**self.initial, **self.trial.values})
        if found != self.structure:
            raise NoConditional("what it carries from round to round changes its structure")
        for old, new in zip(before, news, strict=True):
            if old.dtype != new.dtype or old.dim() != new.dim():
                raise NoConditional(f"a tensor that it carries changes from {_kind(old)} to {_kind(new)}")
        mine = {id(tensor) for tensor in before}
        same = {id(old) for old, new in zip(before, news, strict=True) if old is new}
        unchanged = same - set(self.trial.writes)
        self.fixed = [tensor if id(tensor) in unchanged else None for tensor in before]
        self.carried = [tensor for tensor, fixed in zip(before, self.fixed, strict=True) if fixed is None]
        if any(identity in mine and identity not in same for identity in self.trial.writes):
            raise NoConditional("it writes in place into a tensor and then puts another in its place")
        outside = {**self.trial.outside, **{id(tensor): tensor for tensor in before}}
        self.written = [outside[identity] for identity in self.trial.writes if identity not in mine]
        for identity in self.trial.writes:
            original = self.originals.get(identity, outside[identity])
            refuse_shared(original)
            if identity in self.originals and id(original) in self.trial.outside:
                raise NoConditional("it writes in place into a tensor that it also reads under another name")
        known = {id(tensor) for tensor in (*self.carried, *self.written)}
        self.read = [tensor for identity, tensor in self.trial.outside.items() if identity not in known]
        self.appended = {name: len(rows) for name, rows in self.trial.rows.items()}

    def run_round(self, number: Tensor | None, tensors: tuple[Tensor, ...]) -> tuple[Any, list[Tensor], list[Tensor]]:
        """Runs a round on other tensors; returns whether to go on, the carried tensors, and the appended ones."""
        carried, written, read = self._split(tensors)
        carried = [tensor.clone() for tensor in carried]
        copies = [tensor.clone() for tensor in written]
        outside = [*zip(self.written, copies, strict=True), *zip(self.read, read, strict=True)]
        result = self.one(number, self._values(carried), {id(old): (old, new) for old, new in outside}, carried)
        if result.outside:
            raise NoConditional("its rounds read different tensors")
        _, after = flatten_values({**self.initial, **result.values})
        news = [tensor for tensor, fixed in zip(after, self.fixed, strict=True) if fixed is None]
        states = [result.writes.get(id(old), (copy, copy))[1] for old, copy in zip(self.written, copies, strict=True)]
        rows = [as_tensor(item) for name in self.appended for item in result.rows.get(name, [])]
        if {name: len(items) for name, items in result.rows.items()} != self.appended:
            raise NoConditional("it appends a different number of items in different rounds")
        return result.go, [*news, *states], rows

    def _values(self, carried: list[Tensor]) -> dict[str, Any]:
        """The values of the names, from the carried tensors; other values are those before the loop."""
        moving = iter(carried)
        tensors = [next(moving) if fixed is None else fixed for fixed in self.fixed]
        return unflatten_values(self.structure, iter(tensors), self.initial)

    def _split(self, tensors: tuple[Tensor, ...]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        first, second = len(self.carried), len(self.carried) + len(self.written)
        return list(tensors[:first]), list(tensors[first:second]), list(tensors[second:])

    @property
    def count(self) -> int:
        """How many tensors the loop carries."""
        return len(self.carried) + len(self.written)

    # The two kinds of loop

    def for_loop(self, length: Any) -> dict[str, Any]:
        """Makes a loop whose number of rounds is known before its first round; returns the values of its names."""
        state = [*self.carried, *self.written]
        rows = [as_tensor(item) for items in self.trial.rows.values() for item in items]

        def body(number: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
            _, news, appended = self.run_round(number, tensors)
            return *news, *appended

        if is_tracing():
            made = self._script_loop("for", body, as_tensor(length), [], [*state, *self.read], rows)
        else:
            state, read, numbers = clone_arguments(state), clone_arguments(self.read), torch.arange(length)
            with internals.without_function_modes(Watcher):
                made = internals.call_scan(_clone_results(body), [numbers], state, read)
        return self._values_after(made)

    def while_loop(self, go: Tensor, number: Tensor | None, length: Tensor | None) -> dict[str, Any]:
        """Makes a loop that goes on while its rounds say so, up to `length` rounds; returns the values of its names."""
        ahead = [] if number is None else [number]
        state = [*self.carried, *self.written]
        read = list(self.read) if length is None else [*self.read, length]
        rows = [as_tensor(item) for items in self.trial.rows.values() for item in items]

        def body(*tensors: Tensor) -> tuple[Tensor, ...]:
            if number is None or length is None:
                on, news, appended = self.run_round(None, tensors)
                return as_tensor(on), *news, *appended
            on, news, appended = self.run_round(tensors[0], tensors[1:-1])
            following = tensors[0] + 1
            return as_tensor(self.session.condition(on)) & (following < tensors[-1]), following, *news, *appended

        if is_tracing():
            made = self._script_loop("while", body, go, ahead, [*state, *read], rows)
        elif rows:
            raise NoConditional("it appends to a list, which torch.while_loop cannot; write to a tensor instead")
        else:
            state, read = clone_arguments([go, *ahead, *state]), clone_arguments(read)
            with internals.without_function_modes(Watcher):
                made = internals.call_while_loop(_clone_results(body), state, read)[1:]
        return self._values_after(made[len(ahead) :])

    def _values_after(self, made: list[Tensor]) -> dict[str, Any]:
        """The values of the names after the loop, from the tensors that it returns."""
        carried, written, rows = self._split(tuple(made))
        for tensor, value in zip(self.written, written, strict=True):
            tensor.copy_(value)
        for place, tensor in enumerate(self.carried):
            if id(tensor) in self.trial.writes:
                carried[place] = self.originals.get(id(tensor), tensor).copy_(carried[place])
        after = self._values(carried)
        items = iter(rows)
        for name, count in self.appended.items():
            parts = [next(items) for _ in range(count)]
            before = self.one.scope.get(name)
            if not count:
                after[name] = before
            elif isinstance(before, AppendLog):
                raise NoConditional("a loop in it appends to the same list")
            elif any(part.dim() != parts[0].dim() for part in parts):
                raise NoConditional("it appends tensors of different shapes")
            else:
                rest = torch.stack(parts, 1).flatten(0, 1) if count > 1 else parts[0]
                after[name] = Rows(list(before or []), rest)
        return after

    # TorchScript: the body is traced separately, and a scripted loop calls it

    def _script_loop(
        self,
        kind: str,
        body: Callable[..., tuple[Tensor, ...]],
        control: Tensor,
        ahead: list[Tensor],
        tensors: list[Tensor],
        rows: list[Tensor],
    ) -> list[Tensor]:
        numbers = [torch.zeros((), dtype=torch.int64)] if kind == "for" else []
        empty = [torch.empty_like(row).unsqueeze(0).narrow(0, 0, 0) for row in rows]
        with without_tracing():
            examples = tuple(tensor.detach().clone() for tensor in (*numbers, *ahead, *tensors))
        with self.session.inner_trace(len(examples)), without_tracing():
            function = torch.jit.trace(_unwrap_single(body), examples, check_trace=False)
            carried = len(ahead) + self.count
            loop = internals.script_loop(kind, function, carried, len(tensors) - self.count, len(rows))
        made = loop(*clone_arguments([control, *ahead, *tensors]), *empty)
        return list(made) if isinstance(made, (tuple, list)) else [made]


def _unwrap_single(body: Callable[..., tuple[Tensor, ...]]) -> Callable[..., Any]:
    """The body, with a single result unwrapped: torch.jit.trace turns a tuple of one tensor into the tensor."""

    def run(*tensors: Tensor) -> Any:
        made = body(*tensors)
        return made[0] if len(made) == 1 else made

    return run


def _clone_results(body: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
    """The body, with its results cloned: torch's loops refuse results that are arguments."""
    return lambda *tensors: tuple(tensor.clone() for tensor in body(*tensors))


def _kind(tensor: Tensor) -> str:
    return f"{tensor.dtype} with {tensor.dim()} axes"
