"""Which sizes of the arguments of torch's functions are the same for every input that the file will see.

TorchScript knows no symbolic sizes, so a rewrite that runs inside its trace cannot tell a fixed size from a dynamic one
by itself. The original's symbolic run can; where that is not complete, eager runs at other sizes are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torch_onnx_compat.inputs import Inputs
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.probing import far_sizes, first_accepted, other_sizes
from torch_onnx_compat.questions.run import SymbolicRuns
from torch_onnx_compat.tracing import StaticSizes, without_tracing
from torch_onnx_compat.watch import shapes_of, tensors_of

Sizes = tuple[int | None, ...]
"""The sizes of a tensor's axes; None for those that vary."""


KnownCall = Sequence[Sizes]
"""The sizes of the tensors among the arguments of one call."""


class SizeFacts:
    """Answers, when asked, which sizes of certain functions' arguments never vary.

    Args:
        runs: The original's symbolic runs.
        functions: The functions.
        inputs: The example as it is traced.
    """

    def __init__(self, runs: SymbolicRuns, functions: Sequence[Any], inputs: Inputs) -> None:
        self._runs, self._functions, self._inputs = runs, functions, inputs
        self._calls: Sequence[KnownCall] | None = None

    def of_call(self, number: int | None, args: Any, kwargs: Any) -> StaticSizes:
        """What `tracing.static_size` answers during the `number`-th call of the functions."""

        def sizes_of(x: Tensor) -> Sizes | None:
            position = next((i for i, tensor in enumerate(tensors_of(args, kwargs)) if tensor is x), None)
            if position is None:
                return None
            return self._sizes(number, position, shapes_of(args, kwargs))

        return sizes_of

    def _sizes(self, number: int | None, position: int, now: Sequence[tuple[int, ...]]) -> Sizes | None:
        if not self._inputs.sizes():
            return now[position]
        if number is None:
            return None
        if self._calls is None:
            with without_tracing():
                self._calls = self._find()
        if number >= len(self._calls):
            return None
        call = self._calls[number]
        if len(now) != len(call) or not all(map(_is_instance, now, call)):
            return None  # another call than the original has at this place
        return call[position]

    def _find(self) -> Sequence[KnownCall]:
        run = self._runs.at({})
        if run.is_complete:
            return [call.known for call in run.calls.of(self._functions)]
        return _compare(self._runs.observation, self._functions, self._inputs)


def _compare(observation: Observation, functions: Sequence[Any], inputs: Inputs) -> Sequence[KnownCall]:
    """What eager runs have in common whose dynamic axes differ, by little and by much.

    None at all where the model accepts no other size.
    """

    def run(inputs: Inputs) -> list[list[tuple[int, ...]]] | None:
        return observation.log_shapes(functions, inputs)

    one = run(inputs)
    others = [first_accepted(sizes(inputs), run) for sizes in (other_sizes, far_sizes)] if one else []
    found = [other for other in others if other is not None]
    if one is None or not found:
        return []
    return [_merge(*shapes) for shapes in zip(one, *found, strict=False)]


def _merge(one: list[tuple[int, ...]], *others: list[tuple[int, ...]]) -> KnownCall:
    """One call in several runs."""
    if any([len(shape) for shape in one] != [len(shape) for shape in other] for other in others):
        return []
    return [
        tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True))
        for shapes in zip(one, *others, strict=True)
    ]


def _is_instance(shape: tuple[int, ...], known: Sizes) -> bool:
    """Whether a shape has the fixed sizes."""
    return len(shape) == len(known) and all(k in (None, size) for size, k in zip(shape, known, strict=True))
