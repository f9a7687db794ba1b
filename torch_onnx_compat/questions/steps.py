"""What a symbolic run computes, step by step, so that two runs can be compared: does an answer matter at all?

    if x.numel() * 2 > 2**31:
        x = x.contiguous()

No size on the other side fits into memory. So the model runs again with the other answer, on the same fakes: where
every operator gets the same arguments, in the same order, the answer changes nothing. Copies are no steps, as long as
nothing writes to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.internals import symbolic
from torch_onnx_compat.questions.arguments import leaves_of

Step = tuple[str, tuple[Any, ...]]
"""An operator's name, and its arguments: numbers of fakes, formulas of sizes, constants."""


@dataclass
class Steps:
    """The operators of one run, in order.

    Args:
        kind: The class of the fakes.
    """

    kind: Any
    made: list[Step] = field(default_factory=list)
    has_copies: bool = False
    is_known: bool = True
    """Whether nothing happened that the steps do not tell."""
    _number: int = 0

    def note(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Notes an operator.

        Args:
            func: An overload, or a higher-order operator.
            args: Its arguments.
            kwargs: Its keyword arguments.
            result: What it yields.
        """
        if func.namespace == "prim":
            return  # where a tensor is, and of what type
        if func is torch.ops.aten.clone.default:
            result.step_number = self._tell(args[0])
            self.has_copies = True
            return
        schema = getattr(func, "_schema", None)
        self.is_known &= schema is not None and not (schema.is_mutable and self.has_copies)
        self.made.append((_name(func), tuple(map(self._tell, leaves_of((args, kwargs))))))
        for leaf in leaves_of(result):
            self._tell(leaf)

    def end(self, result: Any) -> None:
        """Notes what the model returns."""
        self.made.append(("return", tuple(map(self._tell, leaves_of(result)))))

    def _tell(self, leaf: Any) -> Any:
        """What stands for an argument; a fake that is new gets the next number."""
        if isinstance(leaf, self.kind):
            if not hasattr(leaf, "step_number"):
                self._number += 1
                leaf.step_number = self._number
            return leaf.step_number
        return leaf.node.expr if symbolic.is_symbolic(leaf) else leaf


def are_same(one: Steps, other: Steps) -> bool:
    """Whether two runs compute the same."""
    if not (one.is_known and other.is_known) or len(one.made) != len(other.made):
        return False
    return all(
        name == its_name and len(args) == len(its_args) and all(map(_is_same, args, its_args))
        for (name, args), (its_name, its_args) in zip(one.made, other.made, strict=True)
    )


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):  # a constant; each run has a copy of the model
        return one.dtype == other.dtype and torch.equal(one, other)
    return type(one) is type(other) and (one is other or bool(one == other))


def _name(func: Any) -> str:
    return "aten.view" if func is torch.ops.aten._unsafe_view.default else str(func).removesuffix(".default")
