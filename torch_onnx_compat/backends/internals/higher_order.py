"""Calls of torch's higher-order operators, and the state of a capture around them.

The operators are called directly, with every tensor that they read as an argument. torch's public functions (torch.cond
and others) would find these tensors themselves, but cannot trace through the run-time module. No two arguments may
share memory.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from torch_onnx_compat.backends.internals.find import first_module
from torch_onnx_compat.errors import CompatError


def call_cond(
    condition: Any, then: Callable[..., Any], otherwise: Callable[..., Any], read: list[Any]
) -> tuple[Any, ...]:
    """Calls cond: one of two functions of the same tensors, which may compute with any size of the model's inputs."""
    operands = (*read, *_symbols_of_capture())
    functions = _of_first(len(read), then), _of_first(len(read), otherwise)
    with _formulas_of_python():
        return tuple(torch.ops.higher_order.cond(condition, *functions, operands))


def _of_first(count: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of some tensors as one of more operands, which it knows without being given them."""
    return lambda *operands: function(*operands[:count])


@contextmanager
def _formulas_of_python() -> Iterator[None]:
    """While active, torch computes formulas of sizes anew that hold Python's remainder, or a floor or ceiling, too."""
    proxies = first_module("torch.fx.experimental.proxy_tensor")
    functions = first_module("torch.utils._sympy.functions")
    table: dict[Any, Callable[..., Any]] = getattr(proxies, "_sympy_handlers", dict)()
    more: dict[str, Callable[..., Any]] = {
        "Max": torch.sym_max,  # torch's own, of any number of operands, is none that a program may have
        "Min": torch.sym_min,
        "PythonMod": operator.mod,
        "FloatTrueDiv": operator.truediv,
        "IntTrueDiv": operator.truediv,
        "CeilToInt": math.ceil,
        "FloorToInt": math.floor,
        "TruncToInt": math.trunc,
        "ToFloat": torch.sym_float,
    }
    new = {kind: more[name] for name in more if (kind := getattr(functions, name, None)) is not None}
    before = {kind: table[kind] for kind in new if kind in table}
    table.update(new)  # torch keeps the table, and hands it out
    try:
        yield
    finally:
        for kind in new:
            del table[kind]
        table.update(before)


def _symbols_of_capture() -> list[torch.SymInt]:
    """The sizes that the present graph knows by a symbol; a branch's graph knows those that it is given.

    Sizes that are computed of them are found again by their formula. Before torch 2.9 a graph keeps no table of them.
    """
    table = getattr(getattr(get_proxy_mode(), "tracer", None), "sympy_expr_tracker", {})
    values = (getattr(entry, "value", None) for entry in table.values())
    return [value for value in values if isinstance(value, torch.SymInt)]


@contextmanager
def merging_operands() -> Iterator[None]:
    """While active, torch.export gives each cond an operand once.

    What follows a cond may show that two of its sizes are one. torch then has one node for both, and names the
    parameters of a branch by the operands: two of one name are no function.
    """
    utils = first_module("torch._export.utils")
    name = "_name_hoo_subgraph_placeholders"
    plain = getattr(utils, name, None)
    if plain is None:
        yield
        return

    def merged(graph: torch.fx.GraphModule) -> Any:
        for node in graph.graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond):
            _merge_equal_operands(graph, node)
        return plain(graph)

    setattr(utils, name, merged)
    try:
        yield
    finally:
        setattr(utils, name, plain)


def _merge_equal_operands(graph: torch.fx.GraphModule, cond: torch.fx.Node) -> None:
    condition, then, otherwise, operands = cond.args
    assert isinstance(operands, (tuple, list))
    once = tuple(dict.fromkeys(operands))
    for branch in (then, otherwise) if len(once) < len(operands) else ():
        assert isinstance(branch, torch.fx.Node)
        nodes: Any = getattr(graph, str(branch.target)).graph
        kept: dict[Any, torch.fx.Node] = {}
        for operand, parameter in zip(operands, nodes.find_nodes(op="placeholder"), strict=True):
            if kept.setdefault(operand, parameter) is not parameter:
                parameter.replace_all_uses_with(kept[operand])
                nodes.erase_node(parameter)
    cond.args = (condition, then, otherwise, once)


def call_while_loop(body: Callable[..., Any], state: list[Any], read: list[Any]) -> list[Any]:
    """Calls while_loop; the first carried value says whether to go on, and is not passed to the body."""
    while_loop = getattr(torch.ops.higher_order, "while_loop", None)
    if while_loop is None:
        raise CompatError(f"torch {torch.__version__} has no while_loop")
    # Not go.clone(): torch removes clones before it checks that no result is an argument.
    round_of = _of_first(len(state) + len(read), lambda go, *rest: body(*rest))
    operands = (*read, *_symbols_of_capture())
    with _formulas_of_python():
        return list(while_loop(lambda go, *_: go.logical_and(go), round_of, tuple(state), operands))


def exports_scan() -> bool:
    """Whether torch's ONNX exporter translates scan; torch 2.9 does."""
    hops = first_module("torch.onnx._internal.exporter._torchlib.ops.hop")
    return hasattr(torch.ops.higher_order, "scan") and hasattr(hops, "higher_order_scan")


def call_scan(body: Callable[..., Any], rows: list[Any], state: list[Any], read: list[Any]) -> list[Any]:
    """Calls scan over the rows of some tensors; returns the final carried tensors, then the stacked results.

    The body takes a row of each tensor, the carried tensors and the read ones; it returns the carried tensors and the
    results of the round.
    """
    if not exports_scan():
        raise CompatError(f"torch {torch.__version__} does not export scan")
    count, width = len(state), len(rows)

    def combine(*tensors: Any) -> list[Any]:
        carried, items = tensors[:count], tensors[count : count + width]
        return list(body(*items, *carried, *tensors[count + width :]))

    return list(torch.ops.higher_order.scan(combine, list(state), list(rows), tuple(read)))


@contextmanager
def without_function_modes(kind: type | tuple[type, ...]) -> Iterator[list[Any]]:
    """While active, TorchFunctionModes of a class are off their stack; torch.cond cannot be captured under them.

    Yields:
        Those that are off, the last one sees a call first.
    """
    overrides = first_module("torch.overrides")
    modes: list[Any] = []
    try:
        while overrides._get_current_function_mode_stack():
            modes.append(overrides._pop_mode())
        for mode in reversed(modes):
            if not isinstance(mode, kind):
                overrides._push_mode(mode)
        yield [mode for mode in reversed(modes) if isinstance(mode, kind)]
    finally:
        while overrides._get_current_function_mode_stack():
            overrides._pop_mode()
        for mode in reversed(modes):
            overrides._push_mode(mode)


_FLEXIBLE = "torch.nn.attention.flex_attention"
_UNCOMPILED = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
"""Torch's own switch, in torch 2.9 and later."""


@contextmanager
def without_compilation() -> Iterator[None]:
    """While active, functions of torch.compile run as they are written, and a model's own torch.cond works.

    Dynamo cannot compile under a TorchFunctionMode that it does not know: a function with fullgraph=True raises then,
    and a trace refuses every one. torch.cond, while_loop and scan need what it makes of their functions; they compile
    without this package's modes. Flexible attention does without.
    """
    with _compile_without_own_modes(), _call_uncompiled(), _attend_uncompiled():
        yield


@contextmanager
def _compile_without_own_modes() -> Iterator[None]:
    plain = first_module("torch._higher_order_ops.utils")._set_compilation_env

    @contextmanager
    def environment() -> Iterator[None]:
        stack = first_module("torch.overrides")._get_current_function_mode_stack()
        own = tuple({type(mode) for mode in stack if type(mode).__module__.startswith("torch_onnx_compat.")})
        with plain(), without_function_modes(own), _compile_again():
            yield

    scopes = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("torch._higher_order_ops.")]
    scopes = [scope for scope in scopes if scope.get("_set_compilation_env") is plain]
    try:
        for scope in scopes:
            scope["_set_compilation_env"] = environment
        yield
    finally:
        for scope in scopes:
            scope["_set_compilation_env"] = plain


@contextmanager
def _call_uncompiled() -> Iterator[None]:
    """Functions of torch.compile are called as they are; before torch 2.14 a trace refuses them nevertheless."""
    if not sys.modules.keys() & {"torch._dynamo.eval_frame", _FLEXIBLE}:  # importing it takes long
        yield
        return
    eval_frame = first_module("torch._dynamo.eval_frame")
    if hasattr(eval_frame, "_use_eager_on_nested_compile"):
        with eval_frame._use_eager_on_nested_compile():
            yield
    else:
        with (
            torch.compiler.set_stance("force_eager"),
            first_module("torch._dynamo.config").patch(error_on_nested_fx_trace=False),
        ):
            yield


def _compile_again() -> AbstractContextManager[None]:
    """Ends `_call_uncompiled` for a while; newer torch knows its own operators by itself."""
    eval_frame = sys.modules.get("torch._dynamo.eval_frame")
    is_newer = hasattr(eval_frame, "_use_eager_on_nested_compile")
    return nullcontext() if is_newer else torch.compiler.set_stance("default")


@contextmanager
def _attend_uncompiled() -> Iterator[None]:
    """Flexible attention makes no surroundings for a compilation, which would hide its operator from the entries."""
    scope = vars(sys.modules.get(_FLEXIBLE, ModuleType("")))
    plain = partial(nullcontext, "eager")
    own: dict[str, Any] = {"setup_compilation_env": plain, "_set_compilation_env": plain, _UNCOMPILED: True}
    before: dict[str, Any] = {name: scope[name] for name in own if name in scope}
    try:
        scope.update({name: own[name] for name in before})
        yield
    finally:
        scope.update(before)


@contextmanager
def suppress_in_capture(kind: type[BaseException]) -> Iterator[None]:
    """Suppresses an exception that leaves a running module, as contextlib.suppress does, also during a capture.

    torch.export's tracer keeps a stack of the running modules, which an exception does not unwind.
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
