"""Sizes of results that torch makes of sizes which its C++ takes as plain numbers: linspace's steps, unfold's window.

Such a result has plain numbers for sizes, and nothing that is asked of these is heard; or its sizes are those of the
example's window at every size. The call is made again at other sizes, without values; where a size of its result
follows from the sizes given, it is made of their symbols again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.backends.internals import expressions, symbolic
from torch_onnx_compat.questions.arguments import leaves_of, replace_leaves

STEPS = (1, 2, 3, 4, 6, 7, 11)
"""By how much a size is lengthened."""


def with_symbols(symbols: symbolic.Symbols, func: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """The result of a call that has taken sizes as numbers, with symbols for the sizes that are made of them.

    Args:
        symbols: Those of the run.
        func: A function of torch.
        args: Its arguments.
        kwargs: Its keyword arguments.
        result: What it has yielded.

    Returns:
        The same result where no size of it varies, or where a size is no sum of multiples of the sizes given.
    """
    given = leaves_of((args, kwargs))
    if any(map(callable, given)) or not any(_is_made(leaf, given) for leaf in leaves_of(result)):
        return result
    terms = _terms(symbols, given)
    measured = _Measured()
    for steps in _points({symbol for term in terms for symbol in term.free_symbols}):
        number_at = _Numbers(symbols, steps)
        shapes = _shapes_at(func, args, kwargs, symbols, number_at)
        if shapes is not None:  # else the function refuses these sizes
            measured.numbers.append(number_at)
            measured.shapes.append(shapes)
    ranks = [leaf.dim() for leaf in leaves_of(result) if isinstance(leaf, Tensor)]
    is_known = all([len(shape) for shape in shapes] == ranks for shapes in measured.shapes)
    if not is_known or len(measured.numbers) < len(terms) + 2:  # any numbers are a sum of as many terms
        return result
    number = itertools.count()

    def change(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        columns = measured.columns(next(number))
        before = list(leaf.shape)
        shape = [measured.size(symbols, terms, size, column) for size, column in zip(before, columns, strict=True)]
        is_same = all(one is other for one, other in zip(shape, before, strict=True))
        return leaf if is_same or not _is_made(leaf, given) else _in_shape(symbols, leaf, shape)

    return replace_leaves(result, change)


def _points(roots: Collection[Any]) -> Iterator[dict[Any, int]]:
    """By how much sizes are lengthened: not at all, each, all together."""
    yield {}
    for step in STEPS:
        yield from ({root: step} for root in roots)
        if len(roots) > 1:
            yield dict.fromkeys(roots, step)


def _is_made(leaf: Any, given: Sequence[Any]) -> bool:
    """Whether a result is a tensor of its own, and none of the arguments."""
    return isinstance(leaf, Tensor) and not any(leaf is one for one in given)


def _terms(symbols: symbolic.Symbols, given: Sequence[Any]) -> list[Any]:
    """The different expressions among the numbers and the sizes that a call is given."""
    numbers = [leaf for leaf in given if isinstance(leaf, torch.SymInt)]
    numbers += [size for leaf in given if isinstance(leaf, symbols.kind) for size in leaf.shape]
    found = dict.fromkeys(number.node.expr for number in numbers if symbolic.is_symbolic(number))
    return [expression for expression in found if expression.free_symbols and not expressions.data_symbols(expression)]


class _Numbers:
    """Expressions at the example's sizes, of which some are longer by a step."""

    def __init__(self, symbols: symbolic.Symbols, steps: Mapping[Any, int]) -> None:
        self._number = symbols.environment.number
        self._longer = {symbol: self._number(symbol) + step for symbol, step in steps.items()}

    def __call__(self, expression: Any) -> Any:
        number = self._number(expression.xreplace(self._longer))
        return int(number) if number.is_integer else float(number)


def _shapes_at(
    func: Any, args: Any, kwargs: Any, symbols: symbolic.Symbols, number_at: Callable[[Any], Any]
) -> list[tuple[int, ...]] | None:
    """The shapes of a call's results at other sizes; None where it fails."""

    def plain(leaf: Any) -> Any:
        if symbolic.is_symbolic(leaf):
            return number_at(leaf.node.expr)
        if isinstance(leaf, symbols.kind):
            shape = [number_at(size.node.expr) if symbolic.is_symbolic(size) else size for size in leaf.shape]
            return torch.empty(shape, dtype=leaf.dtype, device=leaf.device)
        return leaf

    with symbolic.without_values():
        try:
            found = func(*replace_leaves(args, plain), **replace_leaves(kwargs, plain))
        except Exception:  # of any kind: it is made at sizes that nobody asked for
            return None
        return [tuple(leaf.shape) for leaf in leaves_of(found) if isinstance(leaf, Tensor)]


@dataclass
class _Measured:
    """The shapes of what a call yields at some sizes."""

    numbers: list[_Numbers] = field(default_factory=list)
    shapes: list[list[tuple[int, ...]]] = field(default_factory=list)

    def columns(self, number: int) -> list[tuple[int, ...]]:
        """For each dimension of one of the results: its sizes."""
        return list(zip(*(shapes[number] for shapes in self.shapes), strict=True))

    def size(self, symbols: symbolic.Symbols, terms: Sequence[Any], size: Any, column: Sequence[int]) -> Any:
        """The sum of multiples of some terms that was measured; the size itself if it was, or if there is none."""
        before = size.node.expr if symbolic.is_symbolic(size) else None
        if list(column) == [size if before is None else number_at(before) for number_at in self.numbers]:
            return size
        rows = np.array([[1, *map(number_at, terms)] for number_at in self.numbers], np.float64)
        factors = np.rint(np.linalg.lstsq(rows, np.array(column, np.float64), rcond=None)[0])
        if not np.array_equal(rows @ factors, column):
            return size
        first, *others = map(int, factors)
        return symbols.size(sum((factor * term for factor, term in zip(others, terms, strict=True)), first))


def _in_shape(symbols: symbolic.Symbols, leaf: Tensor, shape: Sequence[Any]) -> Tensor:
    """A fake of a result with other sizes."""
    made: Any = symbols.run(torch.empty, (tuple(shape),), {"dtype": leaf.dtype, "device": leaf.device})
    noted = vars(leaf) if isinstance(leaf, symbols.kind) else {"actual": leaf}
    made.__dict__.update({name: value for name, value in noted.items() if name not in vars(made)})
    return made  # type: ignore[no-any-return]
