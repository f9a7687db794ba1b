"""Decomposes a captured program where an operator has no translation, and leaves the rest as it was captured.

Torch's exporter traces the whole program once more for it, which takes most of an export's time: thousands of sizes are
computed with symbols, for the few operators that no translation is registered for. Here each of those is traced alone,
once for the same arguments, by the same decompositions. What that cannot do is left to torch, for the whole program.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind, TensorArgument
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.torch_version import TorchVersion
from torch.utils import _pytree as pytree

from torch_onnx_compat.backends.internals.find import first_module
from torch_onnx_compat.backends.internals.views import take_single_views


@contextmanager
def decompose_by_node() -> Iterator[None]:
    """While active, torch's dynamo exporter decomposes single operators instead of tracing the program again."""
    passes = first_module("torch.onnx._internal.exporter._fx_passes")
    decompose_whole = passes.decompose_with_registry

    def decompose(program: ExportedProgram, registry: Any) -> ExportedProgram:
        take_single_views(program)
        try:
            return decompose_nodes(program, tables_of(registry))
        except TooMuch:
            return drop_assertions(decompose_whole(_with_buffers(program), registry))

    passes.decompose_with_registry = decompose
    try:
        yield
    finally:
        passes.decompose_with_registry = decompose_whole


def drop_assertions(program: ExportedProgram) -> ExportedProgram:
    """Drops the assertions about sizes, which ONNX cannot express, and the comparisons that only they read.

    Torch's exporter drops the assertions only, and fails to translate bounds such as 2**64 - 4, which are no int64.
    """
    for node in list(program.graph.nodes):
        if node.target is torch.ops.aten._assert_scalar.default:
            program.graph.erase_node(node)
    for node in reversed(list(program.graph.nodes)):
        if not node.users and getattr(node.target, "__module__", "") == "_operator":
            program.graph.erase_node(node)
    program.graph_module.recompile()
    return program


def _with_buffers(program: ExportedProgram) -> ExportedProgram:
    """The program with parameters as buffers: torch 2.6 asserts that a program writes to buffers only, 2.9 does not."""
    if TorchVersion(torch.__version__) >= "2.9":
        return program
    specs = [
        replace(spec, kind=InputKind.BUFFER, persistent=True) if spec.kind is InputKind.PARAMETER else spec
        for spec in program.graph_signature.input_specs
    ]
    signature = replace(program.graph_signature, input_specs=specs)
    tensors = {name: value.detach() for name, value in program.state_dict.items()}
    return cast(Any, program)._update(program.graph_module, signature, state_dict=tensors)  # type: ignore[no-any-return]


class TooMuch(Exception):
    """The program needs torch's own decomposition of the whole."""


def tables_of(registry: Any) -> Tables:
    """The tables of a registry, made once for those that translate the same: torch takes a tenth of a second for it."""
    decompositions = first_module("torch.onnx._internal.exporter._decomp")
    translated = frozenset(decompositions.get_onnx_implemented_overloads(registry))
    operators = frozenset(torch._C._dispatch_get_all_op_names())
    return _make_tables(translated, operators, frozenset(torch._decomp.decomposition_table.items()))


@functools.lru_cache(maxsize=16)
def _make_tables(translated: frozenset[Any], operators: frozenset[str], forms: frozenset[Any]) -> Tables:
    """The tables; they depend on the operators and decompositions of the process too, to which a user may add."""
    return Tables(translated)


class Tables:
    """What is translated as it is, and how the rest is decomposed.

    Args:
        translated: Operators that have a translation.
    """

    def __init__(self, translated: Collection[Any]) -> None:
        decompositions = first_module("torch.onnx._internal.exporter._decomp")
        self.translated = translated
        table = decompositions.create_onnx_friendly_decomposition_table(self.translated)
        programs = first_module("torch.export.exported_program")
        self.composites, self.table = programs._split_decomp_table_to_cia_and_python_decomp(table)
        self._kept = programs._special_op_to_preserve_cia

    def concerns(self, target: Any) -> bool:
        """Whether an operator has to be decomposed.

        Of composite operators those that give a view are decomposed though torchlib has a translation of some: torch's
        own way never keeps them, so those translations are not tried, and some are wrong.
        """
        if not isinstance(target, OpOverload):
            return False
        if target._can_decompose():
            return self.composites.get(target) is not self._kept
        return target in self.table

    def translates(self, node: Node) -> bool:
        """Whether a node can be translated: an operator, or a function of Python or torch on sizes."""
        return node.target in self.translated or node.target in (operator.getitem, getattr(torch, "sym_sum", None))

    @contextmanager
    def active(self) -> Iterator[None]:
        """While active, composite operators that are translated stay whole; the others are decomposed in any case."""
        override = first_module("torch.export.exported_program")._override_composite_implicit_decomp
        with override({op: form for op, form in self.composites.items() if form is self._kept}):
            yield


def decompose_nodes(program: ExportedProgram, tables: Tables) -> ExportedProgram:
    """The program, decomposed where that is needed.

    Raises:
        TooMuch: An operator is one that this cannot do.
    """
    graph = Graph()
    results, end = cast(Any, graph.graph_copy(program.graph_module.graph, {}, return_output_node=True))
    graph.output(results).meta = end.meta
    if any(isinstance(node.target, HigherOrderOperator) for node in graph.nodes):
        raise TooMuch
    _Functional(graph).run()
    concerned = [node for node in graph.nodes if node.op == "call_function" and tables.concerns(node.target)]
    if concerned:
        with tables.active():
            decomposition = _Decomposition(graph, tables)
            for node in concerned:
                decomposition.decompose(node)
    for node in list(graph.nodes):
        if node.target is getattr(torch, "sym_sum", None):
            _add_sizes(graph, node)
        elif node.op == "call_function" and not isinstance(node.target, OpOverload) and not tables.translates(node):
            raise TooMuch
    graph.eliminate_dead_code()
    module = GraphModule(program.graph_module, graph)
    module.meta.update(program.graph_module.meta)
    return program._update(module, _with_outputs(program.graph_signature, graph))


def _with_outputs(signature: ExportGraphSignature, graph: Graph) -> ExportGraphSignature:
    """The signature, by the names that the outputs' nodes have now."""
    results = list(graph.nodes)[-1].args[0]
    specs = [
        replace(spec, arg=TensorArgument(result.name)) if isinstance(spec.arg, TensorArgument) else spec
        for spec, result in zip(signature.output_specs, results, strict=True)
    ]
    return replace(signature, output_specs=specs)


class _Functional:
    """Replaces operators that write to a tensor by those that return a new one.

    Args:
        graph: Changed in place.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._sharing: dict[int, list[Node]] = {}
        """Nodes by the storage of their tensors; views share it."""
        self._places: dict[Node, int] = {}

    def run(self) -> None:
        """Replaces them all.

        Raises:
            TooMuch: One writes to an input, a weight or a view that is read otherwise afterwards.
        """
        for place, node in enumerate(self._graph.nodes):
            self._places[node] = place
        for node in list(self._graph.nodes):
            if isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
                self._replace(node)
            for storage in _storages(node):
                self._sharing.setdefault(storage, []).append(node)

    def _replace(self, node: Node) -> None:
        functional = _functional_of(node.target)
        written = node.args[0] if node.args else None
        if functional is None or not isinstance(written, Node) or len(set(_storages(written) + _storages(node))) != 1:
            raise TooMuch
        (storage,) = set(_storages(written))
        chain = _wholes(written)
        for other in self._sharing[storage]:
            if other not in chain and self._users_after(other, node):
                raise TooMuch
        node.target = functional
        _check_type(node)
        self._pass_on(written, node, node)
        value = node
        for part, whole in itertools.pairwise(chain):
            with self._graph.inserting_after(value):
                scatter = _SCATTERS[part.target]
                value = self._graph.call_function(scatter, (whole, value, *part.args[1:]), dict(part.kwargs))
            value.meta = {**node.meta, "val": whole.meta["val"]}
            self._places[value] = self._places[node]
            self._sharing[storage].append(value)
            self._pass_on(whole, value, node)

    def _users_after(self, node: Node, place: Node) -> list[Node]:
        return [user for user in node.users if self._places[user] > self._places[place]]

    def _pass_on(self, before: Node, after: Node, place: Node) -> None:
        """Lets what follows a place read another node."""
        for user in self._users_after(before, place):
            user.replace_input_with(before, after)


_SCATTERS: dict[Any, Any] = {
    torch.ops.aten.slice.Tensor: torch.ops.aten.slice_scatter.default,
    torch.ops.aten.select.int: torch.ops.aten.select_scatter.default,
}
"""What puts a part back into its whole, by the operator that took it."""


def _wholes(written: Node) -> list[Node]:
    """A tensor that is written to, what it is a part of, and so on up to a whole one.

    Raises:
        TooMuch: The whole is an input or a weight.
    """
    chain = [written]
    while chain[-1].target in _SCATTERS:
        whole = chain[-1].args[0]
        assert isinstance(whole, Node)
        chain.append(whole)
    if chain[-1].op != "call_function":
        raise TooMuch
    return chain


def _functional_of(target: Any) -> Any:
    """The operator that returns what another one writes to its first argument; None if there is none."""
    schema = target._schema
    written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    name = schema.name.partition("::")[2]
    if len(written) != 1 or written[0] is not schema.arguments[0] or not name.endswith("_") or name.endswith("__"):
        return None
    packet = getattr(getattr(torch.ops, target.namespace), name[:-1], None)
    functional = getattr(packet, target._overloadname, None)
    if functional is None or functional._schema.is_mutable:
        return None
    return functional if _parameters(functional) == _parameters(target) else None


def _parameters(target: Any) -> list[Any]:
    """An operator's parameters after the first by name and type; the first has two names among dropouts."""
    return [(a.name, str(a.type)) for a in target._schema.arguments[1:]]


def _check_type(node: Node) -> None:
    """Checks that an operator that returns a new tensor gives it the type that the one written to has.

    Raises:
        TooMuch: It would promote it.
    """
    wanted: Any = node.meta["val"]
    args, kwargs = _exchange((node.args, node.kwargs), lambda inner: inner.meta["val"])
    try:
        with wanted.fake_mode:
            value = cast(Any, node.target)(*args, **kwargs)
    except Exception as error:  # the operator's own rule for tensors without values; torch's own way may do without
        raise TooMuch from error
    if value.dtype != wanted.dtype or len(value.shape) != len(wanted.shape):
        raise TooMuch
    node.meta["val"] = wanted


def _storages(node: Node) -> list[int]:
    """The storages of what a node yields.

    Raises:
        TooMuch: It has none: within torch.vmap a tensor stands for one row of another.
    """
    values = pytree.tree_leaves(node.meta.get("val"))
    try:
        return [value.untyped_storage()._cdata for value in values if isinstance(value, Tensor)]
    except NotImplementedError as error:
        raise TooMuch from error


def _exchange(arguments: Any, exchange: Callable[[Node], Any]) -> Any:
    """Arguments of a node with something else in place of nodes."""
    return map_arg(arguments, exchange)


class _Decomposition:
    """Traces single operators into a graph.

    Args:
        graph: Changed in place.
        tables: How they are decomposed.
    """

    def __init__(self, graph: Graph, tables: Tables) -> None:
        self._graph, self._tables = graph, tables
        self._known: dict[Any, GraphModule] = {}

    def decompose(self, node: Node) -> None:
        """Replaces an operator by what it is made of.

        Raises:
            TooMuch: It makes a size of values, writes to a tensor, or needs a constant.
        """
        if node.meta.get("unbacked_bindings"):
            raise TooMuch
        inputs = list(dict.fromkeys(node.all_input_nodes))
        with self._graph.inserting_before(node):
            copied: dict[Node, Any] = {}
            traced = self._trace(node, inputs)
            placeholders = [inner for inner in traced.graph.nodes if inner.op == "placeholder"]
            copied.update(zip(placeholders, inputs, strict=True))
            for inner in traced.graph.nodes:
                if inner.op == "call_function":
                    made = copied[inner] = self._graph.node_copy(inner, lambda n: copied[n])
                    made.meta = _origin(node) | {"val": inner.meta.get("val")}
            (result,) = next(inner for inner in traced.graph.nodes if inner.op == "output").args
        self._put(node, _exchange(result, copied.__getitem__))

    def _put(self, node: Node, result: Any) -> None:
        if isinstance(result, Node):
            node.replace_all_uses_with(result)
        else:
            for user in list(node.users):
                if user.target is not operator.getitem:
                    raise TooMuch
                part = result[user.args[1]]
                if not isinstance(part, Node):
                    raise TooMuch
                user.replace_all_uses_with(part)
                self._graph.erase_node(user)
        self._graph.erase_node(node)

    def _trace(self, node: Node, inputs: list[Node]) -> GraphModule:
        """What an operator does, as a graph of its inputs; shared by nodes with the same arguments."""
        numbers = {inner: number for number, inner in enumerate(inputs)}
        arguments = _exchange((node.args, node.kwargs), lambda inner: _Input(numbers[inner]))
        values = [inner.meta["val"] for inner in inputs]
        key = (node.target, repr(arguments), repr([_layout(value) for value in values]))
        if key not in self._known:
            self._known[key] = self._trace_anew(node.target, arguments, values)
        return self._known[key]

    def _trace_anew(self, target: Any, arguments: Any, values: list[Any]) -> GraphModule:
        def call(*given: Any) -> Any:
            args, kwargs = pytree.tree_map_only(_Input, lambda place: given[place.number], arguments)
            return target(*args, **kwargs)

        traced = self._make(call, values, keeps_strides=True)
        if any(map(_is_write, traced.graph.nodes)):  # a decomposition that restores the strides that its input has
            traced = self._make(call, values, keeps_strides=False)
            if any(node.target in _OF_STRIDES for node in traced.graph.nodes):
                raise TooMuch
        for inner in list(traced.graph.nodes):
            if inner.target is torch.ops.aten.sym_numel.default:
                _multiply_sizes(traced.graph, inner)
            elif not self._is_final(inner):
                raise TooMuch
        return traced

    def _make(self, call: Callable[..., Any], values: list[Any], *, keeps_strides: bool) -> GraphModule:
        fake_mode = next((value.fake_mode for value in values if isinstance(value, FakeTensor)), None)
        if fake_mode is None:
            raise TooMuch
        try:
            with fake_mode, enable_python_dispatcher():
                fresh = [_like(value, keeps_strides=keeps_strides) for value in values]
                return make_fx(call, decomposition_table=self._tables.table)(*fresh)
        except Exception as error:  # any of torch's decompositions; torch's own way may do it, and reports it otherwise
            raise TooMuch from error

    def _is_final(self, node: Node) -> bool:
        """Whether a node of a trace can stay."""
        if node.op != "call_function":
            return node.op != "get_attr"
        return self._tables.translates(node) and not _is_write(node)


def _multiply_sizes(graph: Graph, numel: Node) -> None:
    """Computes a number of elements from the sizes, as the translation knows no operator for it."""
    tensor: Any = numel.args[0]
    product: Any = 1
    with graph.inserting_before(numel):
        for dim, size in enumerate(tensor.meta["val"].shape):
            factor: Any = size
            if isinstance(size, torch.SymInt):
                factor = graph.call_function(torch.ops.aten.sym_size.int, (tensor, dim))
                factor.meta["val"] = size
            product = graph.call_function(operator.mul, (product, factor))
    numel.replace_all_uses_with(product)
    graph.erase_node(numel)


def _add_sizes(graph: Graph, sym_sum: Node) -> None:
    """Adds sizes two by two: torch traces sums of separate terms, and translates those of a list."""
    terms: Any = sym_sum.args if len(sym_sum.args) > 1 else sym_sum.args[0]
    total = terms[0]
    with graph.inserting_before(sym_sum):
        for term in terms[1:]:
            values = [part.meta["val"] if isinstance(part, Node) else part for part in (total, term)]
            total = graph.call_function(operator.add, (total, term))
            total.meta = _origin(sym_sum) | {"val": sum(values)}
    sym_sum.replace_all_uses_with(total)
    graph.erase_node(sym_sum)


@dataclass(frozen=True)
class _Input:
    """Stands for an input of a node in its arguments."""

    number: int


def _layout(value: Any) -> Any:
    """All of an argument that a trace depends on."""
    if not isinstance(value, Tensor):
        return value
    return value.dtype, value.device, tuple(value.shape), value.stride()


def _is_write(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def _like(value: Any, *, keeps_strides: bool) -> Any:
    """An argument of its own: one traced graph gives several nodes one tensor, and a trace tells inputs by identity."""
    if not isinstance(value, Tensor):
        return value
    if keeps_strides:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return torch.empty(value.shape, dtype=value.dtype, device=value.device)


_OF_STRIDES = {torch.ops.aten.as_strided.default, torch.ops.aten.view.default}
"""Operators that are refused, or compute something else, where their input has other strides."""


def _origin(node: Node) -> dict[str, Any]:
    """Where in the model a node comes from."""
    return {key: node.meta[key] for key in ("nn_module_stack", "stack_trace", "from_node") if key in node.meta}
