"""Python's stack: one of its own for every module's forward while TorchScript traces, and the way back through them.

To note where an operator comes from, the tracer walks the whole stack at every operator that it records, which in a
deep model is most of what a trace costs. A greenlet's stack begins where the greenlet does, so in one of its own a
forward is walked no further than to itself.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from greenlet import getcurrent, greenlet
from torch import nn

_PACKAGE = "torch_onnx_compat."

_FORWARD = "_slow_forward"
"""The method of nn.Module through which torch calls forward while it traces, and only then."""


@contextmanager
def own_stacks(model: nn.Module) -> Iterator[None]:
    """While in force, a trace runs the forward of each module of a model on a stack of its own.

    Args:
        model: A copy that nobody else uses; its modules get an attribute and lose it again.
    """
    modules = [module for module in model.modules() if not isinstance(module, torch.jit.ScriptModule)]
    for module in modules:
        # A partial, so that a copy of the module which its parent makes in forward calls itself.
        vars(module)[_FORWARD] = partial(_on_own_stack, getattr(type(module), _FORWARD), module)
    try:
        yield
    finally:
        for module in modules:
            vars(module).pop(_FORWARD, None)


def _on_own_stack(function: Any, *args: Any, **kwargs: Any) -> Any:
    new = greenlet(function)
    new.gr_context = getcurrent().gr_context
    return new.switch(*args, **kwargs)


def frames() -> Iterator[types.FrameType]:
    """The frames of the caller and of its callers, the innermost first, across stacks."""
    frame: types.FrameType | None = sys._getframe(1)
    here: greenlet | None = getcurrent()
    while here is not None:
        while frame is not None:
            yield frame
            frame = frame.f_back
        here = here.parent
        frame = here.gr_frame if here is not None else None


def frames_of_model() -> Iterator[types.FrameType]:
    """The frames of the caller and of its callers up to the one that runs the model: who exports it is none of them."""
    own = globals()
    for frame in frames():
        if frame.f_code.co_name == "forward" and frame.f_globals.get("__name__") == _RUNNER:
            return
        if frame.f_globals is not own:
            yield frame


_RUNNER = "torch_onnx_compat.observe"
"""The module whose Subject.forward runs every model."""


def frame_of_model() -> types.FrameType | None:
    """The innermost frame of the model's that is not this package's."""
    return next((f for f in frames_of_model() if not str(f.f_globals.get("__name__")).startswith(_PACKAGE)), None)


def value_at(path: str, frame: types.FrameType) -> Any:
    """What a path such as ``self.tables`` is in a frame, or None; no code of the model's runs for it."""
    first, *rest = path.split(".")
    found = frame.f_locals.get(first, frame.f_globals.get(first))
    for name in rest:
        found = inspect.getattr_static(found, name, None)
    return found
