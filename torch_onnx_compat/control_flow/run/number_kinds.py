"""What kind of value a tensor stands for: a number of Python, of which type, or a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_onnx_compat.backends.trace_numbers import is_number as is_size_number
from torch_onnx_compat.backends.wide import TENSOR_NODES, Numbers
from torch_onnx_compat.control_flow.find.users import NumberUsers
from torch_onnx_compat.control_flow.run.lifting import note_made_with, present
from torch_onnx_compat.control_flow.run.refusal import refusal
from torch_onnx_compat.control_flow.run.unknown_kinds import Origin, UnknownKinds
from torch_onnx_compat.tracing import is_tracing, recorded_value

SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)

_TYPES: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}


def _type_of(number: Tensor) -> type:
    return bool if number.dtype == torch.bool else float if number.is_floating_point() else int


def is_number(value: Any) -> bool:
    """Whether a value is a plain or symbolic number."""
    return isinstance(value, (bool, int, float, *SYMBOLS)) and not (isinstance(value, float) and math.isnan(value))


class NumberOrTensor(NamedTuple):
    """What is known of the kind of a value."""

    unknown: Origin | None
    """Why nobody knows whether it is a number or a tensor."""
    is_number: bool
    is_size: bool
    """Whether it is a size, or was computed of sizes."""


@dataclass(kw_only=True)
class NumberKinds:
    """The tensors of one run that stand for numbers."""

    split: set[tuple[str, int]] = field(default_factory=set)
    """File and line of each decision whose branches give a name values of several kinds, such as a tensor and None."""
    unknown_kinds: UnknownKinds = field(default_factory=UnknownKinds)
    """Tensors that stand for a number or for a tensor, whichever way the model goes."""
    users: NumberUsers = field(default_factory=NumberUsers)
    """The functions that ran after a tensor was noted as a number; filled while its `watch` is in force."""
    numbers: Numbers = field(default_factory=Numbers)
    """Tensors that stand for what Python has as numbers."""
    computes_wide: bool = True
    """Whether the file may compute in float64 what Python does."""

    def note_number(self, value: Any, wide: Tensor | None = None) -> Any:
        """Notes that a tensor stands for what Python has as a number.

        Args:
            value: The tensor; anything else is no matter.
            wide: Its value in float64, of shape (1,), where that is another.

        Returns:
            The tensor that stands for it from now on.
        """
        if isinstance(value, Tensor):
            if wide is not None or value not in self.numbers:
                value = self.numbers.note(value, wide)
            self.users.begin()
        return value

    def exact(self, value: Any) -> Tensor | None:
        """A tensor of one element, a number as Python computes it; None for what is not known to be a number."""
        if isinstance(value, torch.SymFloat) and self.computes_wide:
            return torch.full((), value, dtype=torch.float64)
        if not isinstance(value, Tensor) or value.dim():
            return None
        found = self.numbers.exact(value)
        if found is not None:
            note_made_with(found, value)
        if found is None and is_tracing() and not value.is_floating_point() and self.number_type(value) is not None:
            return value
        return found

    def number_type(self, value: Any) -> type | None:
        """What code hears that asks for the kind of a value: the type of a number; None for any other value.

        Raises:
            RefusedDecision: torch.export has no graph in which to look, and the numbers of this run are not all noted.
        """
        if isinstance(value, SYMBOLS):
            return _TYPES[type(value)]
        if not isinstance(value, Tensor) or value.dim():
            return None
        if self.numbers and not (is_tracing() or self.computes_wide or value in self.numbers):
            raise refusal("whether a tensor of shape () stands for a number decides, and nobody can tell.")
        # A trace can be asked what a tensor was computed of. Under torch.export, what is computed of numbers is noted
        # where it is computed in float64, too.
        if not is_tracing():
            return _type_of(value) if value in self.numbers else None
        return _type_of(value) if self._is_made_of_numbers(value, False) or is_size_number(value) else None

    def kind_of_number(self, value: Any) -> type | None:
        """The type of the number that Python has for a value, of a size, too; None for any other value."""
        if isinstance(value, (bool, int, float, *SYMBOLS)):
            return _TYPES.get(type(value)) or next(kind for kind in (bool, int, float) if isinstance(value, kind))
        if isinstance(value, Tensor) and not value.dim() and is_tracing():
            return _type_of(value) if self._is_made_of_numbers(value, True) else None
        return self.number_type(value)

    def note_several_kinds(
        self, made: Tensor, sides: Sequence[Any], reason: str, place: tuple[str, int] | None = None
    ) -> bool:
        """Notes that the kind of a value is unknown, if it is one of several that are not of one kind.

        Args:
            made: The tensor.
            sides: The values.
            reason: What to say of it to code that asks for its kind.
            place: File and line of the decision that it comes from.

        Returns:
            Whether it is unknown.
        """
        is_known = not any(self.unknown_kinds.origin(side, self.numbers) for side in sides)
        kinds = {self.kind_of_number(side) for side in sides}
        if is_known and len(kinds) == 1:
            return False
        numbers = frozenset(kind for kind in kinds if kind is not None)
        self.unknown_kinds.note(made, reason, place, numbers if is_known and None not in kinds else frozenset())
        self.users.begin()
        return True

    def ask_kind(self, value: Any) -> None:
        """Refuses to tell whether a value is a number or a tensor, where the file has a tensor for either.

        Raises:
            RefusedDecision: The value is such a one.
        """
        origin = self.unknown_kinds.origin(value, self.numbers)
        if origin is None:
            return
        if origin.place is not None:
            self.split.add(origin.place)
        raise refusal(
            f"what kind of value a name holds decides, and it is {origin.reason}; let it be a tensor throughout."
        )

    def kinds_of(self, tensors: Iterable[Tensor]) -> list[NumberOrTensor]:
        """What is known of each traced tensor: whether it stands for a number, a size, or nobody knows."""
        return [
            NumberOrTensor(
                self.unknown_kinds.origin(tensor, self.numbers),
                self.number_type(tensor) is not None,
                self.kind_of_number(tensor) is not None,
            )
            for tensor in tensors
        ]

    def note_kinds(self, tensors: Iterable[Tensor], kinds: Iterable[NumberOrTensor]) -> None:
        """Notes the same of the inputs of a nested trace."""
        for tensor, kind in zip(tensors, kinds, strict=True):
            if kind.unknown is not None:
                self.unknown_kinds.note(tensor, kind.unknown.reason, kind.unknown.place, kind.unknown.kinds)
            elif kind.is_number:
                self.numbers.note(tensor)
            elif kind.is_size:
                self.numbers.note_size(tensor)

    def _is_made_of_numbers(self, value: Tensor, or_sizes: bool) -> bool:
        """Whether everything that a traced tensor was computed from stands for a number, or is a constant or a size.

        Args:
            value: The tensor.
            or_sizes: Whether sizes alone are enough.
        """
        todo, found, seen = [recorded_value(present(value))], False, set()
        while todo:
            recorded = todo.pop()
            node = recorded.node()
            if self.numbers.has_recorded(recorded.unique()):
                found = True
            elif self.numbers.is_recorded_size(recorded):
                found = found or or_sizes
            elif node.kind() in TENSOR_NODES or (not list(node.inputs()) and node.kind() != "prim::Constant"):
                return False  # a tensor that was made of a number, an input or a weight
            elif recorded.unique() not in seen:
                seen.add(recorded.unique())
                todo += node.inputs()
        return found
