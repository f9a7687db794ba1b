"""Modes that see every operator, without torch's compiler."""

from __future__ import annotations

import functools
import sys
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """A TorchDispatchMode that does not import torch.compile's modules, as torch's own does at the first operator.

    Torch keeps its compiler out of a mode's own code by a decorator that imports it; that takes longer than most
    exports. Where nobody has imported the compiler, it cannot run.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        plain = vars(cls).get("__torch_dispatch__")
        super().__init_subclass__(**kwargs)  # type: ignore[no-untyped-call,unused-ignore]
        if plain is not None:
            cls.__torch_dispatch__ = _without_compiler(plain, cls.__torch_dispatch__)  # type: ignore[method-assign]


def _without_compiler(plain: Any, protected: Any) -> Any:
    @functools.wraps(plain)
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        return (protected if "torch._dynamo" in sys.modules else plain)(*args, **kwargs)

    return dispatch
