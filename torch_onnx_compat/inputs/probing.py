"""The model at other sizes than the example's: what differs between two runs is dynamic, whoever looks at it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

from torch_onnx_compat.inputs.inputs import Inputs

T = TypeVar("T")

BATCHES = range(4, 16)
"""Sizes of a first axis that is taken for a batch, which no stride shortens and no window pads."""

STEPS = (1, 2, 32)
"""By how much axes are lengthened: a model may take only some sizes, such as multiples of 32."""


def other_sizes(inputs: Inputs, *names: str) -> Iterator[Inputs]:
    """The example with longer dynamic axes, the likeliest to be accepted first.

    Args:
        inputs: The example; without dynamic axes there are no other sizes.
        names: The axes to lengthen; all by default.
    """
    sizes = inputs.sizes()
    for step in STEPS if sizes else ():
        yield inputs.at_sizes({name: sizes[name] + step for name in names or sizes})


def far_sizes(inputs: Inputs) -> Iterator[Inputs]:
    """The example with dynamic axes so much longer that they differ after strides too: 65 // 4 is still 64 // 4."""
    sizes = inputs.sizes()
    for odd in (1, 0) if sizes else ():
        yield inputs.at_sizes({name: (size + 64 if size > 64 else 2 * size) + odd for name, size in sizes.items()})


def distinct_sizes(inputs: Inputs) -> Iterator[Inputs]:
    """The example at sizes that all differ, after strides too; those that cost least first.

    A batch is smaller there: twice of everything is several times the work.
    """
    sizes = inputs.sizes()
    dims: dict[str, set[int]] = {}
    for dim, axis in ((dim, axis) for axes in inputs.axes for dim, axis in axes.items()):
        for name in axis.roots:
            dims.setdefault(name, set()).add(dim)
    batches = {name: sizes[name] // 2 + 1 for name in sizes if dims.get(name) == {0} and sizes[name] in BATCHES}
    for number, longer in enumerate(far_sizes(inputs)):
        if batches and not number:
            yield inputs.at_sizes({**longer.sizes(), **batches})
        yield longer


def first_accepted(candidates: Iterable[Inputs], run: Callable[[Inputs], T | None]) -> T | None:
    """What comes of the first inputs that the model accepts; None where it accepts none.

    Args:
        candidates: Inputs to try.
        run: Runs the model; an error, or None, says that it did not accept them.
    """
    for inputs in candidates:
        try:
            result = run(inputs)
        except MemoryError:
            raise
        except Exception:  # the model's own refusal of a size that was only a probe
            continue
        if result is not None:
            return result
    return None


def differing(one: Iterable[T], other: Iterable[T], key: Callable[[T], Hashable], value: Callable[[T], Any]) -> list[T]:
    """What one run did that another did not do, or did otherwise.

    Args:
        one: What the run did, in order.
        other: What the other did.
        key: What tells apart what is done; the n-th of one key is compared with the other's n-th.
        value: What should be equal.
    """
    theirs = _number_items(other, key)
    return [
        item
        for name, item in _number_items(one, key).items()
        if name not in theirs or value(theirs[name]) != value(item)
    ]


def _number_items(items: Iterable[T], key: Callable[[T], Hashable]) -> dict[tuple[Hashable, int], T]:
    seen: Counter[Hashable] = Counter()
    table = {}
    for item in items:
        table[key(item), seen[key(item)]] = item
        seen[key(item)] += 1
    return table
