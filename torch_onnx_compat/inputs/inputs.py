"""The example inputs: bound to forward, flattened, named, grown, and drawn anew for verification."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.inputs.draws import draw_like

MIN_TRACE_SIZE = 3
"""Every dynamic axis is at least this long while tracing: torch.export specialises sizes 0 and 1, and 2 is the length
of many pairs (key and value, x and y, cos and sin) that an axis of 2 could be unified with."""


@dataclass(frozen=True)
class Axis:
    """A dynamic axis. Axes of one name have one size; a derived one, ``past + new``, follows from those of others."""

    name: str
    min: int = 1
    max: int | None = None
    required: bool = True
    """False for torch's Dim.AUTO, which may come out fixed."""
    is_firm: bool = True
    """Whether the caller insists that it varies; False for Dim.AUTO, and for ``dynamic_axes``, which only name axes."""
    terms: tuple[tuple[str, int], ...] = ()
    """Of a derived axis: the axes that it follows, each with a factor."""
    offset: int = 0
    """Of a derived axis: what is added to the terms."""

    @property
    def roots(self) -> tuple[str, ...]:
        """The names whose sizes decide this axis's size."""
        return tuple(name for name, _ in self.terms) or (self.name,)

    def size(self, sizes: Mapping[str, int]) -> int:
        """Its size where the roots have these sizes."""
        return sum(factor * sizes[name] for name, factor in self.terms or ((self.name, 1),)) + self.offset


Bounds = Mapping[str, tuple[int, int | None]]
"""Smallest and largest size by axis; None for no largest."""


def is_within(bounds: Bounds, axis: str, size: int) -> bool:
    """Whether an axis may have a size; one without bounds any from 1."""
    least, most = bounds.get(axis, (1, None))
    return size >= max(least, 1) and (most is None or size <= most)


@dataclass(frozen=True)
class Inputs:
    """Example inputs of a model: one entry per tensor, in the order of the file's inputs."""

    structure: tree.Structure
    tensors: tuple[Tensor, ...]
    names: tuple[str, ...]
    arguments: tuple[str, ...]
    """The forward parameter each tensor belongs to."""
    paths: tuple[tree.Path, ...]
    """Where in the nested argument it lies; the first part is the forward parameter."""
    axes: tuple[dict[int, Axis], ...] = ()
    parameters: tuple[str, ...] = ()
    """Forward parameters in the order of positional arguments."""
    paired: frozenset[int] = frozenset()
    """Positions of the tensors (..., 2) that hold the real and the imaginary parts of a complex argument."""
    origin: tuple[Tensor, ...] = ()
    """The example's tensors, where these are the example's at other sizes."""
    numbers: tuple[tuple[str, Any], ...] = ()
    """Python numbers among the arguments, by argument; the file holds them."""
    lengths: tuple[tuple[int, str], ...] = ()
    """Positions of tensors of lengths, or of offsets, each with the axis whose size is their largest value: it is that
    size at other sizes, too."""
    formats: tuple[torch.memory_format | None, ...] = ()
    """How the example's tensors lie in memory, where their channels come last; None elsewhere. A model may ask, so the
    tensors of every other case lie alike."""

    def __post_init__(self) -> None:
        if any(self.formats):
            formats = itertools.chain(self.formats, itertools.repeat(None))  # values that were added have none
            alike = (t.contiguous(memory_format=f) if f else t for t, f in zip(self.tensors, formats, strict=False))
            object.__setattr__(self, "tensors", tuple(alike))

    def call(self, tensors: Sequence[Tensor] | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments for forward, around other tensors if given."""
        found = self.tensors if tensors is None else tensors
        args, kwargs = self.structure.unflatten(
            [torch.view_as_complex(t) if i in self.paired else t for i, t in enumerate(found)]
        )
        return args, kwargs

    def real(self) -> Inputs:
        """With real tensors (..., 2) for complex ones, which ONNX's operators do not take."""
        paired = frozenset(i for i, tensor in enumerate(self.tensors) if tensor.is_complex())
        tensors = [
            torch.view_as_real(t.resolve_conj()).contiguous() if i in paired else t for i, t in enumerate(self.tensors)
        ]
        return replace(self, tensors=tuple(tensors), paired=self.paired | paired)

    def with_values(self, values: Mapping[str, Any], input_names: Sequence[str] | None) -> Inputs:
        """With further keyword arguments, which need not be forward's, after the others.

        Args:
            values: By keyword.
            input_names: As for `bind`.

        Raises:
            CompatError: There are more names than tensors.
        """
        args, kwargs = self.call()
        leaves, structure = tree.flatten((args, {**kwargs, **values}))
        new = leaves[len(self.tensors) :]
        paths = (*self.paths, *(path[1:] for path, _ in new))
        return replace(
            self,
            structure=structure,
            tensors=(*self.tensors, *(tensor.detach().clone() for _, tensor in new)),
            names=_names([tree.qualified_name(p) for p in paths], input_names or (), "input"),
            arguments=tuple(str(path[0]) for path in paths),
            paths=paths,
            axes=(*self.axes, *({} for _ in new)),
        )

    def sizes(self) -> dict[str, int]:
        """Size of every named axis in the example; of one that only a derived axis tells of, the size that gives it.

        Raises:
            CompatError: A derived axis adds up axes of which no input tells the size.
        """
        found = [(t.shape[d], a) for t, axes in zip(self.tensors, self.axes, strict=True) for d, a in axes.items()]
        sizes: dict[str, int] = {}
        for size, axis in sorted(found, key=lambda pair: len(pair[1].terms)):
            unknown = [(name, factor) for name, factor in axis.terms or ((axis.name, 1),) if name not in sizes]
            if len(unknown) > 1:
                raise CompatError(
                    f"dynamic axis {axis.name!r}: no input has an axis {unknown[0][0]!r} or {unknown[1][0]!r} of its "
                    f"own, so neither size is known; name the axis that has it."
                )
            if unknown:
                name, factor = unknown[0]
                sizes[name] = (size - axis.size({**sizes, name: 0})) // factor
        return sizes

    def named_sizes(self) -> dict[str, int]:
        """Size of every dynamic axis in the example, derived ones too, by the name that the file gives to it."""
        return {a.name: t.shape[d] for t, axes in zip(self.tensors, self.axes, strict=True) for d, a in axes.items()}

    def bounds(self) -> Bounds:
        """The sizes that the caller allows for every named axis."""
        return {a.name: (a.min, a.max) for axes in self.axes for a in axes.values() if not a.terms}

    def at_sizes(self, sizes: Mapping[str, int]) -> Inputs:
        """The example with its dynamic axes shortened, or lengthened by repeating what is there.

        Sorted values stay sorted.
        """
        current = self.sizes()
        wanted = {name: sizes.get(name, size) for name, size in current.items()}
        tensors = []
        for tensor, axes in zip(self.tensors, self.axes, strict=True):
            for dim, axis in axes.items():
                tensor = _resize(tensor, dim, axis.size(wanted))
            tensors.append(tensor)
        return replace(self, tensors=self._with_lengths(tensors, wanted), origin=self.origin or self.tensors)

    def _with_lengths(self, tensors: Sequence[Tensor], sizes: Mapping[str, int]) -> tuple[Tensor, ...]:
        """The tensors, those of lengths with values for these sizes of their axes."""
        found = list(tensors)
        for position, name in self.lengths:
            found[position] = _with_largest(found[position], sizes[name])
        return tuple(found)

    def long_enough_to_trace(self) -> Inputs:
        """The example with every dynamic axis at least MIN_TRACE_SIZE long, by whole repetitions."""
        sizes = {}
        for name, size in self.sizes().items():
            least = MIN_TRACE_SIZE
            limit = self.bounds().get(name, (1, None))[1]
            factor = -(-least // max(size, 1))
            long_enough_to_trace = size * factor if size < least else size
            sizes[name] = min(long_enough_to_trace, limit) if limit is not None else long_enough_to_trace
        return self.at_sizes(sizes)

    def redrawn(self, seed: int) -> Inputs:
        """The example with other values of the same distributions, see `draws.draw_like`.

        At other sizes the draws are like the example, not like its repetition, which has ties.
        """
        examples = self.origin if len(self.origin) == len(self.tensors) else self.tensors
        drawn = draw_like(examples, [tensor.shape for tensor in self.tensors], seed)
        return replace(self, tensors=self._with_lengths(drawn, self.sizes()))


def _with_largest(tensor: Tensor, size: int) -> Tensor:
    """Whole numbers of which the largest becomes a size, and none is larger."""
    if not tensor.numel():
        return tensor
    return torch.where(tensor == tensor.max(), torch.full_like(tensor, size), tensor.clamp(max=size))


def bind(model: nn.Module, args: Any, kwargs: Mapping[str, Any] | None, input_names: Sequence[str] | None) -> Inputs:
    """Binds the example to the model's forward.

    Numpy arrays become tensors of their type.

    Args:
        model: The model.
        args: Positional arguments; a single tensor, or a last dict of keyword arguments, as torch.onnx.export takes
            them.
        kwargs: Keyword arguments.
        input_names: ONNX names for the tensors, in order; the rest are named after their argument.

    Raises:
        CompatError: The arguments do not fit forward, or hold no tensor or a sparse one, or the names do not fit.
    """
    parameters = forward_parameters(model)
    positional, keywords = tree.with_tensors(_as_call(parameters, args, kwargs))
    ordered = _bind(model, parameters, positional, keywords)
    keys = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    keywords = {k: keywords[k] for k in sorted(keywords, key=lambda k: keys.index(k) if k in keys else len(keys))}
    leaves, structure = tree.flatten((positional, keywords))
    if not leaves:
        raise CompatError(
            "the example inputs hold no tensor; pass at least one, e.g. args=(torch.randn(1, 3, 224, 224),)."
        )
    paths = tuple(_name_path(path, ordered) for path, _ in leaves)
    for path, (_, tensor) in zip(paths, leaves, strict=True):
        if tensor.layout is not torch.strided or tensor.is_nested:
            raise CompatError(
                f"input {tree.qualified_name(path)!r} is a tensor of layout {tensor.layout}; wanted a dense one, as "
                f"ONNX's inputs are: pass x.to_dense(), or a padded tensor for a nested one."
            )
    tensors = _unaliased([tensor.detach() for _, tensor in leaves])
    numbers = [
        (path, value)
        for path, value in tree.constants((positional, keywords))
        if len(path) == 2 and isinstance(value, (bool, int, float))
    ]
    order = [path for path, _ in (*leaves, *numbers)]
    order.sort(key=lambda path: (path[0], path[1] if path[0] == 0 else list(keywords).index(str(path[1]))))
    return Inputs(
        structure=structure,
        tensors=tensors,
        names=_names(
            [tree.qualified_name(p) for p in paths], _without_numbers(input_names or (), order, numbers), "input"
        ),
        arguments=tuple(str(p[0]) for p in paths),
        paths=paths,
        axes=tuple({} for _ in tensors),
        parameters=tuple(ordered),
        numbers=tuple((str(_name_path(path, ordered)[0]), value) for path, value in numbers),
        formats=tuple(map(_format_of, tensors)),
    )


def _format_of(tensor: Tensor) -> torch.memory_format | None:
    if not tensor.is_contiguous():
        for rank, memory_format in ((4, torch.channels_last), (5, torch.channels_last_3d)):
            if tensor.dim() == rank and tensor.is_contiguous(memory_format=memory_format):
                return memory_format
    return None


def _without_numbers(
    names: Sequence[str], order: Sequence[tree.Path], numbers: Sequence[tuple[tree.Path, Any]]
) -> Sequence[str]:
    """The names of the tensors, where a caller names numbers, too, which are inputs of torch's TorchScript files."""
    if isinstance(names, str) or not numbers or len(names) != len(order):
        return names
    left_out = {path for path, _ in numbers}
    return [name for name, path in zip(names, order, strict=True) if path not in left_out]


def forward_parameters(model: nn.Module) -> list[inspect.Parameter]:
    """Parameters of the model's forward; of a script module too, whose Python signature says nothing."""
    if isinstance(model, torch.jit.ScriptModule):
        return parameters_of_schema(model.forward.schema)[1:]  # type: ignore[attr-defined]
    try:
        return list(inspect.signature(model.forward).parameters.values())
    except ValueError:
        raise CompatError(
            f"{getattr(model.forward, '__name__', model)!r} is a builtin whose parameters Python does not know; "
            f"wrap it, e.g. export_compat(lambda x: f(x), ...)."
        ) from None


def parameters_of_schema(schema: Any) -> list[inspect.Parameter]:
    """Parameters of what torch has a schema of, such as a scripted function; of a method the first is self."""
    return [
        inspect.Parameter(
            argument.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=argument.default_value if argument.has_default_value() else inspect.Parameter.empty,
        )
        for argument in schema.arguments
    ]


def output_names(paths: Sequence[tree.Path], given: Sequence[str]) -> tuple[str, ...]:
    """ONNX names of outputs: those given, then names after their place in the result."""
    return _names(
        [tree.qualified_name(p) if _is_word(p) else tree.qualified_name(("output", *p)) for p in paths], given, "output"
    )


def _as_call(
    parameters: Sequence[inspect.Parameter], args: Any, kwargs: Mapping[str, Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call that the arguments mean.

    A last dict holds keywords, as for torch.onnx.export, unless forward takes it only as a positional argument.
    """
    if isinstance(args, Mapping):
        args = (args,)
    positional = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise CompatError(
            f"kwargs is a {type(kwargs).__name__}; wanted a dict of argument to value, such as {{'x': x}}."
        )
    keywords = dict(kwargs or {})
    last = positional[-1] if positional else None
    if keywords or type(last) is not dict or not all(isinstance(key, str) for key in last):
        return positional, keywords
    if not _fits(parameters, positional[:-1], last) and _fits(parameters, positional, {}):
        return positional, {}
    return positional[:-1], dict(last)


def _fits(parameters: Sequence[inspect.Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    try:
        inspect.Signature(parameters).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _bind(
    model: nn.Module, parameters: list[inspect.Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[str]:
    """Names of the positional arguments, in order."""
    signature = inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in parameters])
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise CompatError(
            f"the example inputs do not fit {type(model).__name__}.forward{signature}: {error}; "
            f"got {len(args)} positional argument(s) and keywords {sorted(kwargs)}."
        ) from None
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(len(args) - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return names


def _name_path(path: tree.Path, positional: list[str]) -> tree.Path:
    """(0, i, …) is the i-th positional argument, (1, name, …) a keyword."""
    first = positional[int(path[1])] if path[0] == 0 else str(path[1])
    return (first, *path[2:])


def _names(defaults: Sequence[str], given: Sequence[str], kind: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise CompatError(
            f"{kind}_names={given!r} is a {type(given).__name__}; wanted a list of names, such as ['{kind}']."
        )
    if len(given) > len(defaults):
        raise CompatError(
            f"{kind}_names has {len(given)} names but the model has {len(defaults)} {kind} tensor(s): "
            f"{', '.join(defaults)}."
        )
    for name in given:
        if not isinstance(name, str) or not name.strip() or "\0" in name or name.isdigit():
            raise CompatError(
                f"{kind}_names holds {name!r}; wanted a name such as '{kind}'. Numbers are the names of the exporters' "
                f"own values, and no name means no tensor."
            )
        if list(given).count(name) > 1:
            raise CompatError(f"{kind}_names holds {name!r} twice; ONNX names must differ.")
    names = list(given)
    for default in defaults[len(given) :]:
        clean = re.sub(r"\W", "_", default) or kind
        unique, n = clean, 1
        while unique in names:
            unique, n = f"{clean}_{n}", n + 1
        names.append(unique)
    return tuple(names)


def _is_word(path: tree.Path) -> bool:
    return bool(path) and isinstance(path[0], str)


def _unaliased(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    """A tensor passed twice would be merged into one input; the second becomes a copy."""
    seen: set[int] = set()
    result = []
    for tensor in tensors:
        key = tensor.data_ptr() if tensor.layout is torch.strided and tensor.numel() else id(tensor)
        result.append(tensor.clone() if key in seen else tensor)
        seen.add(key)
    return tuple(result)


def _resize(tensor: Tensor, dim: int, size: int) -> Tensor:
    current = tensor.shape[dim]
    if current == size:
        return tensor
    if current == 0:
        shape = [*tensor.shape[:dim], size, *tensor.shape[dim + 1 :]]
        return tensor.new_zeros(shape)
    if _is_sorted(tensor, dim):  # ends of segments, lengths for a packed sequence: others than sorted ones are refused
        places = torch.linspace(0, current - 1, size, dtype=torch.float64, device=tensor.device)
        if not tensor.is_floating_point():
            return tensor.index_select(dim, places.round().long())
        below, above = (tensor.double().index_select(dim, edge.long()) for edge in (places.floor(), places.ceil()))
        return torch.lerp(below, above, places.frac()).to(tensor.dtype)
    index = torch.arange(size, device=tensor.device) % current
    return tensor.index_select(dim, index)


def _is_sorted(tensor: Tensor, dim: int) -> bool:
    """Whether a vector's values rise or fall along it, or all whole numbers of another tensor along the dimension."""
    if tensor.shape[dim] < 2 or tensor.is_complex() or tensor.dtype is torch.bool:
        return False
    if tensor.is_floating_point() and tensor.dim() > 1:
        return False
    numbers = tensor.double() if tensor.is_floating_point() else tensor.long()  # some types cannot be compared
    before, after = (numbers.narrow(dim, start, tensor.shape[dim] - 1) for start in (0, 1))
    return bool((before <= after).all()) or bool((before >= after).all())
