"""Where C++ takes a size as a plain number, as linspace its steps and unfold its window: the sizes of the result.

They are plain numbers, of which nothing that is asked is heard, or those of the example's window whatever the sizes.
So the call is made again at other sizes, without values, and its shapes are measured. A size that is a sum of multiples
of the sizes given is made of their symbols again; any other stays as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.backends.internals import expressions, symbolic
from torch_onnx_compat.questions.arguments import leaves_of, replace_leaves

FIRST = 3
"""Points at which sizes that are known are held against those that are measured; most are right."""

STEPS = (1, 2, 8, 3, 16, 32, 5)
"""By how much sizes are lengthened, each by another one at each point; a function may take multiples of 8 only."""


def with_symbols(symbols: symbolic.Symbols, func: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """The result of a call that has taken sizes as numbers, with symbols for the sizes that are made of them.

    Args:
        symbols: Those of the run.
        func: A function of torch.
        args: Its arguments.
        kwargs: Its keyword arguments.
        result: What it has yielded.

    Returns:
        The same result where its sizes are right, or where one is no sum of multiples of the sizes given.
    """
    given = leaves_of((args, kwargs))
    if any(map(callable, given)) or not any(_is_made(leaf, given) for leaf in leaves_of(result)):
        return result
    terms = _terms(symbols, given)
    measured = _Measured([leaf for leaf in leaves_of(result) if isinstance(leaf, Tensor)])
    roots = sorted({symbol for term in terms for symbol in term.free_symbols}, key=str)
    count = len(terms) + 4  # any numbers are a sum of as many terms as there are numbers
    with symbolic.without_values():
        for number, steps in enumerate(_points(roots, count)):
            number_at = _Numbers(symbols, steps)
            measured.add(number_at, _shapes_at(func, args, kwargs, symbols, number_at))
            if number == FIRST and len(measured.numbers) > 1 and measured.is_known:
                return result
    if not measured.has_ranks or len(measured.numbers) < len(terms) + 2:
        return result
    index = itertools.count()

    def change(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        columns = measured.columns(next(index))
        before = list(leaf.shape)
        shape = [measured.size(symbols, terms, size, column) for size, column in zip(before, columns, strict=True)]
        is_same = all(one is other for one, other in zip(shape, before, strict=True))
        return leaf if is_same or not _is_made(leaf, given) else _in_shape(symbols, leaf, shape)

    return replace_leaves(result, change)


def _points(roots: Sequence[Any], count: int) -> Iterator[dict[Any, int]]:
    """By how much sizes are lengthened: not at all, then all of them, each by another step."""
    yield {}
    for number in range(count):
        yield {root: STEPS[(number + place * (number // 2 + 1)) % len(STEPS)] for place, root in enumerate(roots)}


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

    def of_size(self, size: Any) -> Any:
        """A size of a tensor there."""
        return self(size.node.expr) if symbolic.is_symbolic(size) else size


def _shapes_at(
    func: Any, args: Any, kwargs: Any, symbols: symbolic.Symbols, number_at: _Numbers
) -> list[tuple[int, ...]] | None:
    """The shapes of a call's results at other sizes; None where it fails."""

    def plain(leaf: Any) -> Any:
        if isinstance(leaf, symbols.kind):
            return torch.empty(list(map(number_at.of_size, leaf.shape)), dtype=leaf.dtype, device=leaf.device)
        return number_at.of_size(leaf)

    try:
        found = func(*replace_leaves(args, plain), **replace_leaves(kwargs, plain))
    except Exception:  # of any kind: it is made at sizes that nobody asked for
        return None
    return [tuple(leaf.shape) for leaf in leaves_of(found) if isinstance(leaf, Tensor)]


@dataclass
class _Measured:
    """The shapes of what a call yields at some sizes."""

    results: list[Tensor]
    numbers: list[_Numbers] = field(default_factory=list)
    shapes: list[list[tuple[int, ...]]] = field(default_factory=list)

    def add(self, number_at: _Numbers, shapes: list[tuple[int, ...]] | None) -> None:
        """Takes the shapes at some sizes, unless the function refuses these."""
        if shapes is not None:
            self.numbers.append(number_at)
            self.shapes.append(shapes)

    @property
    def has_ranks(self) -> bool:
        """Whether the results have the same numbers of dimensions at all sizes."""
        ranks = [result.dim() for result in self.results]
        return all([len(shape) for shape in shapes] == ranks for shapes in self.shapes)

    @property
    def is_known(self) -> bool:
        """Whether the results' sizes are those that were measured."""
        return all(
            [tuple(map(number_at.of_size, result.shape)) for result in self.results] == shapes
            for number_at, shapes in zip(self.numbers, self.shapes, strict=True)
        )

    def columns(self, number: int) -> list[tuple[int, ...]]:
        """For each dimension of one of the results: its sizes."""
        return list(zip(*(shapes[number] for shapes in self.shapes), strict=True))

    def size(self, symbols: symbolic.Symbols, terms: Sequence[Any], size: Any, column: Sequence[int]) -> Any:
        """The sum of multiples of some terms that was measured; the size itself if it was, or if there is none."""
        if list(column) == [number_at.of_size(size) for number_at in self.numbers]:
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
