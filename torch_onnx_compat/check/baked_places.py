"""What the places that a caller lets be frozen come to: where that is something else, the file is wrong by consent.

The file has to be right wherever these places come to what they came to in the ordinary cases. So a difference is
excused only at values at which one of them comes to something else.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

import numpy as np
from torch import Tensor

from torch_onnx_compat.inputs import tree
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation
from torch_onnx_compat.places import PlaceSet, is_user_file, short
from torch_onnx_compat.stack import frames_of_model
from torch_onnx_compat.watch import Watcher

Answers = Mapping[str, tuple[Any, ...]]
"""What each place came to in a run, one item after the other."""


class BakedPlaces:
    """Tells at which inputs the places come to something else than before.

    Args:
        places: As the caller names them.
        observation: Runs the original.
        before: Gives the inputs of the ordinary cases so far, at which the file is right.
    """

    def __init__(
        self,
        places: Collection[str] = (),
        observation: Observation | None = None,
        before: Callable[[], Sequence[Inputs]] = lambda: (),
    ) -> None:
        self._places = PlaceSet(places)  # of its own: to look at a line is not to meet a decision there
        self._observation = observation
        self._before = before
        self._known: dict[int, tuple[Inputs, _Record]] = {}
        """By their identity: the inputs of the ordinary cases, and what the places came to there."""

    def are_kept(self, inputs: Inputs) -> bool:
        """Whether Python goes the same way at each place; a number that is another one is no other way."""
        return not self._departing(inputs, lambda record: record.ways)

    def excuse(self, label: str, inputs: Inputs, detail: str) -> str:
        """What is to be said where the file differs, if the reason may be what the caller accepts; else nothing.

        Args:
            label: Names the inputs.
            inputs: Where it differs.
            detail: What differs.
        """
        places = self._departing(inputs, lambda record: record.answers)
        if not places:
            return ""
        return (
            f"at {label} the file differs from eager torch ({detail}): there {' and '.join(places)}, which allow_baked "
            f"accepts as it is, comes to something else than in the cases before."
        )

    def _departing(self, inputs: Inputs, select: Callable[[_Record], Answers]) -> list[str]:
        if self._observation is None or not len(self._places):
            return []
        found = select(self._record(inputs, self._observation))
        known = [select(self._known_record(one, self._observation)) for one in self._before()]
        places = {*found, *(place for answers in known for place in answers)}
        return sorted(
            place for place in places if found.get(place, ()) not in [answers.get(place, ()) for answers in known]
        )

    def _known_record(self, inputs: Inputs, observation: Observation) -> _Record:
        if id(inputs) not in self._known:
            self._known[id(inputs)] = inputs, self._record(inputs, observation)
        return self._known[id(inputs)][1]

    def _record(self, inputs: Inputs, observation: Observation) -> _Record:
        record = _Record(self._places)
        with suppress(ModelRefused):
            observation.run_within(record, inputs)
        return record


class _Record(Watcher):
    """Records what some places come to in a run: which way Python goes there, and what it learns of tensors.

    A debugger's function for lines is put back afterwards.

    Args:
        places: Their names.
    """

    def __init__(self, places: Collection[str]) -> None:
        super().__init__()
        self._places = places
        self._lines: dict[CodeType, Mapping[int, str]] = {}
        self._ways: dict[str, list[int]] = {}
        self._numbers: dict[str, list[Any]] = {}
        self._branches: set[str] = set()
        """The places at which Python could have gone another way."""
        self._before: list[Any] = []
        """What looked at lines before; a watcher enters itself once more for torch's Python functions."""

    def __enter__(self) -> Any:
        entered = super().__enter__()  # type: ignore[no-untyped-call,unused-ignore]
        self._before.append(sys.gettrace())
        if len(self._before) == 1:
            sys._getframe().f_trace_opcodes = True  # Python 3.12 tells of no instruction unless a frame wants it by now
            sys.settrace(self._call)
        return entered

    def __exit__(self, *error: Any) -> None:
        before = self._before.pop()
        if not self._before:
            sys.settrace(before)
        super().__exit__(*error)  # type: ignore[no-untyped-call,unused-ignore]

    @property
    def ways(self) -> Answers:
        """The instructions that ran at each place, and those that came after it."""
        return {place: tuple(way) for place, way in self._ways.items()}

    @property
    def answers(self) -> Answers:
        """The same, and at places that have one way only the numbers that Python got there."""
        numbers = {place: tuple(found) for place, found in self._numbers.items() if place not in self._branches}
        return {place: (way, numbers.get(place)) for place, way in self.ways.items()}

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """None: calls are looked at after they were made."""
        return False

    def check(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """Notes what is no tensor."""
        if result is not None and not isinstance(result, Tensor) and not tree.tensors_in(result):
            frame = next((f for f in frames_of_model() if is_user_file(f.f_code.co_filename)), None)
            place = None if frame is None else self._lines_of(frame.f_code).get(frame.f_lineno)
            if place is not None:
                known = result.tobytes() if isinstance(result, np.ndarray) else repr(result)
                self._numbers.setdefault(place, []).append(known)
        return result

    def _lines_of(self, code: CodeType) -> Mapping[int, str]:
        """The lines of a function that are among the places."""
        if code not in self._lines:
            lines = {line for *_, line in code.co_lines() if line is not None}
            places = {line: short(code.co_filename, line) for line in lines}
            self._lines[code] = {line: place for line, place in places.items() if place in self._places}
        return self._lines[code]

    def _call(self, frame: FrameType, event: str, value: Any) -> Any:
        lines = self._lines_of(frame.f_code)
        if not lines:
            return None
        frame.f_trace_opcodes = True
        last: str | None = None

        def step(frame: FrameType, event: str, value: Any) -> Any:
            nonlocal last
            if event == "opcode":
                here = lines.get(frame.f_lineno)
                place = here or last  # the first instruction after a place tells which way was taken
                if place is not None:
                    self._ways.setdefault(place, []).append(frame.f_lasti)
                    if here is not None and _is_branch(frame.f_code, frame.f_lasti):
                        self._branches.add(place)
                last = here
            return step

        return step


def _is_branch(code: CodeType, instruction: int) -> bool:
    """Whether Python may go on at one of two instructions after this one."""
    name = dis.opname[code.co_code[instruction]]
    return name == "FOR_ITER" or ("JUMP" in name and "IF" in name)
