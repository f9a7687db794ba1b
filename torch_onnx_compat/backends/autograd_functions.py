"""Autograd Functions: those that have a symbolic become one operator, all others what their forward computes.

While torch.export captures a model, `Function.apply` of a class with a symbolic calls a custom operator, which is
defined for this call. Its translation is the catalogue's symbolic for the class, or the class's own `symbolic(g, …)`.
A TorchScript trace records such a class as one operator itself. But the forward of any other class it records as a
graph of its own, in which tensors that are no arguments of `apply` are unknown; so here the trace runs the forward.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from torch_onnx_compat.backends.backend import ExportJob
from torch_onnx_compat.backends.dynamo_ops import DynamoOps
from torch_onnx_compat.backends.dynamo_symbolics import translation_of
from torch_onnx_compat.backends.internals.transforms import is_transforming
from torch_onnx_compat.catalogue.entry import Symbolic
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.tracing import is_tracing

NAMESPACE = "torch_onnx_compat_functions"


@contextmanager
def as_custom_operators(job: ExportJob, opset: int) -> Iterator[dict[Any, Callable[..., Any]]]:
    """While active, applying a Function that has a symbolic records one node.

    Args:
        job: The export.
        opset: Opset of its nodes.

    Yields:
        The translation of each operator that was defined so far.
    """
    entries = {e.op.removeprefix("autograd::"): e for e in job.plan.symbolics() if e.op.startswith("autograd::")}
    table: dict[Any, Callable[..., Any]] = {}
    library = torch.library.Library(NAMESPACE, "FRAGMENT")

    def apply(run: Callable[..., Any], cls: Any, *args: Any, **kwargs: Any) -> Any:
        entry = entries.get(f"{cls.__module__}.{cls.__qualname__}")
        if kwargs or (entry is None and not _has_symbolic(cls)):
            return run(*args, **kwargs)
        lower = _translation_of(cls, entry, job, opset)
        return _call_operator(library, f"{cls.__name__}_{len(table)}", run, args, lower, table)

    try:
        with _replace_apply(apply):
            yield table
    finally:
        library._destroy()


@contextmanager
def forward_in_the_trace() -> Iterator[None]:
    """While active, applying a Function without a symbolic runs its forward, where nothing asks for its gradient."""

    def apply(run: Callable[..., Any], cls: Any, *args: Any, **kwargs: Any) -> Any:
        is_differentiated = torch.is_grad_enabled() and any(
            isinstance(a, Tensor) and a.requires_grad for a in (*args, *kwargs.values())
        )
        if not is_tracing() or is_differentiated or _has_symbolic(cls) or is_transforming():
            return run(*args, **kwargs)
        has_context = cls.setup_context is torch.autograd.Function.setup_context
        context = (_Context(len(args)),) if has_context else ()
        with torch.no_grad():
            return cls.forward(*context, *args, **kwargs)

    with _replace_apply(apply, in_place=True):
        yield


class _Context(FunctionCtx):
    """What forward is given to keep values for the gradient, which nobody computes."""

    def __init__(self, inputs: int) -> None:
        self.needs_input_grad = (False,) * inputs


@contextmanager
def _replace_apply(apply: Callable[..., Any], *, in_place: bool = False) -> Iterator[None]:
    """While active, a function carries out `Function.apply`; it is given torch's own, the class, and the arguments.

    Args:
        apply: The function.
        in_place: Whether torch's own is in its place while it runs: a trace keeps the method that it finds there, and
            asks later whether it still is it.
    """
    owner = torch.autograd.Function
    own = vars(owner).get("apply")
    original = own or inspect.getattr_static(owner, "apply")

    def put_back() -> None:
        if own is None:
            del owner.apply
        else:
            owner.apply = own

    def call(cls: Any, *args: Any, **kwargs: Any) -> Any:
        def run(*values: Any, **options: Any) -> Any:
            if in_place:
                put_back()
            try:
                return original.__get__(None, cls)(*values, **options)
            finally:
                owner.apply = made

        return apply(run, cls, *args, **kwargs)

    owner.apply = made = classmethod(call)
    try:
        yield
    finally:
        put_back()


def _has_symbolic(cls: Any) -> bool:
    return callable(getattr(cls, "symbolic", None))


def _call_operator(
    library: torch.library.Library,
    name: str,
    run: Callable[..., Any],
    args: Sequence[Any],
    lower: Callable[..., Any],
    table: dict[Any, Callable[..., Any]],
) -> Any:
    tensors = [a for a in args if isinstance(a, Tensor)]

    def fill(values: Sequence[Any]) -> list[Any]:
        rest = iter(values)
        return [next(rest) if isinstance(a, Tensor) else a for a in args]

    with disable_proxy_modes_tracing():
        probe = run(*args)
    count = len(probe) if isinstance(probe, tuple) else 1
    inputs = ", ".join(f"Tensor t{i}" for i in range(len(tensors)))
    outputs = ", ".join(["Tensor"] * count)
    library.define(f"{name}({inputs}) -> {f'({outputs})' if count > 1 else outputs}")
    library.impl(name, lambda *t: run(*fill(t)), "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{name}", lambda *t: run(*fill(t)), lib=library)
    operator = getattr(getattr(torch.ops, NAMESPACE), name).default
    table[operator] = lambda *t: lower(*fill(t))
    return operator(*tensors)


def _translation_of(cls: Any, entry: Symbolic | None, job: ExportJob, opset: int) -> Callable[..., Any]:
    if entry is not None:
        return translation_of(entry, job, opset)

    def lower(*args: Any) -> Any:
        graph = _Graph(DynamoOps(opset))
        try:
            result = cls.symbolic(graph, *[_Value(a) if hasattr(a, "producer") else a for a in args])
        except Exception as error:
            raise CompatError(
                f"{cls.__qualname__}.symbolic failed under the dynamo exporter with {type(error).__name__}: {error}; "
                f"use exporter='torchscript' or register a symbolic for the class."
            ) from error
        results = result if isinstance(result, (tuple, list)) else (result,)
        values = [r.value for r in results]
        return values if len(values) > 1 else values[0]

    return lower


class _Value:
    """A value with the methods that symbolics for TorchScript's graph call."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def type(self) -> Any:
        """Returns the value, for ``value.setType(other.type())``; here types are inferred from the operators."""
        return self

    def setType(self, _: Any) -> _Value:
        return self

    def with_sizes(self, _: Any) -> _Value:
        return self


class _Graph:
    """A graph with the method of TorchScript's graph that symbolics call: op()."""

    def __init__(self, ops: DynamoOps) -> None:
        self._ops = ops

    def op(self, name: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; attribute names end in their kind, e.g. ``axis_i``."""
        domain, _, op_type = name.rpartition("::")
        plain = {key.rpartition("_")[0]: _attribute(value) for key, value in attributes.items()}
        values = [i.value if isinstance(i, _Value) else i for i in inputs]
        if op_type == "Constant" and "value" in plain:
            return _Value(self._ops.constant(plain["value"].numpy(), plain["value"].dtype))
        like = next((v for v in values if hasattr(v, "producer")), None)
        values = [self._ops._input(v, like) for v in values]
        result = self._ops.node(op_type, values, plain, outputs, "" if domain in ("", "onnx") else domain)
        return tuple(_Value(r) for r in result) if isinstance(result, tuple) else _Value(result)


def _attribute(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
