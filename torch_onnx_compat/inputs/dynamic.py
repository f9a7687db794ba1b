"""Which axes are dynamic: `dynamic`, torch's `dynamic_axes` and torch's `dynamic_shapes`, read into one form."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from torch_onnx_compat.errors import ArgumentError, unknown_name
from torch_onnx_compat.inputs.inputs import Axis, Inputs


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
            sum of others, such as `"past + new"` or `"2 * batch + 1"`, or stand with its bounds: `("tokens", 1, 512)`.
        dynamic_axes: torch.onnx.export's: by ONNX name, a dict of axis to name or a list of axes.
        dynamic_shapes: torch.export's: a dict by argument or a sequence in the order of the arguments.
        output_names: Names that `dynamic_axes` may also hold; an output's axes follow from the inputs'.

    Raises:
        CompatError: More than one of the three is given, or one is of another kind or names an input or axis that does
            not exist, or axes of one name differ in size.
    """
    _check_kinds(dynamic, dynamic_axes, dynamic_shapes)
    given = [
        n for n, v in (("dynamic", dynamic), ("dynamic_axes", dynamic_axes), ("dynamic_shapes", dynamic_shapes)) if v
    ]
    if len(given) > 1:
        raise ArgumentError(f"{' and '.join(given)} both say which axes are dynamic; pass one of them.")
    reader = _Reader(inputs, *given)
    if isinstance(dynamic, str):
        for index, tensor in enumerate(inputs.tensors):
            if tensor.dim():
                reader.add(index, 0, dynamic)
    elif dynamic:
        reader.by_name(dynamic)
    elif dynamic_axes:
        reader.by_torch_s_names({k: v for k, v in dynamic_axes.items() if k not in output_names})
    elif dynamic_shapes:
        reader.shapes(dynamic_shapes)
    return reader.result()


def _check_kinds(dynamic: Any, dynamic_axes: Any, dynamic_shapes: Any) -> None:
    for keyword, value, kinds, wanted in (
        ("dynamic", dynamic, (str, Mapping), "'batch' or a dict by input, such as {'x': {0: 'batch'}}"),
        ("dynamic_axes", dynamic_axes, (Mapping,), "a dict by input, such as {'x': {0: 'batch'}}"),
        ("dynamic_shapes", dynamic_shapes, (Mapping, list, tuple), "a dict by argument, or a tuple of one entry each"),
    ):
        if value is not None and not isinstance(value, kinds):
            raise ArgumentError(f"{keyword}={value!r} is a {type(value).__name__}; wanted {wanted}.")
    if isinstance(dynamic, str) and not dynamic.strip():
        raise ArgumentError(f"dynamic={dynamic!r} names no axis; wanted a name, such as 'batch', or None.")


class _Reader:
    def __init__(self, inputs: Inputs, keyword: str = "dynamic") -> None:
        self.inputs = inputs
        self.keyword = keyword
        self.axes: list[dict[int, Axis]] = [{} for _ in inputs.tensors]

    def result(self) -> Inputs:
        """The inputs with the axes that were read."""
        read = replace(self.inputs, axes=tuple(self.axes))
        if self.keyword == "dynamic_axes":
            read = _split_names(read)
        _check_sizes(read)
        return read

    def by_name(self, spec: Mapping[str, Any]) -> None:
        for name, value in spec.items():
            if name in self.inputs.names:
                self.node((), [self.inputs.names.index(name)], value, depth=len(self.inputs.paths))
                continue
            indices = [i for i, argument in enumerate(self.inputs.arguments) if argument == name]
            if not indices:
                raise ArgumentError(f"{self.keyword}: {unknown_name('input', str(name), self._known())}")
            self.node((name,), indices, value, depth=1)

    def by_torch_s_names(self, spec: Mapping[str, Any]) -> None:
        """As torch.onnx.export reads dynamic_axes: it warns of names that it does not know.

        A name that resembles an input's, or no known name at all, is an error: axes that the caller means to vary
        would come out fixed.
        """
        known = self._known()
        foreign = [n for n in spec if n not in known and not get_close_matches(str(n), known, n=1, cutoff=0.75)]
        if foreign and len(foreign) < len(spec):
            names = ", ".join(repr(name) for name in foreign)
            text = f"dynamic_axes names {names}, no input of the model and none of output_names; it is left out."
            warnings.warn(text, stacklevel=5)
            spec = {name: value for name, value in spec.items() if name not in foreign}
        self.by_name(spec)

    def _read_name(self, text: str | tuple[Any, ...]) -> Axis:
        if isinstance(text, tuple):
            return _axis_with_bounds(text)
        return Axis(_checked_name(text)) if self.keyword == "dynamic_axes" else _axis_of_name(text)

    def _known(self) -> list[str]:
        return list(dict.fromkeys((*self.inputs.names, *self.inputs.arguments)))

    def shapes(self, spec: Any) -> None:
        if not isinstance(spec, Mapping):
            parameters = self.inputs.parameters
            spec = self._with_variadic(spec)
            if len(spec) > len(parameters):
                raise ArgumentError(
                    f"dynamic_shapes has {len(spec)} entries, but forward takes {len(parameters)} positional "
                    f"arguments: {', '.join(parameters)}; give one entry for each."
                )
            spec = dict(zip(parameters, spec, strict=False))
        else:
            spec = dict(spec)
            for name in [name for name in spec if name not in self._known() and f"{name}_0" in self.inputs.parameters]:
                self._check_leaf(repr(name), spec[name])
                spec.update({f"{name}_{i}": value for i, value in enumerate(spec.pop(name))})
        numbers = dict(self.inputs.numbers)
        for name in [name for name in spec if name in numbers]:
            if _axis(spec.pop(name), name, self._read_name) is not None:
                raise ArgumentError(
                    f"dynamic_shapes: argument {name!r} is the number {numbers[name]}, which the file holds; pass "
                    f"torch.tensor({numbers[name]}) for an input, or None here."
                )
        self.by_name({k: v for k, v in spec.items() if v is not None})

    def _with_variadic(self, spec: Sequence[Any]) -> Sequence[Any]:
        """The entries of a sequence, those of ``*args`` among them, which torch nests, one for each argument."""
        more = len(self.inputs.parameters) - len(spec) + 1
        last = spec[-1] if spec else None
        if (
            more < 1
            or not isinstance(last, (tuple, list))
            or len(last) != more
            or len(spec) > len(self.inputs.parameters)
        ):
            return spec
        held = [
            tensor
            for tensor, name in zip(self.inputs.tensors, self.inputs.arguments, strict=True)
            if name == self.inputs.parameters[len(spec) - 1]
        ]
        is_nested = len(held) == 1 and all(item is None or isinstance(item, (Mapping, tuple, list)) for item in last)
        return (*spec[:-1], *last) if is_nested else spec

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
        self._check_leaf(_path(place), spec)
        items = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
        for key, value in items:
            inside = [i for i in indices if str(self.inputs.paths[i][depth]) == str(key)]
            if not inside and value is not None:
                known = sorted({str(self.inputs.paths[i][depth]) for i in indices})
                raise ArgumentError(f"dynamic axes of {_path(place)}: {unknown_name('part', str(key), known)}")
            if inside:
                self.node((*place, key), inside, value, depth + 1)

    def leaf(self, index: int, spec: Any) -> None:
        name, rank = self.inputs.names[index], self.inputs.tensors[index].dim()
        self._check_leaf(f"input {name!r}", spec)
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
        if type(axis) is not int or not -tensor.dim() <= axis < tensor.dim():
            raise ArgumentError(
                f"dynamic axis {axis!r} of input {name!r}: it has {tensor.dim()} axes, shape {tuple(tensor.shape)}; "
                + (f"use 0..{tensor.dim() - 1}." if tensor.dim() else "leave it out.")
            )
        axis %= tensor.dim()
        if self.keyword != "dynamic_shapes" and isinstance(value, int):
            raise ArgumentError(
                f"{self.keyword}: axis {axis} of input {name!r} is called {value!r}, a {type(value).__name__}; wanted "
                f"a name, such as 'batch'. A fixed axis is left out."
            )
        parsed = _axis(value, f"{name}_dynamic_axes_{axis + 1}", self._read_name)
        if parsed is not None:
            is_firm = parsed.is_firm and self.keyword != "dynamic_axes"
            self.axes[index][axis] = replace(parsed, is_firm=is_firm)

    def _check_leaf(self, place: str, spec: Any) -> None:
        if not isinstance(spec, (str, Mapping, list, tuple)):
            raise ArgumentError(
                f"{self.keyword} of {place} is {spec!r}, a {type(spec).__name__}; wanted the name of axis 0, a dict of "
                f"axis to name such as {{0: 'batch'}}, or a list with an entry for each axis."
            )


def _is_leaf_spec(spec: Any) -> bool:
    """A string, or a mapping from axis numbers; anything else may mirror a nested argument."""
    if isinstance(spec, str):
        return True
    return (
        isinstance(spec, Mapping)
        and bool(spec)
        and all(type(k) is int and not isinstance(v, Mapping) for k, v in spec.items())
    )


def _axis(value: Any, default: str, read_name: Callable[[str | tuple[Any, ...]], Axis]) -> Axis | None:
    """An axis from a name or one of torch.export's Dim objects; None where it is static."""
    if value is None or isinstance(value, int):
        return None
    if isinstance(value, (str, tuple)):
        return read_name(value)
    kind = type(value).__name__
    if kind == "_DimHint":
        hint = getattr(value, "type", value)
        if "STATIC" in str(hint):
            return None
        is_auto = "AUTO" in str(hint)
        return Axis(default, required=not is_auto, is_firm=not is_auto)
    name = getattr(value, "__name__", default)
    if kind == "_StaticDim":
        return None
    root = getattr(value, "root", None)
    if root is not None:
        offset = value.fn(0)
        return Axis(name, terms=((root.__name__, int(value.fn(1) - offset)),), offset=int(offset))
    if not hasattr(value, "min"):
        raise ArgumentError(f"dynamic axis: {value!r} is neither a name nor a torch.export Dim.")
    # Without a bound max is, by torch's version, a huge number or an infinity, which int() does not take.
    return Axis(name, min=max(int(value.min), 1), max=None if value.max > 2**31 else int(value.max))


def _axis_with_bounds(value: tuple[Any, ...]) -> Axis:
    name, least, most = (*value, None)[:3] if len(value) in (2, 3) else ("", 0, 0)
    is_right = type(name) is str and type(least) is int and (most is None or type(most) is int)
    if not is_right or least < 1 or (most is not None and most < least):
        raise ArgumentError(
            f"dynamic axis: {value!r} is no name with bounds; wanted (name, smallest size, largest size or None), "
            f"the smallest being 1 at least, such as ('tokens', 1, 512)."
        )
    return Axis(_checked_name(name), min=least, max=most)


_LINEAR = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.USub, ast.Name, ast.Load)


def _checked_name(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ArgumentError(f"dynamic axis: {text!r} is no name; wanted one such as 'batch'.")
    return text


def _axis_of_name(text: str) -> Axis:
    """An axis by its name, or one that is a sum of multiples of others; any other text is a name, as in ONNX."""
    try:
        expression = ast.parse(_checked_name(text).strip(), mode="eval")
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
        raise ArgumentError(
            f"dynamic axis {text!r} is no sum of multiples of axes, such as 'past + new' or '2 * batch'."
        )
    return Axis(text.strip(), terms=tuple((n, f) for n, f in zip(names, factors, strict=True) if f), offset=offset)


def _split_names(inputs: Inputs) -> Inputs:
    """Gives axes of one name that have several sizes a name for each size: to torch's dynamic_axes names are labels."""
    numbers: dict[str, dict[int, str]] = {}
    for tensor, axes in zip(inputs.tensors, inputs.axes, strict=True):
        for dim, axis in axes.items():
            sizes = numbers.setdefault(axis.name, {})
            sizes.setdefault(tensor.shape[dim], f"{axis.name}_{len(sizes) + 1}" if sizes else axis.name)
    split = {name: sizes for name, sizes in numbers.items() if len(sizes) > 1}
    for name, sizes in split.items():
        texts = ", ".join(f"{new} where it is {size}" for size, new in sizes.items())
        warnings.warn(f"dynamic_axes: axes called {name!r} have several sizes; they are called {texts}.", stacklevel=5)
    renamed = tuple(
        {dim: replace(axis, name=numbers[axis.name][tensor.shape[dim]]) for dim, axis in axes.items()}
        for tensor, axes in zip(inputs.tensors, inputs.axes, strict=True)
    )
    return replace(inputs, axes=renamed)


def _check_sizes(inputs: Inputs) -> None:
    sizes, bounds = inputs.sizes(), inputs.bounds()
    for name, (least, most) in bounds.items():
        size = sizes.get(name, least)
        if (size < least and least > 1) or (most is not None and size > most):
            raise ArgumentError(
                f"axis {name!r} is {size} long in the example, but declared for {least} to {most or 'any'}; give one "
                f"within, or other bounds."
            )
    for name, tensor, axes in zip(inputs.names, inputs.tensors, inputs.axes, strict=True):
        for dim, axis in axes.items():
            if tensor.shape[dim] != axis.size(sizes):
                raise ArgumentError(
                    f"axis {axis.name!r} is {tensor.shape[dim]} long in axis {dim} of input {name!r} but should be "
                    f"{axis.size(sizes)} there as elsewhere; axes of one name have one size. Give each its name: "
                    f"dynamic={_named_apart(inputs)}."
                )


def _named_apart(inputs: Inputs) -> dict[str, dict[int, str]]:
    """The dynamic axes, with a name for each size that one name has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        split = _split_names(inputs)
    return {n: {d: a.name for d, a in axes.items()} for n, axes in zip(split.names, split.axes, strict=True) if axes}


def _path(place: tuple[Any, ...]) -> str:
    return ".".join(str(p) for p in place) or "the inputs"
