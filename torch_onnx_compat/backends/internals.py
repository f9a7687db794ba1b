"""Every use of torch.onnx's internals, each guarded; tests/backends/test_internals.py fails when one moves."""

from __future__ import annotations

import importlib
import itertools
import linecache
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import OpOverload, OpOverloadPacket
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.torch_version import TorchVersion

from torch_onnx_compat.errors import CompatError


def _first_module(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise CompatError(
        f"torch {torch.__version__} has none of {', '.join(names)}; this version of torch_onnx_compat does not know it."
    )


# TorchScript: the registry of symbolics


def symbolic_registry() -> Any:
    """Torch's registry of TorchScript symbolics, complete; its place moved in torch 2.9.

    Torch fills it for the later opsets when it first exports; what is put back after an export must not depend on that.
    """
    for opset in range(7, max_torchscript_opset() + 1):
        importlib.import_module(f"torch.onnx.symbolic_opset{opset}")
    return _first_module(
        "torch.onnx._internal.torchscript_exporter.registration", "torch.onnx._internal.registration"
    ).registry


@contextmanager
def registered_symbolics(functions: dict[str, Callable[..., Any]], opset: int) -> Iterator[None]:
    """Registers TorchScript symbolics at exactly one opset, then puts back what was there, the user's own included.

    torch looks a symbolic up at the highest opset not above the exported one, so an override at a lower opset than the
    built-in is ignored; and torch's unregister forgets what the user had registered before.
    """
    registry = symbolic_registry()
    before = {name: _overrides_of(registry, name) for name in functions}
    try:
        for name, function in functions.items():
            registry.register(name, opset, function, custom=True)
        yield
    finally:
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
    """Torch's own symbolic for an operator at an opset; None where there is none."""
    group = symbolic_registry().get_function_group(name)
    versions = [v for v in (group._functions._base if group else ()) if v <= opset]
    return group._functions._base[max(versions)] if versions else None


def max_torchscript_opset() -> int:
    """Highest opset that the TorchScript exporter writes."""
    constants = _first_module("torch.onnx._constants")
    return int(getattr(constants, "ONNX_TORCHSCRIPT_EXPORTER_MAX_OPSET", constants.ONNX_MAX_OPSET))


# TorchScript: the file


@contextmanager
def without_weights(of: Callable[[torch.Tensor], bool]) -> Iterator[dict[str, torch.Tensor]]:
    """While active, the TorchScript exporter leaves weights out; it makes three copies of each on the way to the file.

    Args:
        of: Whether it is to leave out this one.

    Yields:
        The weights that were left out, by name; in the file they are empty.
    """
    graph: Any = torch._C.Graph
    raw = graph._export_onnx
    left_out: dict[str, torch.Tensor] = {}

    def export(self: Any, weights: dict[str, torch.Tensor], *rest: Any) -> Any:
        found = {name: tensor for name, tensor in weights.items() if of(tensor)}
        left_out.update(found)
        return raw(self, {**weights, **{n: torch.empty(0, dtype=t.dtype) for n, t in found.items()}}, *rest)

    graph._export_onnx = export
    try:
        yield left_out
    finally:
        graph._export_onnx = raw


# dynamo: the registry of torchlib functions


@contextmanager
def cached_torchlib() -> Iterator[None]:
    """Builds dynamo's registry once a process instead of once an export (0.5 to 1.2 s each)."""
    registration = _first_module("torch.onnx._internal.exporter._registration")
    owner = registration.ONNXRegistry
    raw = vars(owner)["from_torchlib"]

    def from_torchlib(cls: Any, *args: Any, **kwargs: Any) -> Any:
        key = (args, tuple(sorted(kwargs.items())))
        if key not in _torchlib:
            _torchlib[key] = raw.__func__(cls, *args, **kwargs)
        copy = _overriding(cls)
        copy.__dict__.update(_torchlib[key].__dict__)
        copy.functions = {target: list(metas) for target, metas in _torchlib[key].functions.items()}
        return copy

    owner.from_torchlib = classmethod(from_torchlib)
    try:
        yield
    finally:
        owner.from_torchlib = raw


_torchlib: dict[Any, Any] = {}


def _overriding(cls: Any) -> Any:
    """A registry in which a function that is registered for an operator replaces torch's for real values.

    Up to torch 2.9 both would stay, and a guess from the arguments' types would choose between them.
    """

    class Overriding(cls):  # type: ignore[misc]
        def register_op(self, target: Any, function: Callable[..., Any], is_complex: bool = False) -> None:
            super().register_op(target=target, function=function, is_complex=is_complex)
            for metas in self.functions.values():
                if any(m.is_custom for m in metas):
                    metas[:] = [m for m in metas if m.is_custom or m.is_complex]

    return Overriding.__new__(Overriding)


def torchlib_function(target: OpOverload) -> Callable[..., Any] | None:
    """Torch's own lowering of an operator in the registry built last; None where there is none."""
    for registry in reversed(list(_torchlib.values())):
        metas = [m for m in registry.get_decomps(target) if not m.is_custom and not m.is_complex]
        if metas:
            function: Callable[..., Any] = metas[0].onnx_function
            return function
    return None


def composites_of_dynamic_sizes() -> Any:
    """Lets the translation compute composite operators, such as matmul, on sizes that are not fixed.

    torch 2.6 interprets the program once more without it and fails there: "Cannot call numel() on tensor with
    symbolic sizes".
    """
    return enable_python_dispatcher() if TorchVersion(torch.__version__) < "2.7" else nullcontext()


def rnn_decompositions(dynamic: bool) -> Any:
    """Torch's own context that keeps a dynamic sequence length dynamic in LSTM and GRU; torch 2.15 introduced it."""
    strategies = _first_module("torch.onnx._internal.exporter._capture_strategies")
    patch = getattr(strategies, "patch_dynamic_shape_rnn_decompositions", None)
    return patch(dynamic) if patch is not None else nullcontext()


def overloads(op: str) -> list[Any]:
    """All overloads of a qualified operator that this torch has; none if it lacks the operator.

    In the namespace ``_operator`` are Python's own, which torch.export records of sizes.
    """
    namespace, _, name = op.partition("::")
    if namespace == "_operator":
        return [getattr(operator, name)]
    packet = getattr(getattr(torch.ops, namespace), name, None)
    if not isinstance(packet, OpOverloadPacket):
        return []
    return [getattr(packet, overload) for overload in packet.overloads()]


# dynamo: what a capture took for granted


def size_conditions(program: torch.export.ExportedProgram) -> list[str]:
    """The conditions on input sizes under which a captured program is right; torch 2.9 and later keep them."""
    return list(getattr(program, "_guards_code", None) or ())


@contextmanager
def without_function_modes(kind: type) -> Iterator[None]:
    """Takes the TorchFunctionModes of a class off their stack for a while; torch.cond cannot be captured under them."""
    overrides = _first_module("torch.overrides")
    modes: list[Any] = []
    try:
        while overrides._get_current_function_mode_stack():
            modes.append(overrides._pop_mode())
        for mode in reversed(modes):
            if not isinstance(mode, kind):
                overrides._push_mode(mode)
        yield
    finally:
        while overrides._get_current_function_mode_stack():
            overrides._pop_mode()
        for mode in reversed(modes):
            overrides._push_mode(mode)


# TorchScript: traces and conditionals


def trace(module: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> None:
    """Traces a module as the TorchScript exporter does, for what can be seen on the way."""
    jit: Any = torch.jit
    jit._get_trace_graph(module, tensors)


def scripted_if(then: Any, otherwise: Any, inputs: int, outputs: int) -> Callable[..., Any]:
    """A scripted function of a condition and tensors that calls one of two traced functions."""
    tensors = _listed("x", inputs)
    results = _listed("r", outputs)
    # A traced function that returns one tensor in a tuple gives the tensor.
    target = f"({results},)" if outputs > 1 else results
    source = (
        f"def made(c, {tensors}):\n    if bool(c):\n        {target} = then({tensors})\n    else:\n"
        f"        {target} = otherwise({tensors})\n    return {results}\n"
    )
    return _scripted(source, {"then": then, "otherwise": otherwise})


def scripted_loop(kind: str, body: Any, carried: int, read: int, rows: int) -> Callable[..., Any]:
    """A scripted function that calls a traced function again and again.

    Args:
        kind: ``for``: the function's first argument is how often; the body takes the number of the round first.
            ``while``: it is whether there is a first round; the body returns first whether there is another.
        body: Takes what is carried, then what is read; returns what is carried, then what is appended.
        carried: How many tensors are carried from round to round.
        read: How many tensors are only read.
        rows: How many tensors a round appends.

    Returns:
        A function of the control value, what is carried, what is read, and the empty tensors to append to; it returns
        what is carried and what was appended to.
    """
    state, reads, items, lists = (_listed(n, k) for n, k in (("c", carried), ("x", read), ("y", rows), ("l", rows)))
    first = "tensor(i)" if kind == "for" else ""
    given = ", ".join(part for part in (first, state, reads) if part)
    made = ", ".join(part for part in ("" if kind == "for" else "t", state, items) if part)
    made = f"({made},)" if "," in made else made
    head = "for i in range(int(control)):" if kind == "for" else "go = bool(control)\n    while go:"
    lines = [f"{made} = body({given})", *(f"l{k} = cat([l{k}, y{k}.unsqueeze(0)])" for k in range(rows))]
    lines += [] if kind == "for" else ["go = bool(t)"]
    result = ", ".join(part for part in (state, lists) if part)
    parameters = ", ".join(part for part in ("control", state, reads, lists) if part)
    inside = "".join(f"        {line}\n" for line in lines)
    source = f"def made(control, {parameters[9:]}):\n    {head}\n{inside}    return {result}\n"
    return _scripted(source, {"body": body, "cat": torch.cat, "tensor": torch.tensor})


def _listed(name: str, count: int) -> str:
    return ", ".join(f"{name}{index}" for index in range(count))


def _scripted(source: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """Scripts a function; torch reads its source, which for a made one has to lie where linecache finds it."""
    name = f"<scripted {next(_made)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope["__name__"] = __name__
    try:
        exec(compile(source, name, "exec"), scope)
        function: Callable[..., Any] = torch.jit.script(scope["made"])
    finally:
        del linecache.cache[name]
    return function


_made = itertools.count()


# dynamo: conditionals and loops, called as operators with all that they read as arguments, since torch's functions that
# find that out by themselves cannot follow the run-time module. No two arguments may share memory.


def chosen(condition: Any, then: Callable[..., Any], otherwise: Callable[..., Any], read: list[Any]) -> tuple[Any, ...]:
    """One of two functions of the same tensors."""
    return tuple(torch.ops.higher_order.cond(condition, then, otherwise, tuple(read)))


def while_looped(body: Callable[..., Any], state: list[Any], read: list[Any]) -> list[Any]:
    """A while_loop; the first value carried says whether to go on, and is not given to the body."""
    operator = getattr(torch.ops.higher_order, "while_loop", None)
    if operator is None:
        raise CompatError(f"torch {torch.__version__} has no while_loop")
    # torch takes a clone away before it looks whether a result is one of the arguments.
    made = operator(lambda go, *_: go.logical_and(go), lambda go, *rest: body(*rest), tuple(state), tuple(read))
    return list(made)


def exports_scan() -> bool:
    """Whether torch's ONNX exporter has a lowering for its scan; torch 2.9 does."""
    hops = _first_module("torch.onnx._internal.exporter._torchlib.ops.hop")
    return hasattr(torch.ops.higher_order, "scan") and hasattr(hops, "higher_order_scan")


def scanned(body: Callable[..., Any], rows: list[Any], state: list[Any], read: list[Any]) -> list[Any]:
    """A scan over the rows of some tensors: what is carried in the end, then what the rounds made, stacked.

    The body is given a row of each, what is carried and what is read; it returns the carried and what it made.
    """
    if not exports_scan():
        raise CompatError(f"torch {torch.__version__} does not export scan")
    count, width = len(state), len(rows)

    def combine(*tensors: Any) -> list[Any]:
        carried, items = tensors[:count], tensors[count : count + width]
        return list(body(*items, *carried, *tensors[count + width :]))

    return list(torch.ops.higher_order.scan(combine, list(state), list(rows), tuple(read)))


# torch.export: the modules that are running


@contextmanager
def unwinding(kind: type[BaseException]) -> Iterator[None]:
    """Ends quietly when an exception of this kind comes out of a module.

    torch.export's tracer keeps a stack of the modules that are running, from which an exception takes nothing.
    """
    mode = get_proxy_mode()
    stack = getattr(getattr(mode, "tracer", None), "module_stack", None)
    before = dict(stack or ())
    try:
        yield
    except kind:
        if stack is not None:
            stack.clear()
            stack.update(before)
