"""Which decisions on values no case has taken both ways: there the file is proven on one side only."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from torch_onnx_compat.backends.conditions import has_bool_answer
from torch_onnx_compat.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.stack import frames_of_model

PART_OF_PROOF = 0.2
"""Largest part of the time that the proof took before."""


def untaken_decisions(
    observation: Observation, tried: Sequence[Inputs], places: Collection[str], seconds: float
) -> list[str]:
    """A note for each decision on values that every case has answered alike.

    Args:
        observation: Runs the original.
        tried: The inputs of all cases.
        places: The decisions that the file takes, ``models/net.py:41``.
        seconds: What the proof took.
    """
    if not places:
        return []
    start = time.perf_counter()
    log = AnswerLog()
    for inputs in tried:
        if time.perf_counter() - start > max(0.2, PART_OF_PROOF * seconds):
            return []
        try:
            observation.run_within(log, inputs)
        except ModelRefused:
            continue
    return [
        f"{place}: every case has answered this decision alike ({_WORDS[answers == {True}]}); prove the other "
        f"side too with samples=[...] that take it."
        for place, answers in log.answers.items()
        if place in places and len(answers) == 1
    ]


_WORDS = {True: "yes", False: "no"}


class AnswerLog(TorchFunctionMode):
    """Records what the model's conditions on tensors come to, by place."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, set[bool]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is Tensor.__bool__ or has_bool_answer(func):
            own = (frame for frame in frames_of_model() if is_user_file(frame.f_code.co_filename))
            for frame in islice(own, 1):
                self.answers.setdefault(short(frame.f_code.co_filename, frame.f_lineno), set()).add(bool(result))
        return result
