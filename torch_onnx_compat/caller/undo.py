"""What belongs to the caller and not to a twin, and is put back: random state, memory, class attributes, globals.

A twin's own modules, buffers and attributes are copies. Its parameters, its example inputs and all that its code finds
through classes, globals and closures are the caller's. A run may write to them; afterwards they are as they were.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.backends.internals.versions import set_versions, versions_of
from torch_onnx_compat.caller.reach import Reach
from torch_onnx_compat.caller.rebind import Functions
from torch_onnx_compat.caller.snapshot import Snapshot
from torch_onnx_compat.tracing import below_function_modes, is_tracing, record_as, recorded_value, without_tracing


@dataclass(frozen=True)
class Outside:
    """What of a twin is not its own.

    Attributes:
        reach: What the code can write to through classes, globals and closures.
        functions: The functions that were copied for the twin.
        owned: Parameters that are copies, as forward writes to them, each with the caller's, where that is known; the
            others share memory with the caller's.
    """

    reach: Reach | None = None
    functions: Functions = field(default_factory=list)
    owned: Sequence[tuple[Tensor, Tensor | None]] = ()


_twins: WeakKeyDictionary[nn.Module, Outside] = WeakKeyDictionary()


def assign(twin: nn.Module, outside: Outside) -> None:
    """Notes what of a twin is not its own."""
    _twins[twin] = outside


def reach_of(twin: nn.Module) -> Reach | None:
    """Where the code of a twin can write to outside of it; None where that is not known."""
    return _twins.get(twin, Outside()).reach


def assign_as(new: nn.Module, twin: nn.Module) -> None:
    """Notes the same of what takes a twin's place."""
    if twin in _twins:
        _twins[new] = _twins[twin]


@contextmanager
def undo_writes(twin: nn.Module, inputs: Sequence[Tensor] = ()) -> Iterator[Undo]:
    """Undoes what one run of a twin does outside of it: to its parameters' values, its inputs, and within its reach.

    Eager runs are watched for writes to parameters. Traces and torch.export are not: operators that are watched are
    not recorded. There, the parameters have copies to which an eager run before has written. A trace also puts the
    twin's own buffers and attributes back, since the file gets what they hold after it.

    Args:
        twin: The copy of a model; nothing is done outside of its parameters if nothing is known of it.
        inputs: The tensors that it runs on.
    """
    outside = _twins.get(twin, Outside())
    for copy, function in outside.functions:
        copy.__code__ = function.__code__  # a rewritten one, while it is in force
    if is_tracing():
        outside = _with_twin(outside, twin)
    undo = Undo(outside, tuple(twin.parameters()), inputs)
    if torch.compiler.is_compiling():  # on tensors without memory
        with undo:
            yield undo
    elif is_tracing():
        with undo.keeping(inputs):
            yield undo
    else:
        with undo.watching():
            yield undo


def _with_twin(outside: Outside, twin: nn.Module) -> Outside:
    """The same, and the twin itself within reach."""
    reach = outside.reach or Reach()
    return replace(outside, reach=replace(reach, objects={**reach.objects, id(twin): twin}))


@contextmanager
def undo_capture(twin: nn.Module) -> Iterator[None]:
    """Undoes what torch.export does to the constants within reach of a twin's code: it writes to them for real."""
    with Undo(_twins.get(twin, Outside()), (), ()).keeping():
        yield


# Around an export


@contextmanager
def put_back() -> Iterator[ExitStack]:
    """A stack of callbacks that run at the end, whatever line an interrupt falls on."""
    with ExitStack() as stack:
        try:
            yield stack
        finally:
            stack.close()  # an interrupt on this line is an error, of which the with statement takes care


@contextmanager
def restore_random_state() -> Iterator[None]:
    """Puts the random states of torch, numpy and Python back; those of accelerators where they are in use."""
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    with put_back() as stack:
        stack.callback(torch.set_rng_state, torch.get_rng_state())
        stack.callback(random.setstate, random.getstate())
        stack.callback(np.random.set_state, np.random.get_state())
        if devices is not None:
            stack.callback(torch.cuda.set_rng_state_all, devices)
        yield


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """While active, torch, numpy and Python draw the numbers of a seed; afterwards their states are as before."""
    with restore_random_state():
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        yield


def random_states() -> dict[str, Any]:
    """The random states of torch, Python and numpy, by name, to be compared with later ones."""
    kind, key, *place = np.random.get_state(legacy=True)
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "Python": random.getstate(),
        "numpy": (kind, np.asarray(key).tobytes(), *place),
    }


_CACHE_FOLDER = "TORCHINDUCTOR_CACHE_DIR"


@contextmanager
def without_cache_folder() -> Iterator[None]:
    """Removes the empty cache folder, and the variable, that torch makes when it first captures a model."""
    if _CACHE_FOLDER in os.environ:
        yield
        return
    before = set(Path(tempfile.gettempdir()).glob("torchinductor_*"))
    try:
        yield
    finally:
        made = os.environ.pop(_CACHE_FOLDER, None)
        if made is not None and Path(made) not in before:
            with suppress(OSError):  # something lies in it
                os.rmdir(made)


# Around a run


class Undo(AbstractContextManager["Undo"]):
    """Undoes what one run of a model's code does outside of its twin.

    Args:
        outside: What of the twin is not its own.
        parameters: The twin's parameters.
        inputs: What the run is made on.
    """

    def __init__(self, outside: Outside, parameters: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        reach = outside.reach
        self._outside = outside
        self._snapshot = Snapshot.of(reach) if reach is not None else None
        with below_function_modes():
            self._others = [t for t in self._snapshot.tensors if _is_counted(t)] if self._snapshot is not None else []
            self._versions = versions_of(self._others)
        self._memory = {key for tensor in (*parameters, *inputs, *self._others) for key in [memory_of(tensor)] if key}
        self._inputs = inputs
        self._kept: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}

    def __exit__(self, *_: Any) -> None:
        """Undoes what was done since the start of the run."""
        if self._snapshot is not None:
            self._snapshot.put_back()
        if self._kept:
            with without_tracing(), below_function_modes():
                for storage, before in self._kept.values():
                    storage.copy_(before)
                set_versions(self._others, self._versions)

    def change(self) -> str:
        """What the run has changed so far that is not its twin's own, and that a next call sees; empty if nothing."""
        named = self._snapshot.change() if self._snapshot is not None else ""
        is_written = bool(set(self._kept) - {memory_of(tensor) for tensor in self._inputs})
        return named or ("a parameter, or a tensor outside of the model" if is_written else "")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keeps the memory that is about to be written to while a run is made, and undoes all of it afterwards."""
        try:
            with self, WriteWatch(self._memory, self._keep) if self._memory else nullcontext():
                yield
        finally:
            if self._outside.reach is not None:
                self._outside.reach.written |= set(self._kept)

    @contextmanager
    def keeping(self, inputs: Sequence[Tensor] = ()) -> Iterator[None]:
        """Keeps the inputs and the tensors within reach; undoes afterwards what is written to them and to copies."""
        with without_tracing(), below_function_modes():
            constants = (tensor for tensor in self._others if not isinstance(tensor, nn.Parameter))
            owned = self._outside.owned
            pairs = [
                (copy, original) for copy, original in owned if original is not None and _are_alike(copy, original)
            ]
            paired = {id(copy) for copy, _ in pairs}
            for tensor in (*inputs, *constants, *(copy for copy, _ in owned if id(copy) not in paired)):
                self._keep(tensor)
        try:
            with self:
                yield
        finally:
            with without_tracing(), below_function_modes():
                for copy, original in pairs:
                    if not torch.equal(copy, original):  # which takes less time than to keep another copy
                        copy.data.copy_(original)

    def separate(self, results: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The results of the run, copied where they lie in memory that is going to be put back."""
        memory = {*self._kept, *(memory_of(copy) for copy, _ in self._outside.owned)}
        return tuple(_copy(r) if memory_of(r) in memory else r for r in results) if memory else results

    def _keep(self, tensor: Tensor) -> None:
        key = memory_of(tensor)
        if key in self._memory and key not in self._kept:
            storage = tensor.untyped_storage()
            self._kept[key] = (storage, storage.clone())


def _are_alike(copy: Tensor, original: Tensor) -> bool:
    """Whether a copy of a parameter can be compared with the caller's; a twin may have been brought to another type."""
    return copy.layout is torch.strided and (copy.dtype, copy.shape, copy.device) == (
        original.dtype,
        original.shape,
        original.device,
    )


def _is_counted(tensor: Tensor) -> bool:
    """Whether torch counts the writes to a tensor."""
    return type(tensor) in (Tensor, nn.Parameter) and not tensor.is_inference()


def memory_of(tensor: Tensor) -> int:
    """The address of the memory that a tensor lies in; 0 if it has none."""
    with below_function_modes():
        try:
            return tensor.untyped_storage().data_ptr()
        except (RuntimeError, NotImplementedError):  # sparse tensors, and stand-ins for tensors
            return 0


def _copy(tensor: Tensor) -> Tensor:
    """A copy that stands for the same value of a trace."""
    with without_tracing(), below_function_modes():
        copy = tensor.clone()
    if is_tracing():
        record_as(copy, recorded_value(tensor))
    return copy


class WriteWatch(DispatchMode):
    """Tells of every operator that is about to write to watched memory."""

    def __init__(self, memory: set[int], tell: Callable[[Tensor], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self._memory, self._tell = memory, tell

    def control(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Passes a higher-order operator on: a capture keeps it."""
        return func(*args, **kwargs)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        written = _written_arguments(func)
        if written:
            for position, name in written:
                value = args[position] if position < len(args) else kwargs.get(name)
                for tensor in value if isinstance(value, (list, tuple)) else (value,):
                    if isinstance(tensor, Tensor) and memory_of(tensor) in self._memory:
                        self._tell(tensor)
        return func(*args, **kwargs)


_written: dict[Any, tuple[tuple[int, str], ...]] = {}


def _written_arguments(func: Any) -> tuple[tuple[int, str], ...]:
    """Positions and names of the arguments that an operator writes to."""
    found = _written.get(func)
    if found is None:
        schema = getattr(func, "_schema", None)  # operators that take functions have none
        arguments = schema.arguments if schema is not None else ()
        found = _written[func] = tuple((i, a.name) for i, a in enumerate(arguments) if _is_written(a))
    return found


def _is_written(argument: Any) -> bool:
    """Whether the schema says so; those of the older normalisations do not say it of the statistics."""
    declared = argument.alias_info is not None and argument.alias_info.is_write
    return declared or argument.name in ("running_mean", "running_var")


def is_training(model: nn.Module) -> bool:
    """Whether a part of the model is in train mode; a frozen script has no mode."""
    return any(getattr(module, "training", False) for module in model.modules())


def changes_its_weight(module: nn.Module) -> bool:
    """Whether forward of one of torch's modules writes to the module's parameter."""
    return isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.max_norm is not None
