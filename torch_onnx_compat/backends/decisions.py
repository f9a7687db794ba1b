"""Finds the Python decisions that a TorchScript trace freezes: bool(), int(), item(), len() … of a traced tensor.

`trace_origins` finds what each value is computed from.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.caches import is_for_a_cache
from torch_onnx_compat.backends.caught import is_check_caught
from torch_onnx_compat.backends.checks import Place, is_caught_on_stack, is_guard
from torch_onnx_compat.backends.conditions import as_condition, has_bool_answer
from torch_onnx_compat.backends.data_sizes import DataSizes, selects
from torch_onnx_compat.backends.failures import may_fail_for_sizes, may_fail_for_values
from torch_onnx_compat.backends.keys import containers_at, holds_numbers
from torch_onnx_compat.backends.messages import is_message, leads_to_error
from torch_onnx_compat.backends.trace_numbers import METHODS, is_settled
from torch_onnx_compat.backends.trace_origins import asks_for_emptiness, find_origins, identity
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.stack import frames_of_model
from torch_onnx_compat.tracing import below_function_modes, is_tracing, recorded_value, without_tracing
from torch_onnx_compat.watch import Watcher

_CONVERSIONS = {
    Tensor.__bool__: "bool()",
    Tensor.__int__: "int()",
    Tensor.__float__: "float()",
    Tensor.__index__: "an index",
    Tensor.__len__: "len()",
    Tensor.__contains__: "in",
    Tensor.item: "item()",
    Tensor.tolist: "tolist()",
    Tensor.numpy: "numpy()",
    Tensor.__array__: "numpy()",
}

_METADATA = frozenset(
    name
    for names in (
        "type dtype device layout requires_grad qscheme element_size itemsize nbytes data_ptr",
        "dim ndim ndimension shape size numel nelement stride storage_offset broadcast_tensors broadcast_shapes",
        "get_device __dlpack_device__ result_type can_cast promote_types q_scale q_zero_point q_per_channel_axis",
        "grad grad_fn retains_grad output_nr register_hook share_memory_ _version _base _backward_hooks",
        "_parse_to name names __class__ __dir__ __hash__ __eq__ __ne__ __setitem__ __delitem__",
    )
    for name in names.split()
)
"""Functions whose result no value of a tensor decides; those called ``is_...`` are among them, but is_nonzero."""

_LITERALS = frozenset({torch.tensor, torch.as_tensor})
"""Functions that copy the values of tensors in a list into a constant."""

_UNPACKING: dict[Any, int] = {
    **dict.fromkeys((Tensor.__iter__, Tensor.unbind, torch.unbind), 1),
    **dict.fromkeys((Tensor.split, torch.split, Tensor.chunk, torch.chunk), 2),
}
"""Functions that split a tensor into a tuple, with the position of the axis among their arguments."""

_NUMBERS = ("split_size", "split_size_or_sections", "chunks")
"""Their keywords for the length of a piece, or the number of pieces."""

LEGACY_CONSTRUCTOR = "torch.Tensor()"
"""The conversion of a constructor that took numbers for sizes; traces at other sizes tell these from constants."""

COPIES = frozenset({"numpy()", "tolist()", "torch.tensor()"})
"""Conversions that take the values out of torch, where no rewrite of control flow follows them."""

KEY = "a key"
"""The conversion of a number that is hashed, other than for a cache or in a container whose keys are known."""

_RUN_TIME = "torch_onnx_compat.control_flow.run."
"""Where the functions are that rewritten code calls for the model's operators and for Python's functions."""

ITERATION = "iteration"
"""The conversion of an axis into a tuple of its pieces."""

LAYOUT_READS: dict[Any, str] = {
    Tensor.stride: "stride()",
    Tensor.storage_offset: "storage_offset()",
    Tensor.nbytes.__get__: "nbytes",  # type: ignore[attr-defined]
}
"""Functions that tell how a tensor lies in memory: numbers that follow from sizes, and that a trace does not record."""

_READS = frozenset({Tensor.size, Tensor.numel, torch.numel, Tensor.nelement, Tensor.shape.__get__})  # type: ignore[attr-defined]
"""Functions that read sizes."""


@dataclass(frozen=True)
class Decision:
    """A conversion of a traced tensor to a Python value."""

    place: str
    """File and line of the model's own code, ``models/net.py:41``."""
    conversion: str
    from_data: bool
    """Whether its value depends on the data of an input."""
    sizes: tuple[int, ...]
    """The sizes that its value was computed from."""
    statements: tuple[Place, ...]
    """The statement that converts, and the model's own statement below it on the stack."""
    callers: tuple[Place, ...] = ()
    """All statements of the model's own code on the stack, the innermost first."""
    is_of_entry: bool = False
    """Whether the code of an entry takes it, which the model's statement calls."""
    is_taken: bool = False
    """Whether C++ took the number, for an argument that may well be symbolic elsewhere: the original need not ask."""
    has_raised: bool = False
    """Whether the model raises after it on the example, in a branch that is left out of the file for that."""

    @property
    def guard(self) -> bool:
        """Whether it only decides what is said, or if an error is raised that nobody catches: that changes no result.

        Slow: parses the source.
        """
        is_told = any(map(is_guard, self.statements)) or any(map(is_message, self.statements))
        return is_told and not self.has_raised and not is_check_caught(self.statements, self.callers)

    def __str__(self) -> str:
        what = "the values of the inputs" if self.from_data else "a size"
        return f"{self.place}: {self.conversion} of {what}"


class DecisionLog(Watcher):
    """Records decisions while a model is traced.

    Args:
        inputs: How many of the trace's inputs are inputs of the model; the others are parameters.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.decisions: list[Decision] = []
        self.inputs = inputs
        self.data_sizes = DataSizes(inputs)
        self._constant_places: set[str] = set()
        self.table_places: set[str] = set()
        """Places where sizes are looked up in containers that hold numbers."""
        self._read: dict[int, int] = {}
        self.has_selections = False
        """Whether values decide the size of anything in the trace."""
        self._depth = 0
        self._methods = ExitStack()
        self._known_empty: set[int] = set()
        """Values of ``aten::empty`` that torch.empty made, or that were looked at."""

    def __enter__(self) -> Any:
        # What works on a size in eager torch, where sizes are numbers; in a trace they are tensors, which lack it.
        try:
            if not self._depth:
                for name, method in ({"__round__": _round_size} | METHODS).items():
                    self._methods.enter_context(internals.add_tensor_method(name, method))
                self._methods.enter_context(internals.add_tensor_method("__hash__", lambda tensor: self._hash(tensor)))
            self._depth += 1
            return super().__enter__()  # type: ignore[no-untyped-call,unused-ignore]
        except BaseException:  # an interrupt between them: Tensor would keep the methods
            self._methods.close()
            raise

    def __exit__(self, *error: Any) -> None:
        try:
            self._depth -= 1
            if not self._depth:
                self._methods.close()
        finally:
            super().__exit__(*error)  # type: ignore[no-untyped-call,unused-ignore]

    def end_raised(self, start: int) -> None:
        """Says that the code which took the decisions from a number on has raised, and that its error is dropped.

        What the ``raise`` itself took, and the block that ends with it, has decided what the error says, and is
        forgotten. Whatever else the code took has decided that it raises, a check's condition too.
        """
        later = [d for d in self.decisions[start:] if not any(map(leads_to_error, d.callers[:1]))]
        self.decisions[start:] = [replace(decision, has_raised=True) for decision in later]

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call converts a tensor, or reads sizes, or yields what a trace loses, or is given a number."""
        if func in _WATCHED or has_bool_answer(func):
            return True
        return is_tracing() and (bool(_numbers_in(args, kwargs)) or any(map(self._is_of_legacy, _tensors_in(args))))

    def check(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """Records every other call that makes a Python value of a tensor; the list is one of what does not."""
        if is_tracing():
            self.has_selections = self.has_selections or selects(func, args)
            self.note_failure(func, args, kwargs)
            self._record_values(func, args, kwargs, result)
        return result

    def _record_values(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if isinstance(result, Tensor) or result is None or is_metadata(func):
            return
        if tree.tensors_in(result) or (type(result) in (tuple, list) and not result):
            return  # tensors, which the trace knows
        for tensor in _tensors_in([*args, *kwargs.values()]):
            self._record(tensor, f"{getattr(func, '__name__', func)}()")

    def note_failure(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Records a call that fails, or may fail for other values, where the model catches the error."""
        args = (*args, *kwargs.values())
        by_value, by_size = may_fail_for_values(func, args), may_fail_for_sizes(func, args)
        if not (by_value or by_size) or not is_tracing() or not is_caught_on_stack(frames_of_model()):
            return
        for tensor in tree.tensors_in(args):
            from_values, _, from_sizes = find_origins(tensor, self.inputs, self.data_sizes)
            value = recorded_value(tensor)
            if (by_value and (from_values or from_sizes)) or (by_size and self.data_sizes.dims(value)):
                self._add(f"an error of {getattr(func, '__name__', func)}()", True, ())
                return

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Records a conversion, makes the call, and keeps the sizes that it reads."""
        if not is_tracing():
            return self.pass_on(func, args, kwargs)
        answer = as_condition(func, args, kwargs) if has_bool_answer(func) else None
        if answer is not None:
            return answer
        for tensor in filter(self._is_of_legacy, _tensors_in(args)):
            self._record_legacy(tensor)
        self._record_call(func, args, kwargs)
        uses = [(number, _uses(number)) for number in _numbers_in(args, kwargs)]
        result = self.pass_on(func, args, kwargs)
        if uses and func not in _CONVERSIONS:
            self.check(func, args, kwargs, result)
            self._record_unused(func, uses, result)
        if func is torch.empty:
            self._known_empty.add(identity(result))
        self._note_reads(func, result)
        return result

    def _note_reads(self, func: Any, result: Any) -> None:
        """Keeps the sizes that a call reads; records what the model's own code reads of how a tensor lies in memory."""
        if isinstance(result, torch.Size):
            self._remember(result)
        elif isinstance(result, Tensor) and func in _READS:
            self._remember((result,))
        elif func in LAYOUT_READS and any(is_user_file(place.filename) for place in _statements()[1][:1]):
            self._add(LAYOUT_READS[func], False, result if isinstance(result, tuple) else (result,))

    def _record_unused(self, func: Any, uses: list[tuple[Tensor, tuple[Any, int]]], result: Any) -> None:
        """Records the numbers that C++ took from tensors: nothing that the call added to the trace reads them."""
        if self._copy_of(func) is not None or is_metadata(func) or not tree.tensors_in(result):
            return  # what torch's Python calls is looked at itself
        if getattr(func, "namespace", "") == "torch_onnx_compat":
            return  # this package's own operators get what varies as a tensor beside the number
        unused = [(number, value) for number, (value, count) in uses if len(value.uses()) == count]
        made = set(map(identity, tree.tensors_in(result))) if unused else set()
        for number, value in unused:
            if value.unique() not in made:  # conj() gives a real number back as it is
                self._record(number, f"{getattr(func, '__name__', func)}()", is_taken=True)

    def _record_call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        conversion = _CONVERSIONS.get(func)
        if conversion is not None and args and isinstance(args[0], Tensor):
            self._record(args[0], conversion)
        elif func in _LITERALS and args:
            for tensor in _tensors_in(args[0]):  # torch.tensor converts them in C++, where no mode sees it
                self._record(tensor, "torch.tensor()")
        elif func in _UNPACKING:
            self._record_pieces(func, args, kwargs)

    def _record_pieces(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensor: Any = args[0] if args else kwargs.get("input", kwargs.get("tensor"))
        place = _UNPACKING[func]
        dim = kwargs.get("dim", args[place] if len(args) > place else 0)
        with without_tracing():
            size = int(tensor.shape[dim])
        given = next((kwargs[name] for name in _NUMBERS if name in kwargs), args[1] if len(args) > 1 else None)
        if place > 1 and isinstance(given, (list, tuple)):  # then there are as many pieces as sections
            self._unpack(size, len(given), False)
            return
        dims = self.data_sizes.dims(recorded_value(tensor))
        pieces = size if place == 1 else _count_pieces(func, given, size)
        self._unpack(size, pieces, dim % max(tensor.dim(), 1) in dims)

    def _hash(self, tensor: Tensor) -> int:
        """The hash of a tensor; of one that stands for a number, its use as a key may be a decision.

        A dictionary compares keys by the hash first, and the hash of a tensor is its identity: nothing is ever found.
        Where it is known what a size is looked up in, the questions about sizes tell. Elsewhere it has the hash of its
        number, and is compared: checks make a set of sizes.
        """
        caller = sys._getframe(2)  # of the method's lambda
        if is_tracing() and is_user_file(_acting_for(caller).f_code.co_filename):
            with below_function_modes():
                is_number, is_whole = not tensor.dim(), not tensor.is_floating_point()
            if is_number:
                from_values, leaves, from_sizes = find_origins(tensor, self.inputs, self.data_sizes)
                if from_values or from_sizes:
                    self._add(KEY, True, ())
                elif leaves and not is_for_a_cache():
                    is_known = is_whole and is_user_file(caller.f_code.co_filename)
                    containers = containers_at(caller) if is_known else None
                    if containers is not None:
                        self.note_constant()
                        self.table_places |= {_statements()[0]} if any(map(holds_numbers, containers)) else set()
                        return id(tensor)
                    self._add(KEY, False, tuple(map(self.value_of, leaves)))
                    with without_tracing():
                        return hash(tensor.item())
        return id(tensor)

    def _is_of_legacy(self, tensor: Tensor) -> bool:
        """Whether ``torch.Tensor(n, m)`` or its kind made it, of which no function mode hears."""
        if type(tensor) is not Tensor or tensor.requires_grad or tensor.layout is not torch.strided:
            return False  # a parameter in a closure has no value in the trace, nor has a sparse buffer
        value = recorded_value(tensor)
        return value.node().kind() == "aten::empty" and value.unique() not in self._known_empty

    def _record_legacy(self, tensor: Tensor) -> None:
        """Records the sizes, once, if they are constants of the trace."""
        self._known_empty.add(identity(tensor))
        given = next(recorded_value(tensor).node().inputs())
        fixed = given.toIValue()
        sizes = [value.toIValue() for value in given.node().inputs()] if fixed is None else fixed
        if None not in sizes:
            self._add(LEGACY_CONSTRUCTOR, False, tuple(sizes))

    def _unpack(self, size: int, pieces: int, from_data: bool) -> None:
        """Notes that an axis is split into a tuple, whose length the trace fixes."""
        self._add(ITERATION, from_data, (pieces,))

    @property
    def constant_places(self) -> frozenset[str]:
        """Places of decisions that are the same for all values, as far as the trace tells."""
        return frozenset(self._constant_places - {decision.place for decision in self.decisions if decision.from_data})

    def value_of(self, size: int) -> int:
        """The number that a size had when it was read; -1 if it was not seen."""
        return self._read.get(size, -1)

    def _remember(self, sizes: Iterable[Any]) -> None:
        """Keeps the numbers that sizes had when they were read."""
        for size in sizes:
            if isinstance(size, Tensor):
                key = identity(size)
                with without_tracing():
                    self._read[key] = int(size)

    def note_constant(self) -> None:
        """Notes that the model's statement takes a decision that is the same for all values, as far as is known."""
        self._constant_places.add(_statements()[0])

    def _record(self, tensor: Tensor, conversion: str, *, is_taken: bool = False) -> None:
        if conversion == "len()":
            with without_tracing():
                size = int(tensor.shape[0])
            self._add(conversion, 0 in self.data_sizes.dims(recorded_value(tensor)), (size,))
            return
        from_values, leaves, from_sizes = find_origins(tensor, self.inputs, self.data_sizes)
        # This package's own code knows which sizes vary; by its shapes alone a trace cannot tell.
        from_data = from_values or (from_sizes and not _is_in_this_package())
        harmless = asks_for_emptiness(tensor, is_condition=conversion == "bool()")
        if (from_data or leaves) and not harmless and not is_settled(tensor):
            self._add(conversion, from_data, tuple(map(self.value_of, leaves)), is_taken=is_taken)
        else:
            self.note_constant()

    def _add(self, conversion: str, from_data: bool, sizes: tuple[int, ...], *, is_taken: bool = False) -> None:
        place, statements, callers = _statements()
        if not from_data:
            self._constant_places.add(place)
        decision = Decision(place, conversion, from_data, sizes, statements, callers, _is_of_entry(), is_taken)
        self.decisions.append(decision)


def _acting_for(frame: types.FrameType) -> types.FrameType:
    """The frame for which one runs: of a hash that Python has written, in no file; of what rewritten code calls."""
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith("<") or str(frame.f_globals.get("__name__")).startswith(_RUN_TIME)
    ):
        frame = frame.f_back
    return frame


def _round_size(tensor: Tensor, digits: int | None = None) -> int | float:
    return round(tensor.item(), digits)


def _numbers_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors of shape () among a call's arguments, and in its lists, also those of an index: ``x[:, [i, j]]``."""
    found: list[Tensor] = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, Tensor):
            found.append(value)
        elif type(value) in (tuple, list, torch.Size):
            found += _tensors_in(value)
    if not found:
        return found
    with below_function_modes():
        return [tensor for tensor in found if not tensor.dim()]


def _count_pieces(func: Any, given: Any, size: int) -> int:
    """How many pieces torch.split makes of an axis, given their length, or torch.chunk, given their number."""
    with without_tracing(), below_function_modes():
        number = max(int(given), 1)
    length = max(-(-size // number), 1) if func in (Tensor.chunk, torch.chunk) else number
    return -(-size // length)


def _uses(number: Tensor) -> tuple[Any, int]:
    value = recorded_value(number)
    return value, len(value.uses())


def _tensors_in(data: Any) -> Iterator[Tensor]:
    for item in data if isinstance(data, (list, tuple)) else ():
        if isinstance(item, Tensor):
            yield item
        else:
            yield from _tensors_in(item)


_WATCHED = frozenset({*_CONVERSIONS, *_READS, *_LITERALS, *_UNPACKING, *LAYOUT_READS, torch.empty})


@functools.cache
def is_metadata(func: Any) -> bool:
    """Whether a function of torch tells nothing of a tensor's values."""
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        name = getattr(getattr(func, "__self__", None), "__name__", "")
    return name in _METADATA or (name.startswith(("is_", "_is_", "has_")) and name != "is_nonzero")


def _is_in_this_package() -> bool:
    """Whether the code that converts is an entry's, or what entries are made of."""
    names = (str(frame.f_globals.get("__name__", "")) for frame in frames_of_model())
    name = next((name for name in names if name not in Watcher.modules), "")
    return name.startswith("torch_onnx_compat.") and not name.startswith("torch_onnx_compat.control_flow.")


def _is_of_entry() -> bool:
    """Whether there is code of this package on the stack between a conversion and the model's own statement."""
    for frame in frames_of_model():
        if is_user_file(frame.f_code.co_filename):
            return False
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("torch_onnx_compat.") and name not in Watcher.modules:
            return True
    return False


def _statements() -> tuple[str, tuple[Place, ...], tuple[Place, ...]]:
    """The model's statement by name; the converting statement, which may be torch's, and the model's; all callers."""
    converting: Place | None = None
    callers: list[Place] = []
    for frame in frames_of_model():
        if converting is None and frame.f_globals.get("__name__") not in Watcher.modules:
            converting = Place.of(frame)
        if is_user_file(frame.f_code.co_filename):
            callers.append(Place.of(frame))
    if converting is None:
        return "unknown place", (), tuple(callers)
    models = callers[0] if callers else converting
    return short(models.filename, models.line), (converting, models), tuple(callers)
