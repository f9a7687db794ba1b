"""Which axes are dynamic: `dynamic`, torch's `dynamic_axes` and torch's `dynamic_shapes`, read into one form."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.inputs import Axis, Inputs


def with_axes(
    inputs: Inputs,
    dynamic: str | Mapping[str, Any] | None,
    dynamic_axes: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    output_names: Sequence[str] = (),
) -> Inputs:
    """The inputs with their dynamic axes.

    Args:
        inputs: Bound example inputs.
        dynamic: `"batch"` for axis 0 of every input, or by ONNX input name or forward argument name an axis name
            (axis 0), a dict of axis to name, or a structure of these that mirrors a nested argument. A name may be a
            sum of others, such as `"past + new"` or `"2 * batch + 1"`.
        dynamic_axes: torch.onnx.export's: by ONNX name, a dict of axis to name or a list of axes.
        dynamic_shapes: torch.export's: a dict by argument or a sequence in the order of the arguments.
        output_names: Names that `dynamic_axes` may also hold; an output's axes follow from the inputs'.

    Raises:
        CompatError: More than one of the three is given, or one names an input or axis that does not exist, or axes
            of one name differ in size.
    """
    given = [
        n for n, v in (("dynamic", dynamic), ("dynamic_axes", dynamic_axes), ("dynamic_shapes", dynamic_shapes)) if v
    ]
    if len(given) > 1:
        raise CompatError(f"{' and '.join(given)} both say which axes are dynamic; pass one of them.")
    reader = _Reader(inputs)
    if isinstance(dynamic, str):
        for index, tensor in enumerate(inputs.tensors):
            if tensor.dim():
                reader.add(index, 0, dynamic)
    elif dynamic:
        reader.by_name("dynamic", dynamic)
    elif dynamic_axes:
        reader.by_name("dynamic_axes", {k: v for k, v in dynamic_axes.items() if k not in output_names})
    elif dynamic_shapes:
        reader.shapes(dynamic_shapes)
    result = replace(inputs, axes=tuple(reader.axes))
    _check_sizes(result)
    return result


class _Reader:
    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.axes: list[dict[int, Axis]] = [{} for _ in inputs.tensors]

    def by_name(self, keyword: str, spec: Mapping[str, Any]) -> None:
        for name, value in spec.items():
            if name in self.inputs.names:
                self.node((), [self.inputs.names.index(name)], value, depth=len(self.inputs.paths))
                continue
            indices = [i for i, argument in enumerate(self.inputs.arguments) if argument == name]
            if not indices:
                known = {*self.inputs.names, *self.inputs.arguments}
                raise CompatError(f"{keyword}: {unknown_name('input', str(name), known)}")
            self.node((name,), indices, value, depth=1)

    def shapes(self, spec: Any) -> None:
        if not isinstance(spec, Mapping):
            spec = dict(zip(self.inputs.parameters, spec, strict=False))
        elif set(spec) == {"args"} and "args_0" in self.inputs.arguments:
            spec = {f"args_{i}": value for i, value in enumerate(spec["args"])}
        self.by_name("dynamic_shapes", {k: v for k, v in spec.items() if v is not None})

    def node(self, place: tuple[Any, ...], indices: list[int], spec: Any, depth: int) -> None:
        """Reads the spec of an argument, or of a part of it, that holds the tensors at `indices`."""
        if spec is None:
            return
        if _is_leaf_spec(spec) or all(len(self.inputs.paths[i]) <= depth for i in indices):
            # What is said of a whole argument, such as a cache, is not of the numbers in it.
            held = [i for i in indices if self.inputs.tensors[i].dim()] if len(indices) > 1 else indices
            for index in held:
                self.leaf(index, spec)
            return
        items = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
        for key, value in items:
            inside = [i for i in indices if str(self.inputs.paths[i][depth]) == str(key)]
            if not inside and value is not None:
                known = sorted({str(self.inputs.paths[i][depth]) for i in indices})
                raise CompatError(f"dynamic axes of {_path(place)}: {unknown_name('part', str(key), known)}")
            if inside:
                self.node((*place, key), inside, value, depth + 1)

    def leaf(self, index: int, spec: Any) -> None:
        name, rank = self.inputs.names[index], self.inputs.tensors[index].dim()
        if isinstance(spec, str):
            self.add(index, 0, spec)
        elif isinstance(spec, Mapping):
            for axis, value in spec.items():
                self.add(index, axis, value)
        elif (all(isinstance(item, int) and not isinstance(item, bool) for item in spec) and len(spec) != rank) or (
            isinstance(spec, list) and all(type(item) is int and -rank <= item < rank for item in spec)
        ):
            for axis in spec:
                self.add(index, axis, f"{name}_dynamic_axes_{axis + 1}")
        else:
            for axis, value in enumerate(spec):
                self.add(index, axis, value)

    def add(self, index: int, axis: Any, value: Any) -> None:
        name, tensor = self.inputs.names[index], self.inputs.tensors[index]
        if not isinstance(axis, int) or not -tensor.dim() <= axis < tensor.dim():
            raise CompatError(
                f"dynamic axis {axis!r} of input {name!r}: it has {tensor.dim()} axes, shape {tuple(tensor.shape)}; "
                f"use 0..{tensor.dim() - 1}."
            )
        axis %= tensor.dim()
        parsed = _axis(value, f"{name}_dynamic_axes_{axis + 1}")
        if parsed is not None:
            self.axes[index][axis] = parsed


def _is_leaf_spec(spec: Any) -> bool:
    """A string, or a mapping from axis numbers; anything else may mirror a nested argument."""
    if isinstance(spec, str):
        return True
    return (
        isinstance(spec, Mapping)
        and bool(spec)
        and all(type(k) is int and not isinstance(v, Mapping) for k, v in spec.items())
    )


def _axis(value: Any, default: str) -> Axis | None:
    """An axis from a name or one of torch.export's Dim objects; None where it is static."""
    if value is None or isinstance(value, int):
        return None
    if isinstance(value, str):
        return _axis_of_name(value)
    kind = type(value).__name__
    if kind == "_DimHint":
        hint = getattr(value, "type", value)
        if "STATIC" in str(hint):
            return None
        return Axis(default, required="AUTO" not in str(hint))
    name = getattr(value, "__name__", default)
    if kind == "_StaticDim":
        return None
    root = getattr(value, "root", None)
    if root is not None:
        offset = value.fn(0)
        return Axis(name, terms=((root.__name__, int(value.fn(1) - offset)),), offset=int(offset))
    if not hasattr(value, "min"):
        raise CompatError(f"dynamic axis: {value!r} is neither a name nor a torch.export Dim.")
    # Without a bound max is, by torch's version, a huge number or an infinity, which int() does not take.
    return Axis(name, min=max(int(value.min), 1), max=None if value.max > 2**31 else int(value.max))


_LINEAR = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.USub, ast.Name, ast.Load)


def _axis_of_name(text: str) -> Axis:
    """An axis by its name, or one that is a sum of multiples of others; any other text is a name, as in ONNX."""
    try:
        expression = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return Axis(text)
    nodes = list(ast.walk(expression))
    if isinstance(expression.body, ast.Name) or not all(
        isinstance(n, _LINEAR) or (isinstance(n, ast.Constant) and type(n.value) is int) for n in nodes
    ):
        return Axis(text)
    code = compile(expression, "dynamic", "eval")
    names = list(dict.fromkeys(n.id for n in nodes if isinstance(n, ast.Name)))

    def at(*sizes: int) -> int:
        return int(eval(code, {"__builtins__": {}}, dict(zip(names, sizes, strict=True))))  # no call, no attribute

    offset = at(*(0 for _ in names))
    factors = [at(*(int(name == one) for name in names)) - offset for one in names]
    sizes = range(2, 2 + len(names))
    if not any(factors) or at(*sizes) != offset + sum(f * s for f, s in zip(factors, sizes, strict=True)):
        raise CompatError(f"dynamic axis {text!r} is no sum of multiples of axes, such as 'past + new' or '2 * batch'.")
    return Axis(text.strip(), terms=tuple((n, f) for n, f in zip(names, factors, strict=True) if f), offset=offset)


def _check_sizes(inputs: Inputs) -> None:
    sizes = inputs.sizes()
    for name, tensor, axes in zip(inputs.names, inputs.tensors, inputs.axes, strict=True):
        for dim, axis in axes.items():
            if tensor.shape[dim] != axis.size(sizes):
                raise CompatError(
                    f"axis {axis.name!r} is {tensor.shape[dim]} long in axis {dim} of input {name!r} but should be "
                    f"{axis.size(sizes)} there as elsewhere; axes of one name have one size: use another name."
                )


def _path(place: tuple[Any, ...]) -> str:
    return ".".join(str(p) for p in place) or "the inputs"
