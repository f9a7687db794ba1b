"""The numbers of nodes that compute with sizes: shapes taken apart, calculated with, compared and put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.slim.facts import LIMIT, READ, Facts, Numbers, Shape, numbers_of, product
from torch_onnx_compat.graph.slim.size import at_least, compare
from torch_onnx_compat.graph.slim.table import Table

Rule: TypeAlias = Callable[[Facts, ir.Node, tuple[int, ...]], "Numbers | None"]
"""The numbers of a node's first result, whose shape is given; None if they are not known."""

ENDS_AS_INPUTS = 11
"""The opset from which Clip takes its ends as inputs; before, they are attributes."""

_RULES: Table[Rule] = Table()


def numbers_of_result(facts: Facts, node: ir.Node, shape: Shape | None) -> Numbers | None:
    """The numbers of a node's first result, if it is small and they follow from sizes."""
    rule = _RULES.get(node.op_type)
    if rule is None or node.domain or shape is None:
        return None
    fixed = tuple(size for size in shape if isinstance(size, int))
    if len(fixed) < len(shape) or math.prod(fixed) > LIMIT:
        return None
    numbers = rule(facts, node, fixed)
    if numbers is None or numbers.shape != fixed or not _is_in_range(numbers):
        return None
    return numbers


def _is_in_range(numbers: Numbers) -> bool:
    """Whether no whole number is beyond int64, where engines wrap around."""
    if numbers.dtype != object:
        return True
    return all(not isinstance(n, int) or -(2**63) <= n < 2**63 for n in numbers.reshape(-1).tolist())


def _whole(facts: Facts, values: Sequence[ir.Value | None]) -> list[Numbers] | None:
    """The numbers of all values, if they are whole ones."""
    found = [facts.numbers(value) for value in values]
    known = [numbers for numbers in found if numbers is not None and numbers.dtype == object]
    return known if len(known) == len(found) else None


def _of_one_type(facts: Facts, values: Sequence[ir.Value | None]) -> list[Numbers] | None:
    """The numbers of all values, if all are whole ones, or floats of one type."""
    found = [numbers for numbers in map(facts.numbers, values) if numbers is not None]
    return found if len(found) == len(values) and len({numbers.dtype for numbers in found}) == 1 else None


def _each(function: Callable[..., Any], *arrays: Numbers) -> Numbers | None:
    """Applies a function to the numbers, which may not know a result and yield None."""
    given = np.broadcast_arrays(*arrays)
    made = np.empty(given[0].shape, object)
    flat = [array.reshape(-1).tolist() for array in given]
    results = [function(*row) for row in zip(*flat, strict=True)]
    if any(result is None for result in results):
        return None
    made.reshape(-1)[:] = results
    return made


@_RULES.of("Shape")
def _shape(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    sizes = facts.shape(node.inputs[0])
    if sizes is None:
        return None
    made = np.empty(shape, object)
    made[:] = sizes[part_of_shape(node)]
    return made


def part_of_shape(node: ir.Node) -> slice:
    """Which axes a Shape yields."""
    end = node.attributes.get("end")
    return slice(node.attributes.get_int("start", 0), None if end is None else end.as_int())


@_RULES.of("Size")
def _size(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    sizes = facts.shape(node.inputs[0])
    return None if sizes is None else np.array(product(sizes), object)


@_RULES.of("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")
def _reshaped(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    numbers = facts.numbers(node.inputs[0])
    return None if numbers is None else numbers.reshape(shape)


@_RULES.of("Expand")
def _expanded(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    numbers = facts.numbers(node.inputs[0])
    return None if numbers is None else np.broadcast_to(numbers, shape)


@_RULES.of("Transpose")
def _transposed(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    numbers = facts.numbers(node.inputs[0])
    return None if numbers is None else numbers.transpose(node.attributes.get_ints("perm", None))


@_RULES.of("ConstantOfShape")
def _filled(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    given = node.attributes.get("value")
    if given is None:
        return np.zeros(shape, np.float32)
    tensor = given.as_tensor()
    if tensor.dtype not in READ:
        return None
    numbers = numbers_of(tensor).reshape(-1)
    return np.full(shape, numbers[0], numbers.dtype)


@_RULES.of("Range")
def _range(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    numbers = _whole(facts, node.inputs)
    if numbers is None:
        return None
    start, step = numbers[0].item(), numbers[2].item()
    return np.array([start + step * place for place in range(shape[0])], object)


@_RULES.of("Gather")
def _gather(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    data, places = facts.numbers(node.inputs[0]), facts.numbers(node.inputs[1])
    if data is None or places is None or facts.ints(node.inputs[1]) is None:
        return None
    axis = node.attributes.get_int("axis", 0) % data.ndim
    size = data.shape[axis]
    wanted = places.astype(np.int64)
    if ((wanted < -size) | (wanted >= size)).any():
        return None  # the node fails
    return np.asarray(np.take(data, wanted, axis=axis), data.dtype)


@_RULES.of("Slice")
def _slice(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    data = facts.numbers(node.inputs[0])
    given = [facts.ints(value) for value in node.inputs[1:] if value is not None]
    if data is None or any(part is None for part in given) or any(value is None for value in node.inputs):
        return None
    starts, ends = given[0] or [], given[1] or []
    axes = given[2] if len(given) > 2 and given[2] is not None else list(range(len(starts)))
    steps = given[3] if len(given) > 3 and given[3] is not None else [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        data = np.take(data, list(taken(data.shape[axis], start, end, step)), axis=axis)
    return data


def taken(size: int, start: int, end: int, step: int) -> range:
    """The places that a Slice takes from an axis."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)


@_RULES.of("Split")
def _split(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    data = facts.numbers(node.inputs[0])
    return None if data is None or data.ndim != 1 else data[: shape[0]]


@_RULES.of("Concat")
def _concat(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    parts = _of_one_type(facts, node.inputs)
    return None if parts is None else np.concatenate(parts, axis=node.attributes.get_int("axis", 0))


@_RULES.of("Cast", "CastLike")
def _cast(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    numbers, wanted = facts.numbers(node.inputs[0]), facts.dtype(node.outputs[0])
    if numbers is None or wanted not in READ:
        return None
    if numbers.dtype == object:
        return _cast_whole(numbers, wanted)
    if wanted in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return numbers.astype(wanted.numpy())
    limit = 2**31 if wanted is ir.DataType.INT32 else 2**62
    if wanted is ir.DataType.BOOL or not np.isfinite(numbers).all() or (np.abs(numbers) >= limit).any():
        return None
    return np.asarray(np.trunc(numbers), np.int64).astype(object)


def _cast_whole(numbers: Numbers, wanted: ir.DataType) -> Numbers | None:
    flat = numbers.reshape(-1).tolist()
    if wanted is ir.DataType.INT64:
        return _each(lambda n: int(n) if isinstance(n, int) else n, numbers)
    if wanted is ir.DataType.BOOL:
        return _each(lambda n: _not_equal(n, 0), numbers)
    if wanted is ir.DataType.INT32:  # no size of an axis is beyond int32; other numbers may be
        fits = all(-(2**31) <= n < 2**31 if isinstance(n, int) else at_least(n, 0) for n in flat)
        return _each(lambda n: int(n) if isinstance(n, int) else n, numbers) if fits else None
    if not all(isinstance(n, int) and abs(n) < 2**53 for n in flat):
        return None
    return numbers.astype(wanted.numpy())


def _binary(whole: Callable[..., Any], real: Callable[..., Any] | None) -> Rule:
    def rule(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
        given = [facts.numbers(value) for value in node.inputs]
        known = [numbers for numbers in given if numbers is not None]
        if len(known) < len(given):
            return None
        if all(numbers.dtype == object for numbers in known):
            return _each(partial(whole, facts), *known)
        if real is None or any(numbers.dtype != known[0].dtype for numbers in known):
            return None
        with np.errstate(all="ignore"):
            return np.asarray(real(*known))

    return rule


def _divided(facts: Facts, number: Any, divisor: Any) -> Any:
    # ONNX rounds towards 0.
    if isinstance(number, int) and isinstance(divisor, int):
        return None if divisor == 0 else abs(number) // abs(divisor) * (1 if number * divisor >= 0 else -1)
    return facts.unknowns.divide(number, divisor) if at_least(number, 0) else None


def _remainder(facts: Facts, number: Any, divisor: Any) -> Any:
    quotient = facts.unknowns.divide(number, divisor)
    return None if quotient is None else number - divisor * quotient


def _larger(facts: Facts, left: Any, right: Any) -> Any:
    order = compare(left, right)
    return left if order is not None and order >= 0 else right if order is not None else _bound(left, right)


def _bound(left: Any, right: Any) -> Any:
    """The larger of two numbers whose difference may be 0: max(n, 0) of a natural n."""
    return left if at_least(left - right, 0) else right if at_least(right - left, 0) else None


def _smaller(facts: Facts, left: Any, right: Any) -> Any:
    larger = _larger(facts, left, right)
    return None if larger is None else left + right - larger


def _not_equal(left: Any, right: Any) -> bool | None:
    order = compare(left, right)
    return None if order is None else order != 0


def _at_least(facts: Facts, left: Any, right: Any) -> bool | None:
    if at_least(left - right, 0):
        return True
    return False if at_least(right - left, 1) else None


def _of_all(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two numbers for any count of them."""

    def apply(facts: Facts, *numbers: Any) -> Any:
        found = numbers[0]
        for number in numbers[1:]:
            found = None if found is None else function(facts, found, number)
        return found

    return apply


def _truths(compared: Callable[..., Any]) -> Callable[..., Numbers]:
    """A comparison of floats as an array of Python's truths."""
    return lambda *numbers: np.asarray(compared(*numbers)).astype(object)


_RULES |= {
    "Add": _binary(lambda _, a, b: a + b, np.add),
    "Sub": _binary(lambda _, a, b: a - b, np.subtract),
    "Mul": _binary(lambda _, a, b: a * b, np.multiply),
    "Div": _binary(_divided, np.divide),
    "Max": _binary(_of_all(_larger), lambda *numbers: reduce(np.maximum, numbers)),
    "Min": _binary(_of_all(_smaller), lambda *numbers: reduce(np.minimum, numbers)),
    "Equal": _binary(lambda _, a, b: _negated(_not_equal(a, b)), _truths(np.equal)),
    "Greater": _binary(lambda _, a, b: _negated(_at_least(_, b, a)), _truths(np.greater)),
    "Less": _binary(lambda _, a, b: _negated(_at_least(_, a, b)), _truths(np.less)),
    "GreaterOrEqual": _binary(_at_least, _truths(np.greater_equal)),
    "LessOrEqual": _binary(lambda _, a, b: _at_least(_, b, a), _truths(np.less_equal)),
    "And": _binary(lambda _, a, b: a and b, None),
    "Or": _binary(lambda _, a, b: a or b, None),
    "Not": _binary(lambda _, a: not a, None),
    "Neg": _binary(lambda _, a: -a, np.negative),
    "Floor": _binary(lambda _, a: None, np.floor),
    "Ceil": _binary(lambda _, a: None, np.ceil),
    "Sqrt": _binary(lambda _, a: None, np.sqrt),
}


@_RULES.of("Clip")
def _clip(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    number, *ends = [*node.inputs, None, None][:3]
    if facts.opset < ENDS_AS_INPUTS or number is None:
        return None
    found = facts.numbers(number)
    for end, whole, real in zip(ends, (_larger, _smaller), (np.maximum, np.minimum), strict=True):
        if end is None:
            continue
        limit = facts.numbers(end)
        if found is None or limit is None or found.dtype != limit.dtype:
            return None
        found = _each(partial(whole, facts), found, limit) if found.dtype == object else np.asarray(real(found, limit))
    return found


def _negated(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


@_RULES.of("Mod")
def _mod(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    if node.attributes.get_int("fmod", 0):
        return None
    return _binary(_remainder, None)(facts, node, shape)


@_RULES.of("Where")
def _where(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    tests, sides = _whole(facts, node.inputs[:1]), _of_one_type(facts, node.inputs[1:])
    if tests is None or sides is None:
        return None
    if sides[0].dtype == object:
        return _each(lambda test, yes, no: yes if test else no, *tests, *sides)
    return np.where(tests[0].astype(bool), *sides)


@_RULES.of("ReduceProd")
def _reduce_prod(facts: Facts, node: ir.Node, shape: tuple[int, ...]) -> Numbers | None:
    given = _whole(facts, node.inputs[:1])
    if given is None or math.prod(shape) != 1:
        return None
    return np.array(product(given[0].reshape(-1).tolist()), object).reshape(shape)
