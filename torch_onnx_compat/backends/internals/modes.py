"""Modes that see every operator, and wake torch.compile for none of them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from torch._C._dynamo import eval_frame as hook
from torch._compile import _disable_dynamo
from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """A TorchDispatchMode, for all modes of this package.

    torch runs a mode's function where torch.compile leaves it alone, and imports torch._dynamo for that, which takes
    more than a second. While nothing compiles, which the interpreter's hook for frames tells, the function is called as
    it is.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)  # type: ignore[no-untyped-call,unused-ignore]
        own = vars(cls).get("__torch_dispatch__")
        if own is not None:
            cls.__torch_dispatch__ = _hide_from_compile(own)  # type: ignore[method-assign]


def _hide_from_compile(function: Callable[..., Any]) -> Callable[..., Any]:
    apart = _disable_dynamo(function)

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        return (function if hook.get_eval_frame_callback() is None else apart)(*args, **kwargs)

    _skip(dispatch.__code__)
    return functools.wraps(function)(dispatch)


def _skip(code: types.CodeType) -> None:
    """Has torch.compile leave the frames of a function alone, as torch._dynamo.eval_frame.skip_code does."""
    skip = getattr(hook, "skip_code", None)  # of older versions
    if skip is not None:
        skip(code)
    else:
        action: Any = hook._FrameAction
        hook.set_code_exec_strategy(code, hook._FrameExecStrategy(action.SKIP, action.DEFAULT))
