"""Internals of the dynamo exporter: its registry of torchlib functions, and the conditions of a capture."""

from __future__ import annotations

import copy
import importlib
import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import OpOverload, OpOverloadPacket
from torch.torch_version import TorchVersion

from torch_onnx_compat.backends.internals.find import first_module


@contextmanager
def cache_torchlib() -> Iterator[None]:
    """Builds dynamo's registry once per process instead of once per export (0.5 to 1.2 s each)."""
    registration = first_module("torch.onnx._internal.exporter._registration")
    owner = registration.ONNXRegistry
    raw = vars(owner)["from_torchlib"]

    def from_torchlib(cls: Any, *args: Any, **kwargs: Any) -> Any:
        key = (args, tuple(sorted(kwargs.items())))
        if key not in _torchlib:
            _torchlib[key] = raw.__func__(cls, *args, **kwargs)
        registry = _make_overriding_registry(cls)
        registry.__dict__.update(_torchlib[key].__dict__)
        registry.functions = {target: list(metas) for target, metas in _torchlib[key].functions.items()}
        return registry

    owner.from_torchlib = classmethod(from_torchlib)
    try:
        with _share_signatures():
            yield
    finally:
        owner.from_torchlib = raw


_torchlib: dict[Any, Any] = {}


@contextmanager
def _share_signatures() -> Iterator[None]:
    """While active, functions of one code have one signature.

    A plan has a hundred translations, which are closures of a few functions; later versions of torch take half a
    millisecond to read the signature of each. Earlier versions have no function of this name.
    """
    schemas = first_module("torch.onnx._internal.exporter._schemas")
    read = getattr(schemas, "op_signature_from_function", None)
    if read is None:
        yield
        return

    def signature(func: Any, domain: str, name: str | None = None, overload: str = "", **more: Any) -> Any:
        code = getattr(func, "__code__", None)
        if code is None or func.__defaults__ or func.__kwdefaults__ or not _is_told_by_code(func):
            return read(func, domain, name, overload, **more)
        key = (code, domain, overload, *sorted(more.items()))
        if key not in _signatures:
            _signatures[key] = read(func, domain, name, overload, **more)
        shared = copy.copy(_signatures[key])
        shared.name = name or func.__name__
        return shared

    schemas.op_signature_from_function = signature
    try:
        yield
    finally:
        schemas.op_signature_from_function = read


_signatures: dict[Any, Any] = {}


def _is_told_by_code(function: Any) -> bool:
    """Whether a function's code tells its parameters and, as text, their types; types that are objects may differ."""
    is_own = not hasattr(function, "__wrapped__") and not hasattr(function, "__signature__")
    return is_own and all(isinstance(kind, str) for kind in function.__annotations__.values())


def build_torchlib() -> None:
    """Builds dynamo's registry, which `torchlib_function` reads."""
    first_module("torch.onnx._internal.exporter._registration").ONNXRegistry.from_torchlib()


def record_node(node: Any) -> None:
    """Adds a node to the graph that onnxscript is recording.

    The recorder's own methods are avoided: they count outputs and convert numbers differently in each version.
    """
    from onnxscript import evaluator  # takes a fifth of a second to import, which only a recording needs

    recorder: Any = evaluator.default()
    recorder.nodes.append(node)


def _make_overriding_registry(cls: Any) -> Any:
    """A registry in which a function that is registered for an operator replaces torch's own for real values.

    Up to torch 2.9 torch's own would stay too, and torch would choose between them by the types of the arguments.
    """

    class OverridingRegistry(cls):  # type: ignore[misc]
        def register_op(self, target: Any, function: Callable[..., Any], is_complex: bool = False) -> None:
            super().register_op(target=target, function=function, is_complex=is_complex)
            name = target.name() if isinstance(target, OpOverload) else target
            metas = self.functions.get(name) or self.functions[target]  # torch 2.6 has no names
            metas[:] = [m for m in metas if m.is_custom or m.is_complex]

    return OverridingRegistry.__new__(OverridingRegistry)


def torchlib_function(target: OpOverload) -> Callable[..., Any] | None:
    """Torch's own translation of an operator, from the registry that was built last; None if there is none."""
    for registry in reversed(list(_torchlib.values())):
        metas = [m for m in registry.get_decomps(target) if not m.is_custom and not m.is_complex]
        if metas:
            function: Callable[..., Any] = metas[0].onnx_function
            return function
    return None


def untranslated(names: Iterable[str]) -> list[Callable[..., Any]]:
    """Torch's functions on sizes of these names, such as sym_not, that its exporter has no translation for.

    torch 2.6 translates none of them, later versions more and more.
    """
    translations: Any
    try:
        translations = importlib.import_module("torch.onnx._internal.exporter._torchlib.ops.symops")
    except ImportError:
        translations = None
    return [getattr(torch, name) for name in names if hasattr(torch, name) and not hasattr(translations, name)]


def allow_dynamic_composites() -> Any:
    """Lets the translation compute composite operators, such as matmul, on sizes that are not fixed.

    torch 2.6 interprets the program once more without it and fails there: "Cannot call numel() on tensor with
    symbolic sizes".
    """
    return enable_python_dispatcher() if TorchVersion(torch.__version__) < "2.7" else nullcontext()


def rnn_decompositions(dynamic: bool) -> Any:
    """Torch's context that keeps a dynamic sequence length dynamic in LSTM and GRU; torch 2.15 introduced it."""
    strategies = first_module("torch.onnx._internal.exporter._capture_strategies")
    patch = getattr(strategies, "patch_dynamic_shape_rnn_decompositions", None)
    return patch(dynamic) if patch is not None else nullcontext()


def overloads(op: str) -> list[Any]:
    """All overloads of a qualified operator in this version of torch; none if it lacks the operator.

    The namespace ``_operator`` holds Python's own operators, which torch.export records on sizes.
    """
    namespace, _, name = op.partition("::")
    if namespace == "_operator":
        return [getattr(operator, name)]
    packet = getattr(getattr(torch.ops, namespace), name, None)
    if not isinstance(packet, OpOverloadPacket):
        return []
    return [getattr(packet, overload) for overload in packet.overloads()]


def size_conditions(program: torch.export.ExportedProgram) -> list[str]:
    """The conditions on input sizes that a captured program assumes; torch before 2.9 keeps bounds only."""
    kept = getattr(program, "_guards_code", None)
    if kept is not None:
        return list(kept)
    sizes = {
        str(size): f"L['tensor_{index}'].size()[{dim}]"
        for index, value in enumerate(input_values(program))
        for dim, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ())
        if isinstance(size, torch.SymInt)
    }
    # Two is where torch begins without any condition.
    limits = {str(symbol): limit.lower for symbol, limit in program.range_constraints.items()}
    return [f"{sizes[symbol]} >= {least}" for symbol, least in limits.items() if symbol in sizes and least > 2]


def input_values(program: torch.export.ExportedProgram) -> list[Any]:
    """What stands for the caller's inputs in a captured program: tensors without values, or numbers."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    return [values.get(name) for name in program.graph_signature.user_inputs if isinstance(name, str)]
