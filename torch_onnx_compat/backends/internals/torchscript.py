"""Internals of the TorchScript exporter: its registry of symbolics, its weights, its trace and graph."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch

from torch_onnx_compat.backends.internals.find import first_module


def symbolic_registry() -> Any:
    """Torch's complete registry of TorchScript symbolics; its module moved in torch 2.9.

    Torch registers the later opsets at its first export only. They are imported here, so that the registry is the same
    before and after an export.
    """
    for opset in range(7, max_torchscript_opset() + 1):
        importlib.import_module(f"torch.onnx.symbolic_opset{opset}")
    return first_module(
        "torch.onnx._internal.torchscript_exporter.registration", "torch.onnx._internal.registration"
    ).registry


@contextmanager
def register_symbolics(functions: dict[str, Callable[..., Any]], opset: int) -> Iterator[None]:
    """Registers TorchScript symbolics at one opset, then restores the registry, the user's own symbolics included.

    torch takes the symbolic of the highest opset up to the exported one, and would ignore an override at a lower opset
    than the built-in one's. torch's unregister does not restore a symbolic that the user had registered before.
    """
    registry = symbolic_registry()
    before = {name: _overrides_of(registry, name) for name in functions}
    try:
        try:
            for name, function in functions.items():
                registry.register(name, opset, function, custom=True)
            yield
        finally:
            _restore(registry, before, opset)
    finally:  # once more: an interrupt may have come in the midst of the first time
        _restore(registry, before, opset)


def _restore(registry: Any, before: dict[str, tuple[bool, dict[int, Any]]], opset: int) -> None:
    """Gives each operator the symbolics that it had; doing so twice changes nothing more."""
    for name, (existed, overrides) in before.items():
        group = registry.get_function_group(name)
        if group is not None and group._functions.overridden(opset):
            group._functions.remove_override(opset)
        if opset in overrides:
            registry.register(name, opset, overrides[opset], custom=True)
        if not existed:
            registry._registry.pop(name, None)


def _overrides_of(registry: Any, name: str) -> tuple[bool, dict[int, Any]]:
    group = registry.get_function_group(name)
    if group is None:
        return False, {}
    return True, dict(group._functions._overrides)


def built_in_symbolic(name: str, opset: int) -> Callable[..., Any] | None:
    """Torch's own symbolic for an operator at an opset; None if there is none."""
    group = symbolic_registry().get_function_group(name)
    versions = [v for v in (group._functions._base if group else ()) if v <= opset]
    return group._functions._base[max(versions)] if versions else None


def max_torchscript_opset() -> int:
    """Highest opset that the TorchScript exporter writes."""
    constants = first_module("torch.onnx._constants")
    return int(getattr(constants, "ONNX_TORCHSCRIPT_EXPORTER_MAX_OPSET", constants.ONNX_MAX_OPSET))


@contextmanager
def without_weights(of: Callable[[torch.Tensor], bool]) -> Iterator[dict[str, torch.Tensor]]:
    """While active, the TorchScript exporter leaves weights out of the file; it would make three copies of each.

    Args:
        of: Whether to leave out a weight.

    Yields:
        The weights that were left out, by name; in the file they are empty.
    """
    graph: Any = torch._C.Graph
    jit: Any = torch._C
    raw, infer = graph._export_onnx, jit._jit_pass_onnx_graph_shape_type_inference
    left_out: dict[str, torch.Tensor] = {}

    def export(self: Any, weights: dict[str, torch.Tensor], *rest: Any) -> Any:
        found = {name: tensor for name, tensor in weights.items() if of(tensor)}
        left_out.update(found)
        return raw(self, {**weights, **{n: torch.empty(0, dtype=t.dtype) for n, t in found.items()}}, *rest)

    def infer_shapes(graph: Any, weights: dict[str, Any], *rest: Any) -> None:
        # It copies each weight for each node that reads it; the graph knows their shapes, and large ones are no shapes.
        # Those of quantized layers are tuples.
        left_in = {name: one for name, one in weights.items() if not (isinstance(one, torch.Tensor) and of(one))}
        infer(graph, left_in, *rest)

    graph._export_onnx = export
    jit._jit_pass_onnx_graph_shape_type_inference = infer_shapes
    try:
        yield left_out
    finally:
        graph._export_onnx = raw
        jit._jit_pass_onnx_graph_shape_type_inference = infer


_ARITHMETIC = frozenset(f"onnx::{name}" for name in ("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max", "Where"))


@contextmanager
def keep_double_scalars() -> Iterator[None]:
    """While active, what the TorchScript exporter computes of float64 tensors of shape () stays float64.

    Its analysis of element types takes such a tensor for one of Python's floats, which yield to the default type: for
    each node as a symbolic adds it, and once more for the graph. A tensor whose shape it does not know is none to it.
    """
    jit: Any = torch._C
    names = ("_jit_pass_onnx_node_shape_type_inference", "_jit_pass_onnx_scalar_type_analysis")
    before = {name: getattr(jit, name) for name in names}
    infer, analyse = before.values()

    def infer_node(node: Any, *rest: Any) -> None:
        infer(node, *rest)
        _widen_result(node)

    def analyse_graph(graph: Any, *rest: Any) -> None:
        with _hide_double_scalars(graph):
            analyse(graph, *rest)

    try:
        for name, function in zip(names, (infer_node, analyse_graph), strict=True):
            setattr(jit, name, function)
        yield
    finally:
        for name, function in before.items():
            setattr(jit, name, function)


def _widen_result(node: Any) -> None:
    """Makes float64 of the float32 that was inferred for what a node computes of float64 tensors of shape ()."""
    if node.kind() in _ARITHMETIC and any(map(_is_double_scalar, node.inputs())):
        made = node.output().type()
        if made.kind() == "TensorType" and made.dtype() == torch.float32 and made.dim() == 0:
            node.output().setType(made.with_dtype(torch.float64))


@contextmanager
def _hide_double_scalars(graph: Any) -> Iterator[None]:
    """While active, nothing is known of the shapes of a graph's float64 tensors of shape ()."""
    lines = graph.str(False).splitlines()  # a hundred times as fast as to ask each value
    if not any("Double(" in line and "onnx::Constant[" not in line for line in lines):
        yield
        return
    hidden = {value.debugName() for value in _values_of(graph) if _is_double_scalar(value)}
    for value in _values_of(graph):
        if value.debugName() in hidden:
            value.setType(torch._C.TensorType.get().with_dtype(torch.float64))
    yield
    for value in _values_of(graph):
        if value.debugName() in hidden:
            value.setType(value.type().with_sizes([]))


def _is_double_scalar(value: Any) -> bool:
    """Whether a value of a graph is a float64 tensor of shape (), and no constant, as Python's numbers are."""
    kind = value.type()
    if kind.kind() != "TensorType" or value.node().kind() == "onnx::Constant":
        return False
    return bool(kind.dtype() == torch.float64 and kind.dim() == 0)


def _values_of(block: Any) -> Iterator[Any]:
    """The values of a graph and of the blocks inside."""
    yield from block.inputs()
    for node in block.nodes():
        yield from node.outputs()
        for inner in node.blocks():
            yield from _values_of(inner)


def trace(module: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> Any:
    """Traces a module as the TorchScript exporter does; returns the graph."""
    jit: Any = torch.jit
    return jit._get_trace_graph(module, tensors)[0]


def text_of_graph(graph: Any) -> str:
    """What a traced graph computes: without shapes, places in the source and names, with the values of constants."""
    copy = graph.copy()
    torch._C._jit_pass_erase_shape_information(copy)
    torch._C._jit_pass_dce(copy)
    copy = torch._C._jit_pass_canonicalize(copy)
    return "\n".join([copy.str(False), *_constants(copy)])


def _constants(block: Any) -> Iterator[str]:
    for node in block.nodes():
        if node.kind() == "prim::Constant" and node.hasAttribute("value") and node.kindOf("value") == "t":
            value = node.t("value")
            yield f"{value.dtype} {tuple(value.shape)} {value.tolist()}"
        for inner in node.blocks():
            yield from _constants(inner)


def is_scripted_part(value: Any) -> bool:
    """Whether an attribute of a scripted module is a module, as Python or as C++ has it."""
    return isinstance(value, (torch.jit.ScriptModule, torch._C.ScriptObject))


def has_scripted_forward(module: Any) -> TypeGuard[torch.jit.ScriptModule]:
    """Whether a module's forward is compiled; a ScriptModule may have other compiled methods alone."""
    return isinstance(module, torch.jit.ScriptModule) and module._c._has_method("forward")


def function_of_graph(graph: Any) -> Any:
    """A scripted function that runs a graph."""
    return torch._C._create_function_from_graph("forward", graph)


@dataclass(frozen=True)
class Slot:
    """A place in the result of a scripted function that a tensor has."""

    index: int
    """Of the tensor among those that the graph returns."""
    is_float: bool
    """Whether it stands for a Python float."""


def return_tensors(graph: Any) -> Any:
    """Lets a graph return tensors only: a tracer takes no numbers and no None from a scripted function.

    Args:
        graph: Changed in place.

    Returns:
        The form of what it returned, of tuples, Slots and None; None if it returned tensors only.
    """
    values: list[Any] = []
    numbers = {"IntType", "FloatType", "BoolType", "NumberType"}
    (whole,) = graph.outputs()
    graph.setInsertPoint(graph.return_node())
    is_changed = False

    def visit(value: Any) -> Any:
        nonlocal is_changed
        kind = value.type().kind()
        if value.node().mustBeNone():
            is_changed = True
            return None
        if kind == "TupleType" and value.node().kind() == "prim::TupleConstruct":
            return tuple(visit(item) for item in value.node().inputs())
        if kind in numbers:
            is_changed = True
            node = graph.insertNode(graph.create("prim::NumToTensor", [value], 1))
            value = node.output()
            value.setType(torch._C.TensorType.get())
        values.append(value)
        return Slot(len(values) - 1, kind == "FloatType")

    form = visit(whole)
    if not is_changed or not values:
        return None
    graph.eraseOutput(0)
    for value in values:
        graph.registerOutput(value)
    if len(values) > 1:
        graph.makeMultiOutputIntoTuple()
    return form


def parameters_of(scripted: Any) -> dict[str, Any]:
    """The names of the parameters of a scripted module's forward, with their defaults."""
    arguments = scripted.forward.schema.arguments[1:]
    return {a.name: a.default_value if a.has_default_value() else inspect.Parameter.empty for a in arguments}


def is_graph_value(value: Any) -> bool:
    """Whether an argument of a symbolic is a value of the graph, not a number."""
    return isinstance(value, torch._C.Value)


def optional_tensor_type() -> Any:
    """The type of an omitted input."""
    return torch._C.OptionalType.ofTensor()


def references_to(storage: torch.UntypedStorage) -> int:
    """How many tensors and Python objects refer to a storage; 0 if this version of torch does not tell."""
    count = getattr(torch._C, "_storage_Use_Count", None)
    return 0 if count is None else int(count(storage._cdata))


def read_attribute(tensor: torch.Tensor, name: str) -> Any:
    """An attribute of a tensor, as Python reads it where nothing stands in the way."""
    return torch._C.TensorBase.__getattribute__(tensor, name)


@contextmanager
def add_tensor_method(name: str, method: Callable[..., Any]) -> Iterator[None]:
    """While active, tensors have a method that they lack, or another one in the place of their own."""
    own = vars(torch.Tensor).get(name)
    try:
        setattr(torch.Tensor, name, method)
        yield
    finally:
        if own is not None:
            setattr(torch.Tensor, name, own)
        elif name in vars(torch.Tensor):
            delattr(torch.Tensor, name)
