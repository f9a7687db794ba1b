"""The copy of a model that is patched and exported: the twin.

Parameters share their storage with the caller's, buffers and other tensors are copied, so that nothing done to the
twin, a forward pass included, is seen by the caller.
"""

from __future__ import annotations

import copy
import copyreg
import functools
import io
import threading
from collections import OrderedDict
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from torch_onnx_compat.backends.internals.custom_operators import CustomOpDef
from torch_onnx_compat.caller import memory, weak_references
from torch_onnx_compat.caller.copiers import CopyAnew, copying_by, with_items
from torch_onnx_compat.caller.memory import Memory, memory_in, put_into
from torch_onnx_compat.caller.reach import Reach, find_reach
from torch_onnx_compat.caller.rebind import rebind_functions
from torch_onnx_compat.caller.undo import Outside, assign, changes_its_weight, memory_of
from torch_onnx_compat.caller.weak_references import WeakReferences
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.garbage import pause_collection
from torch_onnx_compat.tracing import below_function_modes

_WRAPPERS = {
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "OptimizedModule": "_orig_mod",
    "ultralytics.engine.model.Model": "model",
}
"""By class the attribute that holds the model; ultralytics' stands for its subclasses too. YOLO.eval() would train."""


def twin_of(model: nn.Module, training: bool | None = False, reach: Reach | None = None) -> nn.Module:
    """A structural copy of a module that shares parameter storage and nothing else.

    Args:
        model: The module.
        training: The copy's mode; None keeps the modes that the modules are in.
        reach: What the model's code can write to outside of the copy; looked up by default.

    Raises:
        CompatError: Something in the module cannot be copied; the message says where it is.
    """
    reach = find_reach(model) if reach is None else reach
    copied, references = Memory(reach.written), WeakReferences()
    while True:
        try:
            twin = _twin_of(model, reach, copied, references)
            break
        except CopyAnew:  # they know by now what belongs together
            copied = copied.anew()
    for module in twin.modules():
        if getattr(module, "_compiled_call_impl", None) is not None:
            module._compiled_call_impl = None
    if training is not None:
        twin.train(training)  # some models' own returns nothing
    return twin


def _twin_of(model: nn.Module, reach: Reach, copied: Memory, references: WeakReferences) -> nn.Module:
    """The same, in the modes that the modules are in.

    Raises:
        CopyAnew: What was copied by itself belongs to something else.
    """
    memo: dict[int, Any] = {}
    put_into(memo, copied)
    references.put_into(memo)
    _take_parameters(model, memo)
    shared = {memory_of(p) for p in model.parameters()}
    wrapped = [m for m in model.modules() if _attribute_of_wrapped(type(m)) is not None]
    try:
        with _CopyTensors(), _share_uncopyable(), copying_by(_COPIERS), pause_collection():
            for wrapper in reversed(wrapped):  # inner ones first, so that the outer copy finds them in the memo
                memo[id(wrapper)] = _copy(without_wrappers(wrapper), memo)
            twin: nn.Module = _copy(model, memo)
            _separate(twin, {id(m) for m in model.modules()}, memo)
            functions = rebind_functions(twin, memo, lambda other: _copy_other(other, memo))
            references.check(memo)
    except (CompatError, CopyAnew):
        raise
    except Exception as error:
        raise _uncopyable(model, memo, error) from error
    originals = {id(memo[id(p)]): p.data for p in model.parameters() if id(p) in memo}
    owned = [
        (p, originals.get(id(p))) for p in twin.parameters() if memory_of(p) not in shared and not p.is_inference()
    ]
    assign(twin, Outside(reach, functions, owned))
    return twin


def _separate(module: nn.Module, originals: set[int], memo: dict[int, Any]) -> None:
    """Copies the modules inside a copy that a `__deepcopy__` of their own, or of one around them, left the caller's."""
    done: set[int] = set()
    waiting = [module]
    while waiting:
        part = waiting.pop()
        done.add(id(part))
        for name, child in list(part._modules.items()):
            if child is not None and id(child) in originals:
                child = part._modules[name] = _copy(child, memo)
            if child is not None and id(child) not in done:
                waiting.append(child)


def _copy_other(module: nn.Module, memo: dict[int, Any]) -> nn.Module:
    """Copies a module that a function uses and the model does not hold."""
    _take_parameters(module, memo)
    twin: nn.Module = _copy(module, memo)
    return twin


def _copy(value: Any, memo: dict[int, Any]) -> Any:
    """copy.deepcopy, several times as fast on plain modules: most of what they hold is immutable or empty."""
    if id(value) in memo:
        return memo[id(value)]
    if not isinstance(value, nn.Module) or not _is_plain(type(value)):  # type: ignore[arg-type]
        twin = copy.deepcopy(value, memo)
        if twin is not value or not isinstance(value, nn.Module):  # a module may say that it is its own copy
            return twin
    return _copy_module(value, memo)


def _copy_module(value: nn.Module, memo: dict[int, Any]) -> nn.Module:
    twin = type(value).__new__(type(value))
    memo[id(value)] = twin
    for name, attribute in vars(value).items():
        kind = type(attribute)
        if kind in _IMMUTABLE or (kind is tuple and all(type(item) in _IMMUTABLE for item in attribute)):
            twin.__dict__[name] = attribute
        elif kind in _CONTAINERS and not attribute:
            twin.__dict__[name] = kind()
        elif kind is list and all(type(item) in _IMMUTABLE for item in attribute):
            twin.__dict__[name] = list(attribute)
        elif name in _TABLES:
            twin.__dict__[name] = kind((key, _copy(item, memo)) for key, item in attribute.items())
        else:
            twin.__dict__[name] = copy.deepcopy(attribute, memo)
    # deepcopy loses them, as nn.Module restores its dictionary alone.
    for name in _slots_of(type(value)):  # type: ignore[arg-type]
        if hasattr(value, name):
            object.__setattr__(twin, name, copy.deepcopy(getattr(value, name), memo))
    return twin


@functools.cache
def _slots_of(kind: type) -> tuple[str, ...]:
    """The attributes that a class keeps outside of the dictionary."""
    slots = (vars(base).get("__slots__", ()) for base in kind.__mro__)
    names = (name for some in slots for name in ((some,) if isinstance(some, str) else some))
    return tuple(name for name in names if not name.startswith("__"))


_IMMUTABLE = frozenset(
    {type(None), bool, int, float, str, bytes, torch.dtype, torch.device, torch.Size, type, FunctionType}
    | {ModuleType, staticmethod, classmethod, torch.jit.ScriptFunction, CustomOpDef}  # deepcopy refuses
)
_CONTAINERS = frozenset({dict, OrderedDict, list, set})
_COPYING = ("__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs_ex__")


_OLD_PICKLES = (nn.modules.conv._ConvNd, nn.MultiheadAttention, nn.TransformerEncoderLayer)
"""Classes of torch whose __setstate__ only adds what pickles of old torch versions lack."""


@functools.cache
def _is_plain(kind: Any) -> bool:
    """Whether a class copies as nn.Module does, without a hook of its own."""
    own = (base for base in kind.__mro__ if base not in (nn.Module, object, *_OLD_PICKLES))
    return not any(name in vars(base) for base in own for name in _COPYING)


def _take_parameters(model: nn.Module, memo: dict[int, Any]) -> None:
    """Puts a new Parameter for every parameter into a memo for deepcopy; most lie in the caller's memory.

    Parameters that forward writes to have memory of their own: those of embeddings with `max_norm`, and those in
    `written`, addresses of memory that an earlier run wrote to.
    """
    known = memory_in(memo)
    owned = {id(m.weight) for m in model.modules() if changes_its_weight(m)}
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise CompatError(f"parameter {name!r} is of a lazy module and has no shape yet; run the model once.")
        if id(parameter) in memo:
            continue
        values = parameter.data  # not detach(), whose result counts its writes on the caller's parameter
        storage = memory_of(values)
        if id(parameter) in owned or storage in known.written:
            values = known.tensor(values)
        else:
            known.share(values, storage)
        memo[id(parameter)] = nn.Parameter(values, requires_grad=False)


_FILES = (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO)
_SHARED = (type(threading.Lock()), type(threading.RLock()), *_FILES, ContextVar, FrameType)


def _reduce_to_name(value: Any) -> str:
    """A reduction that is a text says that an object is a global one, which copies share."""
    return type(value).__name__


def _share_uncopyable() -> AbstractContextManager[None]:
    """While active, deepcopy takes locks, open files and the like for their own copies.

    They cannot be copied, and hold no value that is computed with; a model and its copy run at different times.
    """
    return with_items(copyreg.dispatch_table, dict.fromkeys(_SHARED, _reduce_to_name))


_COPIERS = {**memory.COPIERS, **weak_references.COPIERS}
_TABLES = frozenset({"_modules", "_parameters", "_buffers"})


class _CopyTensors(TorchFunctionMode):
    """While active, deepcopy of a tensor is a detached copy; plain deepcopy refuses tensors that have a history."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.__deepcopy__:
            return _clone(*args)
        return func(*args, **(kwargs or {}))


def _clone(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """A tensor of the same class, which the class's own ``__torch_function__`` has no part in."""
    with below_function_modes():
        clone = memory_in(memo).tensor(tensor)
        if type(tensor) is not type(clone):
            clone = clone.as_subclass(type(tensor))
    memo[id(tensor)] = clone  # its attributes may lead back to it
    vars(clone).update(copy.deepcopy(vars(tensor), memo))
    return clone


def _uncopyable(model: nn.Module, memo: dict[int, Any], error: Exception) -> CompatError:
    """Finds the module and the attribute that deepcopy tripped over."""
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name in _TABLES:
                continue
            try:
                with _CopyTensors(), _share_uncopyable(), copying_by(_COPIERS):
                    copy.deepcopy(value, dict(memo))
            except CopyAnew:
                continue
            except Exception as cause:
                place = f"{path}.{name}" if path else name
                return CompatError(
                    f"{place}: the model cannot be copied because this {type(value).__name__} cannot ({cause}); "
                    f"remove it for the export or give its class a __deepcopy__."
                )
    return CompatError(f"the model cannot be copied: {type(error).__name__}: {error}.")


def without_wrappers(module: nn.Module) -> nn.Module:
    """The module under DataParallel, DistributedDataParallel, torch.compile and ultralytics' YOLO."""
    while (attribute := _attribute_of_wrapped(type(module))) is not None:
        inner = getattr(module, attribute)
        if not isinstance(inner, nn.Module):
            break
        module = inner
    return module


def _attribute_of_wrapped(kind: type) -> str | None:
    names = [kind.__name__, *(f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__)]
    return next((_WRAPPERS[name] for name in names if name in _WRAPPERS), None)
