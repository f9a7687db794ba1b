"""Which sizes in a TorchScript trace are a matter of values: those of selections, of what was found, and the like.

A trace has the shape of every tensor, but not where its sizes come from. A dimension of a result is taken to be one of
an argument's if it has its size.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


class Known(dict[int, frozenset[int]]):
    """The dimensions whose sizes values decide, by the number of the value in the trace."""

    def __init__(self, inputs: int | None) -> None:
        super().__init__()
        self.inputs = inputs


Origins = tuple[bool, frozenset[int], bool]
"""Whether a value depends on values of inputs, the numbers of the sizes it depends on, and if values decide one."""

NO_SIZES: frozenset[int] = frozenset()


class DataSizes:
    """What is known of one trace so far.

    Args:
        inputs: How many of the trace's inputs are the model's; the others are weights. By default all are.
    """

    def __init__(self, inputs: int | None = None) -> None:
        self._known = Known(inputs)
        self.varying: set[int] = set()
        """Numbers of values that vary though the trace does not say so: those that a loop in the file carries."""
        self.origins: dict[int, Origins] = {}
        """Where values come from, by their numbers, as far as anybody asked."""

    def vary(self, value: Any) -> None:
        """Notes that a value varies though the trace does not say so."""
        self.varying.add(value.unique())
        self.origins.clear()

    def note(self, value: Any, dim: int) -> None:
        """Notes that values decide the size of a dimension of a traced tensor, whatever the trace says."""
        self.origins.clear()
        self._known[value.unique()] = self._known.get(value.unique(), frozenset()) | {dim}

    def dims(self, value: Any) -> frozenset[int]:
        """The dimensions of a traced tensor whose sizes values decide."""
        known = self._known
        todo = [value]
        while todo:
            current = todo[-1]
            if current.unique() in known:
                todo.pop()
                continue
            node = current.node()
            waiting = [] if _is_new(node) else [v for v in node.inputs() if v.unique() not in known]
            if waiting:
                known.update({v.unique(): frozenset() for v in waiting if v.node().kind() in _LEAVES})
                waiting = [v for v in waiting if v.unique() not in known]
            if waiting:
                todo += waiting
                continue
            known[current.unique()] = _dims_of(current, node, known)
            todo.pop()
        return known[value.unique()]

    def may_differ(self, one: Any, other: Any) -> bool:
        """Whether two traced tensors that are of one shape now may be of others for other values.

        The sizes that values decide are the same where the same operators made them what they are.
        """
        return bool(self.dims(one) | self.dims(other)) and _makers(one) != _makers(other)

    def is_of_data(self, node: Any) -> bool:
        """Whether values decide the size that an aten::size or aten::numel, or its conversion to a tensor, yields."""
        if node.kind() == "prim::NumToTensor":
            node = next(node.inputs()).node()
        if node.kind() not in ("aten::size", "aten::numel"):
            return False
        tensor, *dim = node.inputs()
        dims = self.dims(tensor)
        number = dim[0].toIValue() if dim else None
        shape = _shape(tensor)
        if number is None or shape is None:
            return bool(dims)
        return number % max(len(shape), 1) in dims

    @property
    def has_sources(self) -> bool:
        """Whether any size that was asked for hangs on an operator whose values decide its shape."""
        return any(self._known.values())


def _makers(value: Any) -> frozenset[int]:
    """The operators that a traced tensor is computed by whose results have other sizes than their arguments."""
    found: set[int] = set()
    seen: set[int] = set()
    todo = [value]
    while todo:
        current = todo.pop()
        if current.unique() in seen:
            continue
        seen.add(current.unique())
        node = current.node()
        source = is_source(node)
        if source or node.kind() in _RESIZING or node.kind() in ("prim::Param", "prim::CallFunction"):
            found.add(current.unique())
        if not source:
            todo += list(node.inputs())[: 1 if node.kind() in SHAPED_AS_FIRST else None]
    return frozenset(found)


_LEAVES = ("prim::Param", "prim::Constant", "prim::GetAttr")


def _is_new(node: Any) -> bool:
    """Whether an operator's values decide the shape of what it yields, whatever its arguments are computed from."""
    return is_source(node) and node.kind() not in (_REPEATS, _CLASSES)


def _dims_of(value: Any, node: Any, known: Known) -> frozenset[int]:
    if _is_new(node):
        shape = _shape(value)
        return _own_dims(node, 1 if shape is None else len(shape))
    if node.kind() in SHAPED_AS_FIRST:
        return known[next(node.inputs()).unique()]
    if node.kind() in _SIZED:
        return _SIZED[node.kind()](node, known) | _dims_of_arguments(value, node, known)
    return _dims_of_arguments(value, node, known)


def _dims_of_arguments(value: Any, node: Any, known: Known) -> frozenset[int]:
    """The dimensions that come from an argument's dimensions."""
    if node.kind() != _REPEATS and not any(known[v.unique()] for v in node.inputs()):
        return frozenset()
    shape = _shape(value)
    if node.kind() in _BY_AXIS:
        return _BY_AXIS[node.kind()](node, known)
    if shape is None:  # a list, or a number: what it is made of counts
        return frozenset().union(*(known[v.unique()] for v in node.inputs()))
    sizes, others = _sizes_of(node, known)
    if not sizes:
        return frozenset()
    if node.kind() in _MADE_OF_PARTS:
        return frozenset(dim for dim, size in enumerate(shape) if size in sizes or size not in others)
    return frozenset(dim for dim, size in enumerate(shape) if size in sizes)


_REPEATS = "aten::repeat_interleave"
_CLASSES = "aten::one_hot"


def _of_repeats(node: Any, known: Known) -> frozenset[int]:
    """Values decide how long the axis is, but where the numbers of repeats follow from sizes that no value decides."""
    inputs = list(node.inputs())
    tensor, repeats = inputs[0], inputs[1 if len(inputs) > 2 else 0]  # the numbers come alone, or second
    dim = inputs[2].toIValue() if len(inputs) > 2 else None
    shape = _shape(node.output())
    if dim is None or shape is None:  # one axis, or nobody knows
        varies = bool(known[tensor.unique()]) or not _is_of_sizes(repeats, known)
        return frozenset(range(1 if shape is None else len(shape))) if varies else frozenset()
    return known[tensor.unique()] | (frozenset() if _is_of_sizes(repeats, known) else {dim % len(shape)})


def _is_of_sizes(value: Any, known: Known) -> bool:
    """Whether a number, or a tensor, is computed from constants, and from sizes that no value decides, alone."""
    seen: set[int] = set()
    todo = [value]
    while todo:
        value = todo.pop()
        node = value.node()
        if node.kind() == "prim::CallFunction" or (node.kind() == "prim::Param" and _is_input(value, known)):
            return False
        if node.kind() in ("aten::size", "aten::numel"):
            if known.get(next(node.inputs()).unique(), True):
                return False
        elif value.unique() not in seen:
            seen.add(value.unique())
            todo += list(node.inputs())
    return True


def _is_input(value: Any, known: Known) -> bool:
    """Whether an input of the trace is one of the model's, and no weight."""
    return value.unique() in [one.unique() for one in list(value.node().outputs())[: known.inputs]]


def _of_number(node: Any, known: Known) -> frozenset[int]:
    """The one axis of ``arange`` and the like is as long as the arguments say."""
    numbers = (one for one in node.inputs() if one.type().kind() != "NoneType")
    return frozenset() if all(_is_of_sizes(one, known) for one in numbers) else frozenset({0})


def _of_square(node: Any, known: Known) -> frozenset[int]:
    return frozenset({0, 1}) if _of_number(node, known) else frozenset()


def _of_sizes(node: Any, known: Known) -> frozenset[int]:
    """Each number of the list is the size of an axis, of the last axes where there are fewer; ``-1`` is the rest."""
    sizes = _numbers_of(node)
    varies = {place for place, size in enumerate(sizes) if not _is_of_sizes(size, known)}
    if varies:
        varies |= {place for place, size in enumerate(sizes) if size.toIValue() == -1 and node.kind() in _RESHAPING}
    shape = _shape(node.output())
    ahead = 0 if shape is None else len(shape) - len(sizes)
    return frozenset(place + ahead for place in varies)


def _of_pads(node: Any, known: Known) -> frozenset[int]:
    """The numbers of a padding come in pairs, the last axis first."""
    shape = _shape(node.output())
    varies = {place // 2 for place, size in enumerate(_numbers_of(node)) if not _is_of_sizes(size, known)}
    return frozenset(() if shape is None else (len(shape) - 1 - place for place in varies))


def _numbers_of(node: Any) -> list[Any]:
    """The values of the list of numbers that an operator is given; none where it is a constant."""
    lists = (one.node() for one in node.inputs() if one.node().kind() == "prim::ListConstruct")
    given = next((one for one in lists if "Tensor" not in str(one.output().type())), None)
    return [] if given is None else list(given.inputs())


def _of_slice(node: Any, known: Known) -> frozenset[int]:
    """``slice`` and ``narrow`` shorten one axis: its number comes second, and then where the rest begins and ends."""
    tensor, dim, *ends = node.inputs()
    place = _place(dim, _shape(tensor))
    return frozenset() if place is None or all(_is_of_sizes(end, known) for end in ends) else frozenset({place})


def _of_classes(node: Any, known: Known) -> frozenset[int]:
    """The last axis of ``one_hot`` is as long as is said, or as the largest value asks for."""
    tensor, count = node.inputs()
    shape = _shape(node.output())
    is_known = count.toIValue() not in (-1, None) or (count.toIValue() is None and _is_of_sizes(count, known))
    return frozenset() if is_known or shape is None or _is_of_sizes(tensor, known) else frozenset({len(shape) - 1})


def _of_parts(node: Any, known: Known) -> frozenset[int]:
    """The items of a list have the list's dimensions."""
    return known[next(node.inputs()).unique()]


def _of_stack(node: Any, known: Known) -> frozenset[int]:
    tensors, dim = node.inputs()
    place = _place(dim, _shape(node.output()))
    dims = known[tensors.unique()]
    # Without a place, or a rank, every dimension may be the one.
    return frozenset({d + 1 for d in dims} | dims) if place is None else frozenset(d + (d >= place) for d in dims)


def _of_unbind(node: Any, known: Known) -> frozenset[int]:
    tensor, dim = node.inputs()
    place = _place(dim, _shape(tensor))
    dims = known[tensor.unique()]
    if place is None:
        return frozenset({d - 1 for d in dims if d} | dims)
    return frozenset(d - (d > place) for d in dims if d != place)


def _of_reshape(node: Any, known: Known) -> frozenset[int]:
    """Dimensions that are split or merged have the sizes of those they were; a number in the call is a number."""
    tensor, *sizes = node.inputs()
    old, new = _shape(tensor), _shape(node.output())
    dims = known[tensor.unique()]
    if not dims or old is None or new is None:
        return frozenset()
    given = list(sizes[0].node().inputs()) if sizes and sizes[0].node().kind() == "prim::ListConstruct" else []
    numbers = {dim for dim, size in enumerate(given) if isinstance(size.toIValue(), int)}
    rest = {dim for dim in numbers if given[dim].toIValue() < 0}
    fixed = numbers - rest
    found: set[int] = set()
    for before, after in _blocks(old, new):
        if dims & set(before):
            # Where numbers are all that is given, the size that is left out has to take up what varies.
            found |= set(after) - fixed or rest
    return frozenset(found)


def _blocks(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[range, range]]:
    """The dimensions of two shapes of as many elements in blocks, as short as can be, of as many elements each."""
    blocks, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        start, left, right = (i, j), 1, 1
        while (i, j) == start or left != right or (i == len(old)) != (j == len(new)):
            if j == len(new) or (i < len(old) and left <= right):
                left, i = left * old[i], i + 1
            else:
                right, j = right * new[j], j + 1
        blocks.append((range(start[0], i), range(start[1], j)))
    return blocks


def _place(dim: Any, shape: tuple[int, ...] | None) -> int | None:
    """A dimension from 0, of a tensor of this shape; None where the trace does not tell."""
    number = dim.toIValue()
    return None if number is None or shape is None else int(number) % max(len(shape), 1)


SHAPED_AS_FIRST = frozenset(
    f"aten::{name}{end}"
    for name in ("index_put", "copy", "masked_fill", "scatter", "scatter_add", "index_add", "index_copy", "index_fill")
    for end in ("", "_")
)
"""Operators whose result has the shape of their first argument, whatever the others are."""

_BY_AXIS = {
    "prim::ListUnpack": _of_parts,
    "aten::stack": _of_stack,
    "aten::unbind": _of_unbind,
    "aten::reshape": _of_reshape,
    "aten::view": _of_reshape,
    "aten::flatten": _of_reshape,
    _REPEATS: _of_repeats,
}
"""Operators of which the dimensions of the result are known exactly."""

_RESHAPING = ("aten::view", "aten::reshape")

_SIZED = {
    **dict.fromkeys((f"aten::{name}" for name in ("arange", "range", "linspace", "logspace")), _of_number),
    **dict.fromkeys((f"aten::{name}_window" for name in ("hann", "hamming", "blackman", "bartlett")), _of_number),
    "aten::eye": _of_square,
    **dict.fromkeys((f"aten::{name}" for name in ("zeros", "ones", "full", "empty", "rand", "randn")), _of_sizes),
    **dict.fromkeys((f"aten::new_{name}" for name in ("zeros", "ones", "full", "empty")), _of_sizes),
    **dict.fromkeys((f"aten::{name}" for name in ("expand", "repeat", "tile", "view", "reshape")), _of_sizes),
    **dict.fromkeys(("aten::pad", "aten::constant_pad_nd"), _of_pads),
    **dict.fromkeys(("aten::slice", "aten::narrow"), _of_slice),
    _CLASSES: _of_classes,
}
"""Operators whose result is as large as numbers among their arguments say, which may be values."""

_MADE_OF_PARTS = frozenset(f"aten::{name}" for name in ("cat", "repeat", "slice"))
"""Operators whose result has sizes that no argument has."""


_RESIZING = _MADE_OF_PARTS | frozenset(
    f"aten::{name}"
    for name in (
        "index",
        "index_select",
        "gather",
        "take",
        "topk",
        "narrow",
        "split",
        "chunk",
        "pad",
        "constant_pad_nd",
    )
)
"""Operators whose result may have fewer or more rows than any argument."""


def _sizes_of(node: Any, known: Known) -> tuple[set[int], set[int]]:
    """The sizes of the arguments' dimensions that values decide, and those of the others; of lists, their items'."""
    sizes: set[int] = set()
    others: set[int] = set()
    for value in node.inputs():
        parts = list(value.node().inputs()) if value.node().kind() == "prim::ListConstruct" else [value]
        for part in parts:
            shape = _shape(part)
            dims = known.get(part.unique(), frozenset())
            for dim, size in enumerate(shape or ()):
                (sizes if dim in dims else others).add(size)
    return sizes, others


def _shape(value: Any) -> tuple[int, ...] | None:
    kind = value.type()
    if kind.kind() != "TensorType":
        return None
    sizes = kind.sizes()
    return None if sizes is None else tuple(sizes)


def is_source(node: Any) -> bool:
    """Whether an operator's values decide the shape of what it yields."""
    kind = node.kind()
    if kind == "aten::index":
        return _first_mask(node) is not None
    if kind == "aten::where":
        return len(list(node.inputs())) == 1
    return kind in _OTHERS or (kind.startswith("aten::") and _is_tagged(kind.removeprefix("aten::")))


def _own_dims(node: Any, rank: int) -> frozenset[int]:
    if node.kind() == "aten::index":
        mask = _first_mask(node)
        return frozenset() if mask is None else frozenset({mask})
    return frozenset({0} if rank else ())


def _first_mask(node: Any) -> int | None:
    """The dimension that a mask selects from; None where no index is a mask."""
    for dim, value in enumerate(list(node.inputs())[1].node().inputs()):
        kind = value.type()
        if kind.kind() == "TensorType" and kind.scalarType() in ("Bool", "Byte"):
            return dim
    return None


_OTHERS = frozenset({"aten::nonzero_numpy", "torchvision::nms"})
"""Operators that torch has no tag for."""


@functools.cache
def _is_tagged(name: str) -> bool:
    packet = getattr(torch.ops.aten, name if name.endswith("__") else name.removesuffix("_"), None)
    overloads = packet.overloads() if packet is not None and name != "index" else ()
    return any(torch.Tag.dynamic_output_shape in getattr(packet, overload).tags for overload in overloads)


def selects(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether values decide the shape of what a function of torch yields.

    Args:
        func: The function, or a method of Tensor.
        args: Its arguments.
    """
    name = getattr(func, "__name__", "")
    if name == "__getitem__":
        places = args[1] if isinstance(args[1], tuple) else (args[1],)
        return any(isinstance(place, torch.Tensor) and place.dtype in (torch.bool, torch.uint8) for place in places)
    return name in _SELECTIONS or (name == "where" and len(args) == 1)


_SELECTIONS = frozenset({"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "nms"})
