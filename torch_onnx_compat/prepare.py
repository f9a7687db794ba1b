"""Makes a model exportable without touching it: wrappers off, eval mode, one device, and twins to patch."""

from __future__ import annotations

import copy
import functools
import inspect
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.parameter import is_lazy

from torch_onnx_compat.backends.internals.higher_order import without_compilation
from torch_onnx_compat.backends.internals.transforms import calling_subclasses
from torch_onnx_compat.backends.messages import forget_functions
from torch_onnx_compat.caller.reach import Reach, find_reach, is_followed
from torch_onnx_compat.caller.undo import (
    is_training,
    memory_of,
    put_back,
    restore_random_state,
    without_cache_folder,
)
from torch_onnx_compat.errors import ArgumentError, CompatError
from torch_onnx_compat.fast_path import switch_off
from torch_onnx_compat.functional.einsum_paths import choose_by_example
from torch_onnx_compat.garbage import collect_new_only
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.inputs.dynamic import with_axes
from torch_onnx_compat.inputs.inputs import Inputs, bind, parameters_of_schema
from torch_onnx_compat.inputs.state import state_of
from torch_onnx_compat.tracing import dim_names, restore_modes
from torch_onnx_compat.twin import twin_of, without_wrappers


class Boundary(Protocol):
    """What is done at a model's inputs and outputs, around its call; surgery.around_model.boundary does it."""

    @property
    def places(self) -> tuple[str, ...]:
        """Paths of modules and attributes that are asked for."""

    def call(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the model, and gives what the caller asked for."""

    def path_of(self, path: tree.Path) -> tree.Path:
        """The place of a tensor in that result, as it names the file's output."""


@dataclass(frozen=True)
class Prepared:
    """A model ready to be observed and exported, and its example inputs."""

    model: nn.Module
    """The caller's, wrappers taken off the root; never changed."""
    inputs: Inputs
    """As the caller gave them."""
    training: bool | None = False
    """Mode of every twin; None keeps the modes that the caller's modules are in."""
    notes: tuple[str, ...] = ()
    boundary: Boundary | None = None
    """What is done at the model's inputs and outputs; None calls it as it is."""
    translated_operators: frozenset[str] | None = None
    """Names of the operators that have a symbolic; of other custom operators exporters are given what they compute.

    None if nobody has said which.
    """

    def twin(self) -> nn.Module:
        """A fresh twin.

        Raises:
            CompatError: Something in the model cannot be copied; the message says where it is.
        """
        return twin_of(self.model, self.training, self.reach)

    def copy_parameters(self, most: int) -> bool:
        """Lets twins have copies of all parameters, as if forward wrote to each; returns whether they may.

        Args:
            most: Bytes of the parameters, up to which they may.
        """
        parameters = list(self.model.parameters())
        if any(map(is_lazy, parameters)) or sum(tensor.nbytes for tensor in parameters) > most:
            return False
        memory = set(map(memory_of, parameters)) - {0}
        may = len(memory) == len(parameters)  # else some share memory, which copies would not
        if may:
            self.reach.written.update(memory)
        return may

    @functools.cached_property
    def reach(self) -> Reach:
        """What the model's code can write to outside of a twin."""
        return find_reach(self.model)

    @functools.cached_property
    def python_modules(self) -> frozenset[str]:
        """The names of those that the model's code is in: all of the packages of its classes and its functions."""
        kinds = {kind for module in self.model.modules() for kind in type(module).__mro__}
        names = {kind.__module__ for kind in kinds if is_followed(kind.__module__)} | self.reach.python_modules
        packages = {name.partition(".")[0] for name in names}
        return frozenset(name for name in list(sys.modules) if name.partition(".")[0] in packages)


def prepare(
    model: Any,
    args: Any,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic: str | Mapping[str, Any] | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    training: bool | None = False,
    state: Sequence[str] = (),
) -> Prepared:
    """Checks the model and its example inputs, and what it keeps between calls, and binds the one to the other.

    Raises:
        CompatError: The model is none, its tensors lie on several devices, the inputs do not fit, or `dynamic` names
            something that does not exist.
    """
    module, args = _as_module(model, args)
    _check_tree(module)
    inputs = bind(module, args, kwargs, () if state else input_names)
    notes = [
        f"argument {name} is the number {value}, which the file holds; pass torch.tensor({value}) for an input."
        for name, value in inputs.numbers
        if not isinstance(value, bool)
    ]
    if state:
        values, late = state_of(module, inputs, state, lambda: twin_of(module, training))
        inputs = inputs.with_values(values, input_names)
        notes += late
    if isinstance(model, torch.export.ExportedProgram) and not (dynamic or dynamic_axes or dynamic_shapes):
        dynamic = _captured_axes(model, inputs)
    inputs = with_axes(inputs, dynamic, dynamic_axes, dynamic_shapes, output_names or ()).real()
    inputs = replace(
        inputs,
        tensors=tuple(tensor.clone() for tensor in inputs.tensors),  # forward may write to its inputs
        structure=_with_fresh_constants(inputs.structure),
    )
    _check_devices(module, inputs)
    # The module of an ExportedProgram has the mode that it was captured in, and its own eval() refuses.
    has_mode = isinstance(model, nn.Module) and "eval" not in vars(model)
    if training is False and has_mode and is_training(module):
        notes.append("the model is in train mode; exported in eval mode. Call model.eval() to say so yourself.")
    return Prepared(module, inputs, training, tuple(notes))


DEPTH = 4000
"""How deep calls may be nested during an export, at least."""

_lock = threading.RLock()


@contextmanager
def export_conditions() -> Iterator[None]:
    """No gradients, and the attention fast path off: it has no ONNX form and other values on padded rows.

    torch.distributions does not check its arguments, which only decides about errors. A module runs within more calls
    of Python's than by itself, so deeper ones are allowed.

    The fast path is one for all threads, and both exporters keep state in module globals, so threads take turns.
    Random states are afterwards as they were. In between they go on from run to run: a random number that is frozen in
    a file must differ from the reference's.
    """
    with _lock, put_back() as stack:
        stack.callback(switch_off())
        # What an interrupted export has changed, and not put back yet, is left for it to put back.
        if Distribution._validate_args:
            stack.callback(Distribution.set_default_validate_args, True)
        if sys.getrecursionlimit() < DEPTH:
            stack.callback(sys.setrecursionlimit, sys.getrecursionlimit())
        stack.callback(forget_functions)
        Distribution.set_default_validate_args(False)
        sys.setrecursionlimit(max(DEPTH, sys.getrecursionlimit()))
        with (
            torch.no_grad(),
            restore_random_state(),
            collect_new_only(),
            without_cache_folder(),
            choose_by_example(),
            without_compilation(),
            calling_subclasses(),
            restore_modes(),
        ):
            yield


def _with_fresh_constants(structure: tree.Structure) -> tree.Structure:
    """The structure of arguments, in which each call gets copies of the sets and arrays that it may write to."""
    if structure.children:
        return replace(structure, children=tuple(_with_fresh_constants(child) for child in structure.children))
    if structure.build is None and isinstance(structure.constant, _WRITABLE):
        return tree.Structure(build=functools.partial(_copied, structure.constant))
    return structure


def _copied(constant: Any, _: list[Any]) -> Any:
    return copy.deepcopy(constant)


_WRITABLE = (set, bytearray, deque, np.ndarray)


class _Callable(nn.Module):
    """A plain or scripted function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.forward = _with_frame(function) if isinstance(function, torch.jit.ScriptFunction) else function


def _with_frame(function: Any) -> Callable[..., Any]:
    """A scripted function with a Python frame, which the tracer looks for, and a signature."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    forward.__signature__ = inspect.Signature(parameters_of_schema(function.schema))  # type: ignore[attr-defined]
    return forward


def _as_module(model: Any, args: Any) -> tuple[nn.Module, Any]:
    if isinstance(model, torch.export.ExportedProgram):
        if args in ((), None) and model.example_inputs is not None:
            example_args, example_kwargs = model.example_inputs
            args = (*example_args, dict(example_kwargs)) if example_kwargs else example_args
        return model.module(), args
    if isinstance(model, nn.Module):
        return without_wrappers(model), args
    if isinstance(model, (torch.jit.ScriptFunction, functools.partial)) or inspect.isroutine(model):
        return _Callable(model), args
    hint = ""
    if isinstance(model, type):
        hint = f" Make one of the class: {model.__name__}(...)."
    elif isinstance(model, Mapping):
        hint = " If it is a state_dict, load it into the module that it is of: model.load_state_dict(...)."
    raise ArgumentError(
        f"model is a {type(model).__name__}; wanted an nn.Module, an ExportedProgram, a scripted module or a function."
        f"{hint}"
    )


def _captured_axes(program: torch.export.ExportedProgram, inputs: Inputs) -> dict[str, Any] | None:
    """The dynamic axes that an ExportedProgram was captured with, by input: names of its Dim objects, and bounds.

    A size without such a name is called after the first axis that it is the size of.
    """
    user = set(program.graph_signature.user_inputs)
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in user]
    shapes = [n.meta["val"].shape for n in placeholders if isinstance(n.meta.get("val"), Tensor)]
    captured = [
        (name, dim, size.node)
        for name, shape in zip(inputs.names, shapes, strict=True)
        for dim, size in enumerate(shape)
        if not isinstance(size, int)
    ]
    names: dict[str, str] = {}
    for name, dim, node in sorted(captured, key=lambda one: len(str(one[2].expr))):  # plain symbols first
        names = dim_names(node.shape_env) | names
        for symbol in map(str, node.expr.free_symbols):
            names.setdefault(symbol, f"{_NO_LETTER.sub('_', name)}_dynamic_axes_{dim + 1}")
    axes: dict[str, Any] = {}
    for name, dim, node in captured:
        text = re.sub(r"\w+", lambda word: names.get(word[0], word[0]), str(node.expr))
        bounds = program.range_constraints.get(node.expr)
        axes.setdefault(name, {})[dim] = (text, *_bounds(bounds)) if node.expr.is_symbol and bounds else text
    return axes or None


_NO_LETTER = re.compile(r"\W")


def _bounds(sizes: Any) -> tuple[int, int | None]:
    """The smallest and the largest size of a torch ValueRanges; its 2 for the smallest is what torch assumes itself."""
    return max(int(sizes.lower), 1) if sizes.lower > 2 else 1, int(sizes.upper) if sizes.upper < 2**31 else None


def _check_tree(module: nn.Module, path: str = "", above: tuple[int, ...] = (), done: set[int] | None = None) -> None:
    """Refuses a module that contains itself: train(), apply() and state_dict() do not end.

    Args:
        module: The module.
        path: Its path.
        above: What contains it.
        done: What is known to contain no such module; filled in.
    """
    done = set() if done is None else done
    if id(module) in above:
        raise CompatError(
            f"module {path!r} contains itself; keep the reference to it in a list or another plain attribute."
        )
    if id(module) in done:
        return
    for name, child in module._modules.items():
        if child is not None:
            _check_tree(child, f"{path}.{name}".lstrip("."), (*above, id(module)), done)
    done.add(id(module))


def _check_devices(model: nn.Module, inputs: Inputs) -> None:
    places: dict[str, tuple[str, str]] = {}
    for kind, tensors in (("parameter", model.named_parameters()), ("buffer", model.named_buffers())):
        for name, tensor in tensors:
            places.setdefault(tensor.device.type, (kind, name))
    for name, tensor in zip(inputs.names, inputs.tensors, strict=True):
        places.setdefault(tensor.device.type, ("input", name))
    if "meta" in places:
        kind, name = places["meta"]
        raise CompatError(f"{kind} {name!r} is on the meta device and has no values; load the weights first.")
    if len(places) > 1:
        found = ", ".join(f"{kind} {name!r} on {device}" for device, (kind, name) in places.items())
        raise CompatError(
            f"tensors lie on several devices: {found}; move the model and the inputs to one, e.g. model.cpu()."
        )
