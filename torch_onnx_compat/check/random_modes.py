"""Modes in which the original's random numbers are followed to its outputs, or are the rarest that there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.caller.undo import memory_of
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.stack import frames_of_model

FAR = 6.0
"""Standard deviations from the mean at which normal numbers are rare."""


class _Draws(DispatchMode):
    """Tells which operators draw: those that torch says may, where its random state is another one afterwards."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        may_draw = torch.Tag.nondeterministic_seeded in func.tags
        before = _state() if may_draw else b""
        result = func(*args, **kwargs)
        return self.see(func, args, kwargs, result, draws=may_draw and _state() != before)

    def see(self, func: Any, args: Any, kwargs: Any, result: Any, *, draws: bool) -> Any:
        """Looks at a call; returns what its result is to be."""
        raise NotImplementedError


def _state() -> bytes:
    state: bytes = torch.get_rng_state().numpy().tobytes()
    return state


class DrawTrace(_Draws):
    """Follows the numbers that are drawn through all that is computed from them, memory by memory."""

    def __init__(self) -> None:
        super().__init__()
        self._reached: dict[int, Tensor] = {}
        """Tensors that they have a part in, by the address of their memory, which no other tensor gets meanwhile."""
        self.has_drawn = False
        self.place: str | None = None
        """The statement that draws the first."""
        self.is_asked = False
        """Whether Python was told a number that they have a part in, and perhaps decides by it; or a tensor that has no
        memory of its own, as sparse ones, with which they are lost sight of."""

    def see(self, func: Any, args: Any, kwargs: Any, result: Any, *, draws: bool) -> Any:
        """Notes what is computed from the numbers."""
        if draws and not self.has_drawn:
            self.has_drawn = True
            frame = next((one for one in frames_of_model() if is_user_file(one.f_code.co_filename)), None)
            self.place = short(frame.f_code.co_filename, frame.f_lineno) if frame is not None else None
        if draws or self.reaches(tree_leaves((args, kwargs))):
            found = tree_leaves(result)
            self.is_asked |= any(isinstance(value, (bool, int, float)) for value in found)
            for tensor in (*found, *_written(func, args, kwargs)):
                if isinstance(tensor, Tensor) and tensor.numel():
                    self._reached[memory_of(tensor)] = tensor
            self.is_asked |= 0 in self._reached
        return result

    def reaches(self, values: Sequence[Any]) -> bool:
        """Whether the numbers have a part in one of some tensors."""
        return any(isinstance(one, Tensor) and memory_of(one) in self._reached for one in values)


def _written(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """The tensors that a call writes to."""
    found = [
        kwargs.get(argument.name, args[number] if number < len(args) else None)
        for number, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return tree_leaves(found)


class RareDraws(_Draws):
    """The smallest and largest numbers that could be drawn instead of those that are, in turn; of samples, the rarest.

    A branch that is taken one time in a hundred is taken here. What no rule is known for is drawn as ever.

    Args:
        is_high: Whether the largest begins.
    """

    def __init__(self, *, is_high: bool) -> None:
        super().__init__()
        self._is_high = is_high

    def see(self, func: Any, args: Any, kwargs: Any, result: Any, *, draws: bool) -> Any:
        """Puts other numbers in the place of those that were drawn."""
        rule = _RULES.get(func._schema.name.removeprefix("aten::").removesuffix("_").removesuffix("_like"))
        if draws and rule is not None and isinstance(result, Tensor) and result.numel():
            named = {argument.name: argument.default_value for argument in func._schema.arguments}
            named |= {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)}
            result.copy_(rule(result, named | kwargs, self._is_high))
        return result


Rule = Callable[[Tensor, dict[str, Any], bool], Any]


def _by_turns(least: Callable[..., Any], most: Callable[..., Any]) -> Rule:
    """A rule by which the least and the largest number take turns: numbers that are all alike may change nothing."""

    def rule(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Tensor:
        place = torch.arange(drawn.numel(), device=drawn.device).reshape(drawn.shape)
        low, high = (torch.as_tensor(end(drawn, of), device=drawn.device).to(drawn.dtype) for end in (least, most))
        return torch.where(place % 2 == int(is_high), low, high)

    return rule


def _below_largest(drawn: Tensor, of: dict[str, Any]) -> Any:
    least, most = of.get("from", 0.0), of.get("to", 1.0)
    return least + (most - least) * (1 - torch.finfo(drawn.dtype).eps)


def _chance(of: dict[str, Any]) -> Any:
    return torch.as_tensor(of["p"] if of.get("p") is not None else of["self"])


def _multinomial(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Tensor:
    """The least likely of those that are possible, or the likeliest."""
    chances = of["self"].double()
    order = torch.where(chances > 0, chances, -math.inf if is_high else math.inf).argsort(-1, descending=is_high)
    first: Tensor = order[..., torch.arange(drawn.shape[-1], device=drawn.device).clamp(max=order.shape[-1] - 1)]
    return first


def _order(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Tensor:
    order = torch.arange(len(drawn), device=drawn.device)
    return order.flip(0) if is_high else order


_UNIFORM = _by_turns(lambda drawn, of: of.get("from", 0.0), _below_largest)
_NORMAL = _by_turns(
    lambda drawn, of: drawn - FAR * of.get("std", 1.0),  # far from where the number is, so that they differ
    lambda drawn, of: drawn + FAR * of.get("std", 1.0),
)
_EXPONENTIAL = _by_turns(
    lambda drawn, of: 1e-9 / of.get("lambd", 1.0),
    lambda drawn, of: 30.0 / of.get("lambd", 1.0),
)

_RULES: dict[str, Rule] = {
    "rand": _UNIFORM,
    "uniform": _UNIFORM,
    "randn": _NORMAL,
    "normal": _NORMAL,
    "normal_functional": _NORMAL,
    "bernoulli": _by_turns(lambda drawn, of: _chance(of) >= 1, lambda drawn, of: _chance(of) > 0),
    "multinomial": _multinomial,
    "randint": _by_turns(lambda drawn, of: of.get("low", 0), lambda drawn, of: of["high"] - 1),
    "randperm": _order,
    "exponential": _EXPONENTIAL,
    "poisson": _by_turns(lambda drawn, of: 0, lambda drawn, of: (of["self"] + FAR * of["self"].sqrt() + 1).floor()),
}
