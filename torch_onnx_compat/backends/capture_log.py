"""What torch.export does not see while it captures: texts made of values, and questions that it has no form for.

The capture runs on tensors without values, so most decisions on values are errors there. A text of a tensor is none: it
is the text of a tensor without values. And torch.equal, .data and deepcopy are errors although they have a form.
"""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Iterator
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from torch_onnx_compat.backends.caches import is_for_a_cache
from torch_onnx_compat.backends.checks import (
    Place,
    is_caught,
    is_caught_on_stack,
    is_guard,
    is_key_of_cache,
)
from torch_onnx_compat.backends.conditions import as_condition, has_bool_answer
from torch_onnx_compat.backends.failures import may_fail_for_sizes, may_fail_for_values
from torch_onnx_compat.backends.internals import expressions, symbolic
from torch_onnx_compat.backends.keys import containers_at, holds_numbers
from torch_onnx_compat.backends.messages import is_message
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.stack import frames_of_model
from torch_onnx_compat.watch import Watcher

_TEXTS = frozenset({Tensor.__repr__, Tensor.__format__})

_UNKNOWN = "?"
"""The text, in a message, of what has no value yet."""

_ON_THE_WAY = (
    "torch",
    "torch._export.non_strict_utils",
    "torch._tensor",
    "torch.fx.experimental.proxy_tensor",
    "torch.fx.experimental.sym_node",
    "torch.overrides",
    "torch_onnx_compat.watch",
    "torch_onnx_compat.backends.capture_log",
    "torch_onnx_compat.backends.subclasses",
    "torch_onnx_compat.backends.internals.number_watchers",
    *(f"torch_onnx_compat.control_flow.run.{name}" for name in ("aliases", "callees", "factories", "iterables")),
)
"""Modules whose frames stand between a model's statement and the mode; the last ones call functions for it."""


@functools.cache
def _files_on_the_way() -> frozenset[str]:
    """The files of those modules, and of all watchers; one that has moved is an ImportError, and no frame missed."""
    return frozenset(str(importlib.import_module(name).__file__) for name in (*_ON_THE_WAY, *Watcher.modules))


class CaptureLog(TorchFunctionMode):
    """Records the texts that a model makes of tensors, and answers its questions with tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, None] = {}
        """Places of the model's code where the text of a tensor decides."""
        self.failures: dict[str, None] = {}
        """Places where values decide whether a statement fails, and the model catches the error."""
        self.lost: dict[str, None] = {}
        """Places where what is computed of a value is taken to be the same for all values."""
        self.floats: dict[tuple[Any, str], None] = {}
        """Fractions made of sizes that the program holds as the example's, and the places of the model's code."""
        self.whole: dict[tuple[Any, Any, str], None] = {}
        """Whole numbers of sizes of which Python makes plain ones, what these are, and the places."""
        self.table_places: set[str] = set()
        """Places that look a size up where numbers may be found."""
        self._keys: set[Any] = set()
        """The sizes that the model has looked up."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _TEXTS:
            text = self.note_text()
            if text is not None:
                return text
        elif has_bool_answer(func):
            answer = as_condition(func, args, kwargs)
            if answer is not None:
                return answer
        elif func == Tensor.data.__get__:  # type: ignore[attr-defined]
            return args[0].detach()
        elif func is Tensor.__deepcopy__:
            return args[0].clone()
        self._note_failure(func, (*args, *kwargs.values()))
        return func(*args, **kwargs)

    def _note_failure(self, func: Any, args: tuple[Any, ...]) -> None:
        """Notes a call that may fail for other values, where the model catches the error; here nothing has values."""
        by_value = may_fail_for_values(func, args)
        if not by_value and not may_fail_for_sizes(func, args):
            return
        if is_caught_on_stack(frames_of_model()):
            sizes = [size for tensor in tree.tensors_in(args) for size in tensor.shape]
            if by_value or any(map(symbolic.is_of_data, sizes)):
                self._add_failure()

    def _add_failure(self) -> None:
        caller = next(f for f in frames_of_model() if is_user_file(f.f_code.co_filename))
        self.failures[short(caller.f_code.co_filename, caller.f_lineno)] = None

    def note_text(self, number: Any = None) -> str | None:
        """Notes that the model makes a text of values, or of a size, other than for a message.

        Args:
            number: A symbolic number; None for a tensor.

        Returns:
            The text of what is only told: nothing here has the value that it asks for. None for torch's text.
        """
        outside = list(_outside_of_texts())
        if not outside or not is_user_file(outside[0].f_code.co_filename):
            return None  # torch's own, for a log or an error
        callers = [Place.of(frame) for frame in outside if is_user_file(frame.f_code.co_filename)]
        is_size = number is not None and not symbolic.is_of_data(number)
        is_told = is_message(callers[0], may_be_tested=False)
        if is_told and (is_size or not any(map(is_caught, callers))):
            return _UNKNOWN
        if is_size and is_key_of_cache(callers[0]):
            return None  # a symbol's text is no key yet, so what is stored under it is computed in the capture
        if not is_guard(callers[0]) or any(map(is_caught, callers)):
            self.texts[short(callers[0].filename, callers[0].line)] = None
        return None

    def key_of(self, size: Any, frame: types.FrameType) -> int | None:
        """The hash of a size that code looks up; None where nobody can tell what it may be found as.

        A size is found where it was stored, but under no number: which of these it may be is a question about sizes.
        Checks make sets of sizes, where each is compared with the others. torch compares the attributes of modules
        afterwards, and hashes the model's keys once more.
        """
        if is_for_a_cache():
            return object.__hash__(size)
        key = size.node.expr
        if is_user_file(frame.f_code.co_filename) and not symbolic.is_of_data(size):
            containers = containers_at(frame)
            if containers is None:
                return hash(size.node.hint) if is_guard(Place.of(frame)) else None
            if any(map(holds_numbers, containers)):
                self.table_places.add(short(frame.f_code.co_filename, frame.f_lineno))
            self._keys.add(key)
        return hash(key) if key in self._keys else None

    def note_lost(self) -> None:
        """Notes that a number in floating point is computed of a value, and taken to be the same for all values."""
        caller = next((f for f in frames_of_model() if is_user_file(f.f_code.co_filename)), None)
        if caller is not None and not is_guard(Place.of(caller)):
            self.lost[short(caller.f_code.co_filename, caller.f_lineno)] = None

    def note_number(self, kind: type, expression: Any, number: Any) -> bool:
        """Notes that a number made of sizes becomes the example's; says whether it is only told."""
        caller = next((f for f in frames_of_model() if is_user_file(f.f_code.co_filename)), None)
        if caller is None:
            return False
        place = short(caller.f_code.co_filename, caller.f_lineno)
        asking = next(_outside_of_texts(), None)
        if asking is caller and is_message(Place.of(caller)) and not is_caught_on_stack(frames_of_model()):
            return True
        if kind is float:
            self.floats[expression, place] = None
        elif symbolic.is_asked_by_python(frames_of_model()) and not expressions.data_symbols(expression):
            self.whole[expression, number, place] = None
        return False


def _outside_of_texts() -> Iterator[types.FrameType]:
    """The model's stack, but for the code that makes numbers and texts, or calls a function for rewritten code."""
    return (f for f in frames_of_model() if f.f_code.co_filename not in _files_on_the_way())
