"""Modes that see every operator, and wake torch.compile for none of them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C._dynamo import eval_frame as hook
from torch._compile import _disable_dynamo
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode

from torch_onnx_compat.backends.internals import flexible_attention


class DispatchMode(TorchDispatchMode):
    """A TorchDispatchMode, for all modes of this package.

    torch runs a mode's function where torch.compile leaves it alone, and imports torch._dynamo for that, which takes
    more than a second. While nothing compiles, which the interpreter's hook for frames tells, the function is called as
    it is.

    A higher-order operator, whose arguments are functions, goes to `control`.
    """

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)  # type: ignore[no-untyped-call,unused-ignore]
        own = vars(cls).get("__torch_dispatch__")
        if own is not None:
            cls.__torch_dispatch__ = _hide_from_compile(own)  # type: ignore[method-assign]

    def control(self, func: HigherOrderOperator, args: Any, kwargs: Any) -> Any:
        """Runs a higher-order operator on real tensors; the mode sees the operators that its functions call."""
        run = _HIGHER_ORDER.get(func.name())
        if run is None:
            return func(*args, **kwargs)
        with self:
            return run(*args, **kwargs)


def _branch(condition: Any, then: Callable[..., Any], otherwise: Callable[..., Any], operands: Any = ()) -> Any:
    return (then if bool(condition) else otherwise)(*operands)


def _loop(holds: Callable[..., Any], step: Callable[..., Any], carried: Any, more: Any = ()) -> Any:
    while bool(holds(*carried, *more)):
        carried = step(*carried, *more)
    return tuple(carried)


_HIGHER_ORDER: dict[str, Callable[..., Any]] = {
    "cond": _branch,
    "while_loop": _loop,
    "flex_attention": flexible_attention.run,
}


def _hide_from_compile(function: Callable[..., Any]) -> Callable[..., Any]:
    def control(self: DispatchMode, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.control(func, args, kwargs or {})

    apart, control_apart = _disable_dynamo(function), _disable_dynamo(control)

    def dispatch(self: DispatchMode, func: Any, *args: Any) -> Any:
        compiles = hook.get_eval_frame_callback() is not None
        if isinstance(func, HigherOrderOperator):
            return (control_apart if compiles else control)(self, func, *args)
        if func is _NUMBER_OF and not isinstance(args[1][0], Tensor):
            return args[1][0]  # a scripted graph computes with tensors of sizes, which modes are given as numbers
        return (apart if compiles else function)(self, func, *args)

    _skip(dispatch.__code__)
    return functools.wraps(function)(dispatch)


_NUMBER_OF = torch.ops.aten._local_scalar_dense.default


def _skip(code: types.CodeType) -> None:
    """Has torch.compile leave the frames of a function alone, as torch._dynamo.eval_frame.skip_code does."""
    skip = getattr(hook, "skip_code", None)  # of older versions
    if skip is not None:
        skip(code)
    else:
        action: Any = hook._FrameAction
        hook.set_code_exec_strategy(code, hook._FrameExecStrategy(action.SKIP, action.DEFAULT))
