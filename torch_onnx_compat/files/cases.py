"""The cases on which a file is compared with its original: given inputs, random ones, other sizes of dynamic axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from torch_onnx_compat.errors import ArgumentError, CompatError, UnsupportedError
from torch_onnx_compat.files.drawing import MOST_GUESSED, RANKS, Kind, Plan, plan_inputs
from torch_onnx_compat.files.reading import OnnxFile, weights_of
from torch_onnx_compat.files.runner import Refused, Value

KINDS: tuple[Kind, ...] = ("normal", "unit", "whole", "zeros")
ATTEMPTS = 6
"""How often other numbers are drawn where the original refuses some."""

SIZES = (3, 8, 16, 32, 64, 128, 224, 256, 7, 1, 2)
"""Sizes of dynamic axes that are tried in turn until the original takes them; axis 0 gets 2, else 1."""

BUDGET = 60.0
"""Processor seconds that the original may take for all cases; the first case of each axis is made in any case."""


@dataclass(frozen=True)
class FileCase:
    """Inputs of a file, and what it should compute for them.

    Attributes:
        label: Names the case.
        feeds: The inputs.
        outputs: What the file should compute.
        sizes: Of the dynamic axes.
        source: The inputs of the original of which both follow; the same ones where the files take the same.
        is_given: Whether they are the caller's.
    """

    label: str
    feeds: Mapping[str, Value] = field(repr=False)
    outputs: Sequence[Value] = field(repr=False)
    sizes: Mapping[str, int] = field(default_factory=dict)
    source: Mapping[str, Value] = field(default_factory=dict, repr=False)
    is_given: bool = False


@dataclass
class CaseMaker:
    """Makes the cases, one after the other.

    Attributes:
        file: The original.
        run: Runs the original on inputs by name; raises Refused.
        fall_back: Lets another judge run the original on these inputs; returns whether that one does.
        given: Inputs that the caller gave.
        sizes: Sizes of dynamic axes that the caller gave.
        seed: Of the random numbers.
        notes: Gets notes on what was not tried.
        rows: Where the batch axis is freed, how many rows the original takes at a time; else 0.
        seconds: Processor seconds that the original has taken.
    """

    file: OnnxFile
    run: Callable[[Mapping[str, Value]], list[Value]]
    fall_back: Callable[[Mapping[str, Value]], bool]
    given: Sequence[Mapping[str, Value]]
    sizes: Mapping[str, Sequence[int]]
    seed: int
    notes: list[str]
    rows: int = 0
    seconds: float = 0.0

    @property
    def _names(self) -> list[str]:
        return [value.name for value in self.file.proto.graph.output]

    def cases(self) -> Iterator[FileCase]:
        """The cases, one after the other.

        Raises:
            CompatError: The original refuses the given inputs, or all that were drawn.
        """
        yield from self._given_cases()
        try:
            plan, first, sizes = self._find_base(plan_inputs(self.file.graph()))
        except CompatError as error:
            if not self.given:
                raise
            self.notes.append(f"compared on the given inputs alone: {error}")
            return
        yield first
        yield from self._drawn_cases(plan, sizes)
        yield from self._case_with_other_defaults(plan, first)

    def _given_cases(self) -> Iterator[FileCase]:
        for number, feeds in enumerate(self.given):
            try:
                outputs = self.run(feeds)
            except Refused as error:
                if not self.fall_back(feeds):
                    raise CompatError(f"{self.file}: the original refuses the given inputs: {error}") from error
                outputs = self.run(feeds)
            yield FileCase(f"given {number}" if len(self.given) > 1 else "given", feeds, outputs, is_given=True)

    def _drawn_cases(self, plan: Plan, sizes: Mapping[str, int]) -> Iterator[FileCase]:
        for kind in KINDS[1:] if plan.inputs else ():
            if self.seconds <= BUDGET:
                yield from self._try_case(f"{kind} values", plan, sizes, kind)
        yield from self._cases_at_sizes(plan, sizes)
        for count in sorted({1, 2 * self.rows + 1, 3 * self.rows} - {self.rows}) if self.rows else ():
            yield self._case_of_rows(plan, sizes, count)

    def _case_of_rows(self, plan: Plan, sizes: Mapping[str, int], count: int) -> FileCase:
        """A case of so many rows: what the original computes for each batch of them, one after the other."""
        batches: list[tuple[dict[str, Value], list[Value]]] = []
        for number in range(-(-count // self.rows)):
            feeds = plan.draw(sizes, "normal", self.seed + number)
            batches.append((feeds, self.run(feeds)))
        for name, value in zip(self._names, batches[0][1], strict=True):
            if not isinstance(value, np.ndarray) or not value.ndim or value.shape[0] != self.rows:
                raise UnsupportedError(
                    f"dynamic='batch': output {name!r} of shape {np.shape(value)} has no axis 0 of the batch's size, "
                    f"{self.rows}."
                )
        given = {name: np.concatenate([feeds[name] for feeds, _ in batches])[:count] for name in batches[0][0]}
        outputs = [np.concatenate([outputs[i] for _, outputs in batches])[:count] for i in range(len(self._names))]
        return FileCase(f"batch={count}", given, outputs, {"batch": count})

    def _case_with_other_defaults(self, plan: Plan, first: FileCase) -> Iterator[FileCase]:
        """A case in which inputs that have values of their own get others."""
        defaults = plan.draw_defaults(self.seed)
        if not defaults or self.file.proto.ir_version < 4:  # before, every weight had to be among the inputs
            return
        feeds = {**first.feeds, **defaults}
        try:
            yield FileCase("other default inputs", feeds, self.run(feeds), first.sizes)
        except Refused as error:
            self.notes.append(f"not tried with other values for the inputs that have defaults: {error}")

    def _cases_at_sizes(self, plan: Plan, base: Mapping[str, int]) -> Iterator[FileCase]:
        numbers = {
            name: [size for size in self.sizes.get(name, (1, 2 * base[name] + 1)) if size != base[name]]
            for name in plan.names
        }
        for name, sizes in numbers.items():
            for size in sizes:
                yield from self._try_case(f"{name}={size}", plan, {**base, name: size}, "normal")
        if len(numbers) > 1 and self.seconds <= BUDGET:
            joint = {name: (self.sizes.get(name) or [base[name] + 1])[-1] for name in numbers}
            label = ", ".join(f"{name}={size}" for name, size in joint.items())
            yield from self._try_case(label, plan, joint, "unit")

    def _try_case(self, label: str, plan: Plan, sizes: Mapping[str, int], kind: Kind) -> Iterator[FileCase]:
        try:
            feeds, outputs = self._draw(plan, sizes, kind, label)
        except CompatError as error:
            self.notes.append(f"not tried at {label}: the original refuses: {' '.join(str(error).split())[:160]}")
            return
        yield FileCase(label, feeds, outputs, sizes)

    def _draw(
        self, plan: Plan, sizes: Mapping[str, int], kind: Kind, label: str, attempts: int = ATTEMPTS
    ) -> tuple[dict[str, Value], list[Value]]:
        """Inputs that the original takes, and its outputs.

        Raises:
            CompatError: It refuses all that were drawn; holds the first reason.
        """
        reason: CompatError | None = None
        for attempt in range(attempts):
            feeds = plan.draw(sizes, kind, self.seed, attempt)
            try:
                return feeds, self.run(feeds)
            except Refused as refusal:
                reason = reason or refusal
        raise reason or CompatError("nothing was tried")

    def _find_base(self, plan: Plan) -> tuple[Plan, FileCase, dict[str, int]]:
        """Sizes of the dynamic axes, and ranks of inputs, that the original takes.

        Raises:
            CompatError: It refuses all of them.
        """
        for name in self.sizes:
            if name not in plan.names:
                known = ", ".join(plan.names) or "none"
                hint = (
                    " It declares no shapes; give inputs of the sizes that are meant." if plan.has_unknown_ranks else ""
                )
                raise ArgumentError(f"sizes: the file has no dynamic axis {name!r}; it has {known}.{hint}")
        reason: CompatError | None = None
        plans = [plan.with_rank(rank) for rank in RANKS] if plan.has_unknown_ranks else [plan]
        for candidate in plans:
            guesses = list(self._candidates(candidate))
            most = max(MOST_GUESSED, candidate.count(guesses[0]))
            for sizes in (guess for guess in guesses if candidate.count(guess) <= most):
                try:
                    # Other numbers seldom help where many sizes are left to try.
                    feeds, outputs = self._draw(candidate, sizes, "normal", "", 3 if candidate.names else ATTEMPTS)
                except CompatError as error:
                    reason = reason or error
                else:
                    return candidate, FileCase("random values", feeds, outputs, sizes), sizes
        raise CompatError(
            f"{self.file}: the original refuses every input that was drawn, the first with: {reason} Give inputs, "
            f"or sizes of its dynamic axes."
        )

    def _candidates(self, plan: Plan) -> Iterator[dict[str, int]]:
        names, first = plan.names, plan.first
        if not names:
            yield {}
            return
        for size in SIZES:
            for batch in (2, 1):
                sizes = {name: batch if name in first else size for name in names}
                yield {**sizes, **{name: values[0] for name, values in self.sizes.items() if values}}


def check_inputs(file: OnnxFile, feeds: Mapping[str, Value]) -> dict[str, Value]:
    """Inputs that the caller gave, as arrays.

    Raises:
        CompatError: One is missing, or the file has none of that name.
    """
    graph = file.proto.graph
    weights = weights_of(graph)
    known = [value.name for value in graph.input]
    for name in feeds:
        if name not in known:
            raise CompatError(f"inputs: the file has no input {name!r}; it has {', '.join(known) or 'none'}.")
    for name in known:
        if name not in feeds and name not in weights:
            raise CompatError(f"inputs: {name!r} is missing; the file takes {', '.join(known)}.")
    return {name: _as_value(value) for name, value in feeds.items()}


def _as_value(value: Any) -> Value:
    """An input as the caller gave it: an array, a TensorProto, a list of these for a sequence, a number or a text."""
    if isinstance(value, (list, tuple)):
        return [_as_value(item) for item in value]
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
