"""Modes in which the original's random numbers are followed to its outputs, or are the rarest that there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torch_onnx_compat.backends.internals.modes import DispatchMode
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
        self._memory: dict[int, Any] = {}
        """The memory that they reached, by address, which is kept so that no other tensor gets it."""
        self.has_drawn = False
        self.place: str | None = None
        """The statement that draws the first."""
        self.is_asked = False
        """Whether Python was told a number that they have a part in, and perhaps decides by it."""

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
                if isinstance(tensor, Tensor):
                    memory = tensor.untyped_storage()
                    self._memory[memory._cdata] = memory
        return result

    def reaches(self, values: Sequence[Any]) -> bool:
        """Whether the numbers have a part in one of some tensors."""
        return any(isinstance(one, Tensor) and one.untyped_storage()._cdata in self._memory for one in values)


def _written(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """The tensors that a call writes to."""
    found = [
        kwargs.get(argument.name, args[number] if number < len(args) else None)
        for number, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return tree_leaves(found)


class RareDraws(_Draws):
    """The smallest numbers that could be drawn instead of those that are, or the largest; of samples, the rarest.

    A branch that is taken one time in a hundred is taken here. What no rule is known for is drawn as ever.

    Args:
        is_high: Whether the largest are.
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


def _uniform(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Tensor:
    least, most = of.get("from", 0.0), of.get("to", 1.0)
    below = 1 - torch.finfo(drawn.dtype).eps
    return torch.full_like(drawn, least + (most - least) * below if is_high else least)


def _normal(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Any:
    """Far from where the number is, so that they differ among themselves."""
    return drawn + (FAR if is_high else -FAR) * of.get("std", 1.0)


def _bernoulli(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Any:
    chance = of["p"] if of.get("p") is not None else of["self"]
    chance = torch.as_tensor(chance, device=drawn.device)
    return ((chance > 0) if is_high else (chance >= 1)).to(drawn.dtype).expand_as(drawn)


def _multinomial(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Tensor:
    """The least likely of those that are possible, or the likeliest."""
    chances = of["self"].double()
    order = torch.where(chances > 0, chances, -math.inf if is_high else math.inf).argsort(-1, descending=is_high)
    first: Tensor = order[..., torch.arange(drawn.shape[-1], device=drawn.device).clamp(max=order.shape[-1] - 1)]
    return first


def _whole(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Any:
    return torch.zeros_like(drawn) + (of["high"] - 1 if is_high else of.get("low", 0))


def _order(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Tensor:
    order = torch.arange(len(drawn), device=drawn.device)
    return order.flip(0) if is_high else order


def _exponential(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Any:
    return drawn * 0 + (30.0 if is_high else 1e-9) / of.get("lambd", 1.0)


def _poisson(drawn: Tensor, of: dict[str, Any], is_high: bool) -> Any:
    rate = of["self"]
    return (rate + FAR * rate.sqrt() + 1).floor() if is_high else torch.zeros_like(drawn)


_RULES: dict[str, Rule] = {
    "rand": _uniform,
    "uniform": _uniform,
    "randn": _normal,
    "normal": _normal,
    "normal_functional": _normal,
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
    "randint": _whole,
    "randperm": _order,
    "exponential": _exponential,
    "poisson": _poisson,
}
