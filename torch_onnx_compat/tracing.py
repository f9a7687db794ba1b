"""What a rewrite's body may ask of the export that it runs in.

Under TorchScript every size is a traced tensor, under torch.export a dynamic one is symbolic; a body that needs to know
whether a size is fixed, or that wants a table of numbers in the file, asks here and stays the same for both exporters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor
from torch.torch_version import TorchVersion

StaticSizes = Callable[[Tensor], "tuple[int | None, ...] | None"]
"""Tells the sizes of a tensor argument, None where an axis may vary."""

_C: Any = torch._C  # its stubs leave the tracer out

LARGE = 2**12
"""What stands for a size that only the data decides where the size of an example is asked for."""

_static_sizes: ContextVar[StaticSizes | None] = ContextVar("static_sizes", default=None)


def is_tracing() -> bool:
    """Whether a TorchScript trace is being recorded."""
    return _C._get_tracing_state() is not None


def static_size(x: Tensor, dim: int) -> int | None:
    """Size of an axis if it is the same for every input the file will see, else None.

    Args:
        x: One of the arguments that the rewrite's body was given (not something computed from them).
        dim: Axis, negative from the end.
    """
    if not is_tracing():
        size = x.shape[dim]
        return size if type(size) is int else None
    known = _static_sizes.get()
    sizes = known(x) if known is not None and not is_of_transform(x) else None
    return None if sizes is None else sizes[dim]


def multiple_of(size: Any, x: Tensor, dim: int) -> int | None:
    """The number k if a size is k times that of an axis, whatever that is; None where nobody knows, or k is no integer.

    Args:
        size: What the exporter has for it.
        x: One of the arguments that the rewrite's body was given.
        dim: Axis.
    """
    if is_tracing():
        recorded = recorded_value(size) if isinstance(size, Tensor) else None
        return None if recorded is None else _recorded_multiple(recorded, recorded_value(x), dim % x.dim())
    own = x.shape[dim]
    if not (isinstance(size, torch.SymInt) and isinstance(own, (int, torch.SymInt))):
        return None
    expression = size.node.expr / (own.node.expr if isinstance(own, torch.SymInt) else own)
    return int(expression) if expression.is_Integer else None


def _recorded_multiple(size: Any, x: Any, dim: int) -> int | None:
    node = size.node()
    if node.kind() == "aten::mul":
        first, second = node.inputs()
        factor, rest = second.toIValue(), _recorded_multiple(first, x, dim)
        is_whole = isinstance(factor, (int, Tensor)) and bool(int(factor) == factor)
        return rest * int(factor) if is_whole and rest is not None else None
    if node.kind() == "prim::NumToTensor":
        node = next(node.inputs()).node()
    if node.kind() != "aten::size":
        return None
    tensor, axis = node.inputs()
    return 1 if tensor.unique() == x.unique() and axis.toIValue() == dim else None


def constant(array: npt.ArrayLike, like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """A table of numbers as one constant of the file, not as the operations that computed it.

    Args:
        array: The numbers, computed with numpy.
        like: The tensor whose device, and dtype unless one is given, the constant takes.
        dtype: Element type.
    """
    with without_tracing():
        table = torch.tensor(array, dtype=dtype or like.dtype)
        return table.to(like.device) if like.device.type != "cpu" else table


_is_inner: ContextVar[bool] = ContextVar("is_inner", default=False)


@contextmanager
def inner_trace() -> Iterator[None]:
    """While active, what is traced is a part of the model: its inputs are whatever it reads, weights among them."""
    token = _is_inner.set(True)
    try:
        yield
    finally:
        _is_inner.reset(token)


def is_whole_trace() -> bool:
    """Whether a TorchScript trace of the whole model is being recorded."""
    return is_tracing() and not _is_inner.get()


@contextmanager
def without_tracing() -> Iterator[None]:
    """Runs torch operations without recording them in a TorchScript trace; what they yield becomes a constant."""
    state = _C._get_tracing_state()
    _C._set_tracing_state(None)
    try:
        yield
    finally:
        _C._set_tracing_state(state)


def recorded_value(x: Any) -> Any:
    """The value of the TorchScript trace that stands for a tensor, or for a size that is one there.

    Of a tensor inside torch.vmap and its like it is the value of the whole tensor, which the trace knows.
    """
    return _C._get_value_trace(whole_of(x))


is_of_transform: Callable[[Any], bool] = _C._functorch.is_functorch_wrapped_tensor
"""Whether a tensor stands for another one inside torch.vmap, torch.func.grad and their like."""


def whole_of(x: Any) -> Any:
    """The tensor that a tensor inside torch.vmap and its like stands for; any other value itself."""
    while is_of_transform(x):
        x = _C._functorch.get_unwrapped(x)
    return x


def computes_with_sizes(x: Tensor) -> bool:
    """Whether the trace computes a tensor with a size of another one; TorchScript does not know its own sizes then."""
    ahead, seen = [recorded_value(x)], set()
    while ahead:
        node = ahead.pop().node()
        if node.kind() == "aten::size":
            return True
        ahead += [value for value in node.inputs() if value.debugName() not in seen]
        seen |= {value.debugName() for value in node.inputs()}
    return False


def record_as(x: Tensor, value: Any) -> None:
    """Lets a tensor stand for a value of the TorchScript trace."""
    _C._set_value_trace(x, value)


below_function_modes: Callable[[], AbstractContextManager[None]] = _C.DisableTorchFunction
"""Keeps torch's calls inside from the TorchFunctionModes that are active; entered at every call of a trace."""


def function_modes() -> list[Any]:
    """The TorchFunctionModes in force; the last one sees the next call of torch."""
    return [_C._get_function_stack_at(place) for place in range(_C._len_torch_function_stack())]


@contextmanager
def restore_modes() -> Iterator[None]:
    """Ends torch's modes that are still in force: an interrupt may fall between a ``with`` and its context's end."""
    state = _C._get_torch_function_state()
    functions, operators = _C._len_torch_function_stack(), _C._len_torch_dispatch_stack()
    keys = [(get(), get, put) for get, put in _KEYS_IN_FORCE]
    try:
        yield
    finally:
        while _C._len_torch_function_stack() > functions:
            _C._pop_torch_function_stack()
        while _C._len_torch_dispatch_stack() > operators:
            _C._pop_torch_dispatch_stack(None)
        _C._set_torch_function_state(state)
        for before, get, put in keys:
            _restore_keys(before, get(), put)


_KEYS_IN_FORCE: list[tuple[Callable[[], Any], Callable[[Any, bool], None]]] = [
    (_C._dispatch_tls_local_exclude_set, _C._dispatch_tls_set_dispatch_key_excluded),
    (_C._dispatch_tls_local_include_set, _C._dispatch_tls_set_dispatch_key_included),
]


_OF_EACH_BACKEND = {"Dense", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "AutogradFunctionality"}
"""Keys that the text of a set leaves out where it holds no backend beside them."""


def _restore_keys(before: Any, now: Any, put: Callable[[Any, bool], None]) -> None:
    """Sets the thread's dispatch keys as they were: an error inside an operator of torch may leave others in force."""
    if before.raw_repr() == now.raw_repr():
        return
    names = {name for keys in (before, now) for name in str(keys).partition("(")[2].rstrip(")").split(", ")}
    for key in map(_C._dispatch_key_parse, (names | _OF_EACH_BACKEND) - {""}):
        if before.has(key) != now.has(key):
            put(key, before.has(key))


current_trace: Callable[[], Any] = _C._get_tracing_state
"""The TorchScript trace that is being recorded; None outside of one."""


def resume(trace: Any) -> None:
    """Goes on with a trace that an operator's error interrupted.

    An operator takes the trace out of force while it runs and, if it fails, leaves it so, with a node that has no
    outputs. To a model that catches the error, the end of the trace would be a crash of the process.

    Args:
        trace: What `current_trace` said before the operator ran.
    """
    if trace is None:
        return
    if is_tracing():
        _drop_kept_index()
        return
    _C._set_tracing_state(trace)
    nodes = list(trace.graph().nodes())
    while nodes and nodes[-1].kind() == "prim::TracedModuleForward":
        nodes = list(next(nodes[-1].blocks()).nodes())
    if nodes and not nodes[-1].outputsSize():
        nodes[-1].destroy()


def _drop_kept_index() -> None:
    """Lets an operator of no use take the index that a failed one left.

    torch keeps a computed index aside before it looks whether the index fits. Where it does not, the next operator with
    an index takes it for its own: another element, or, in the next trace, memory that is no longer there.
    """
    with below_function_modes():
        torch.zeros(1)[0:1][0]


@contextmanager
def answering(static_sizes: StaticSizes | None) -> Iterator[None]:
    """Makes `static_size` answer from here while a rewrite's body runs."""
    token = _static_sizes.set(static_sizes)
    try:
        yield
    finally:
        _static_sizes.reset(token)


def size_tensor(x: Tensor, dim: int) -> Tensor:
    """Size of an axis as an int64 tensor of shape (), recorded in the file where the axis may vary."""
    return torch.full((), x.shape[dim], dtype=torch.int64, device=x.device)


def as_tensor(value: Any, device: torch.device | None = None) -> Tensor:
    """A number, or a size that torch.export does not know, as a tensor of shape (); a tensor stays as it is.

    torch.as_tensor would take the size for the example's.
    """
    if isinstance(value, torch.SymBool):
        return torch.full((), torch.sym_ite(value, 1, 0), dtype=torch.int64, device=device) != 0
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        kind = torch.int64 if isinstance(value, torch.SymInt) else torch.get_default_dtype()
        return torch.full((), value, dtype=kind, device=device)  # type: ignore[arg-type, unused-ignore]
    return value if isinstance(value, Tensor) else torch.tensor(value, device=device)


def as_size(value: Tensor, least: int, most: int) -> Any:
    """A size that the values of tensors decide, as the exporter wants sizes.

    Args:
        value: int64 tensor of shape ().
        least: Smallest size that it can be.
        most: Largest.
    """
    if is_tracing():
        return value
    size = value.item()
    torch._check(size >= least)
    torch._check(size <= most)
    return size


def is_of_data(size: Any) -> bool:
    """Whether torch.export does not know a size in the example, as only the values of a tensor decide it."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols  # a slow import

    return isinstance(size, torch.SymInt) and bool(free_unbacked_symbols(size.node.expr))


def example_size(size: Any) -> int:
    """A size as a number: the example's, outside of a TorchScript trace; of one that the data decides, a large one.

    Args:
        size: What the shape of a tensor holds, or a product or quotient of such sizes.
    """
    return int(size) if isinstance(size, (int, Tensor)) else _symbolic_size(size, LARGE)


def _symbolic_size(size: Any, unknown: int) -> int:
    """A symbolic size at the example's sizes, and at `unknown` for what is no size of the example."""
    node = size.node
    hints = hints_of(node.shape_env)
    return int(node.expr.xreplace({symbol: hints.get(symbol, unknown) for symbol in node.expr.free_symbols}))


def hints_of(shape_env: Any) -> Any:
    """Sizes of the example, by torch.export's symbol; an attribute that torch renamed."""
    return getattr(shape_env, "backed_var_to_val", None) or getattr(shape_env, "var_to_val", {})


def extreme_of_sizes(largest: bool, a: Any, b: Any) -> Any:
    """The larger or the smaller of two sizes, as a trace records it.

    torch.export of torch 2.6 takes the one that it is in the example, and assumes nothing.
    """
    is_symbolic = isinstance(a, (torch.SymInt, torch.SymFloat)) or isinstance(b, (torch.SymInt, torch.SymFloat))
    if is_symbolic and TorchVersion(torch.__version__) < "2.9":
        return b + torch.sym_ite(a > b if largest else a < b, 1, 0) * (a - b)
    return torch.sym_max(a, b) if largest else torch.sym_min(a, b)


def dim_names(shape_env: Any) -> dict[str, str]:
    """Names that the caller's Dim objects gave to sizes, by torch.export's symbol; none of a loaded program."""
    names = getattr(shape_env, "source_name_to_debug_name", None) or {}
    found = {}
    for symbol, sources in (getattr(shape_env, "var_to_sources", None) or {}).items():
        for source in sources:
            name = source.name() if callable(source.name) else source.name  # a property from torch 2.10 on
            if name in names and str(symbol) not in found:
                found[str(symbol)] = names[name]
    return found
