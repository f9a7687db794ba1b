"""Builder, the `op` that lowering rules and alternatives write against: ONNX operators of one opset, by name.

The calling convention is that of symbolics: ``op.Mul(x, 0.5)``, ``op.Slice(x, [0], [1])``. A Python number among the
inputs becomes a constant of the element type of the first Value beside it, a list of int becomes a 1-D int64 constant,
None an omitted input. Keyword arguments are attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from torch_onnx_compat.graph import shapes
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.obstacle import Refusal


class Scope:
    """State that all rules of one conversion share: the names in use, and the constants made so far."""

    def __init__(self, model: ir.Model) -> None:
        self._graph = model.graph
        self._constants: dict[tuple[ir.DataType, tuple[int, ...], bytes], ir.Value] = {}
        self._names: set[str | None] = set()
        self.learn_names(model)

    def learn_names(self, model: ir.Model) -> None:
        """Adds the names in the model, to which other passes may have added nodes."""
        for graph in model.graphs():
            self._names.update(value.name for value in (*graph.inputs, *graph.initializers.values()))
            for node in graph:
                self._names.update((node.name, *(value.name for value in node.outputs)))

    def unique_name(self, stem: str) -> str:
        """A name that no value and no node has, derived from the stem."""
        name, count = stem, 1
        while name in self._names:
            name, count = f"{stem}_{count}", count + 1
        self._names.add(name)
        return name

    def constant(self, array: npt.NDArray[Any]) -> ir.Value:
        """An initializer of the main graph, visible in every subgraph; equal arrays share one."""
        dtype = ir.DataType.from_numpy(array.dtype)
        key = (dtype, array.shape, array.tobytes())
        if key not in self._constants:
            name = self.unique_name("constant")
            value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(array.shape))
            value.const_value = ir.Tensor(array, name=name)
            self._graph.register_initializer(value)
            self._constants[key] = value
        return self._constants[key]


class Builder:
    """Collects the nodes that will replace one node.

    Attributes:
        opset: The opset that the nodes belong to.
        nodes: The nodes so far, in order.
    """

    def __init__(self, scope: Scope, replaced: ir.Node, opset: int) -> None:
        self.opset = opset
        self.nodes: list[ir.Node] = []
        self._scope = scope
        self._replaced = replaced

    def __getattr__(self, op_type: str) -> Callable[..., ir.Value]:
        if not op_type[:1].isupper():
            raise AttributeError(op_type)

        def call(*inputs: Any, **attributes: Any) -> ir.Value:
            return self.node(op_type, inputs, attributes)[0]

        return call

    def node(
        self, op_type: str, inputs: Sequence[Any], attributes: dict[str, Any], outputs: int = 1, name: str | None = None
    ) -> tuple[ir.Value, ...]:
        """Adds one node.

        Args:
            op_type: Operator of the default domain.
            inputs: Values, Python numbers, lists of int, arrays, None.
            attributes: By name, as Python values or ir.Attr; those that are None are left out.
            outputs: How many outputs the node has.
            name: The node's name; by default made from those of the replaced node and the operator.
        """
        stem = f"{self._replaced.outputs[0].name}_{op_type}"
        named = f"{self._replaced.name}_{op_type}" if self._replaced.name else stem
        node = ir.Node(
            "",
            op_type,
            self._inputs(inputs),
            ir.convenience.convert_attributes({k: v for k, v in attributes.items() if v is not None}),
            num_outputs=outputs,
            version=self.opset,
            name=self._scope.unique_name(named) if name is None else name,
            metadata_props=dict(self._replaced.metadata_props),
        )
        for value in node.outputs:
            value.name = self._scope.unique_name(stem)
        shapes.infer_node(node, self.opset)
        self.nodes.append(node)
        return tuple(node.outputs)

    def clone(self, node: ir.Node, inputs: Sequence[Any], **changed: Any) -> tuple[ir.Value, ...]:
        """Adds the node's operator with other inputs and with changed attributes; None drops an attribute."""
        return self.node(node.op_type, inputs, {**node.attributes, **changed}, len(node.outputs), node.name)

    def constant(self, value: npt.ArrayLike, dtype: ir.DataType) -> ir.Value:
        """A constant tensor."""
        return self._scope.constant(np.ascontiguousarray(np.asarray(value, dtype.numpy())).reshape(np.shape(value)))

    def within(self) -> Builder:
        """Another builder, of nodes that stand inside one of these."""
        return Builder(self._scope, self._replaced, self.opset)

    def unique_name(self, stem: str) -> str:
        """A name that no value and no node has, derived from the stem."""
        return self._scope.unique_name(stem)

    def refuse(self, reason: str, hint: str = "") -> NoReturn:
        """Gives up on the node.

        Args:
            reason: The feature of the node that the opset lacks, e.g. ``"padding mode 'wrap'"``.
            hint: A remedy other than a higher opset, e.g. ``"fold its axes to a constant"``.

        Raises:
            Refusal: Always.
        """
        raise Refusal(reason, hint)

    def dtype(self, value: ir.Value) -> ir.DataType:
        """Element type of a value; refuses the node where it is unknown."""
        return value.dtype or self.refuse(f"the element type of {value.name!r} is unknown")

    def rank(self, value: ir.Value) -> int:
        """Number of axes of a value; refuses the node where it is unknown."""
        if value.shape is None:
            self.refuse(f"the rank of {value.name!r} is unknown")
        return len(value.shape)

    def size(self, value: ir.Value, axis: int) -> int | None:
        """Size of an axis, None where it is dynamic or the rank is unknown."""
        size = value.shape[axis] if value.shape is not None else None
        return size if isinstance(size, int) else None

    def sizes(self, value: ir.Value) -> list[int] | None:
        """Sizes of all axes, None where one is dynamic or the rank is unknown."""
        sizes = [axis for axis in value.shape if isinstance(axis, int)] if value.shape is not None else None
        return sizes if sizes is not None and len(sizes) == len(value.shape or ()) else None

    def numbers(self, value: ir.Value) -> npt.NDArray[Any] | None:
        """The numbers of a constant; None where the value is computed or fed at run time."""
        tensor = constant_tensor(value)
        return None if tensor is None else tensor.numpy()

    def ints(self, value: ir.Value, what: str) -> list[int]:
        """The numbers of a constant that must become an attribute; refuses the node where they are computed."""
        numbers = self.numbers(value)
        if numbers is None:
            self.refuse(f"its {what}, computed at run time, must be constant for the opset")
        return [int(number) for number in numbers.reshape(-1)]

    def _inputs(self, inputs: Iterable[Any]) -> list[ir.Value | None]:
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        like = next((i for i in given if isinstance(i, ir.Value)), None)
        return [self._input(i, like) for i in given]

    def _input(self, item: Any, like: ir.Value | None) -> ir.Value | None:
        if item is None or isinstance(item, ir.Value):
            return item
        if isinstance(item, list):
            return self.constant(item, ir.DataType.INT64)
        return self.constant(item, self.dtype(like) if like is not None else ir.DataType.INT64)
