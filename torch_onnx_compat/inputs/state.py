"""What modules keep between calls, such as a streaming encoder's cache, as inputs and outputs: `state=[...]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from torch import Tensor, nn

from torch_onnx_compat.caller.undo import memory_of, undo_writes
from torch_onnx_compat.errors import ArgumentError
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.inputs.inputs import Inputs


@dataclass(frozen=True)
class Place:
    """An attribute of a module."""

    text: str
    """As the caller wrote it."""
    module: str
    attribute: str

    def read(self, model: nn.Module) -> Any:
        """What the attribute holds."""
        return getattr(model.get_submodule(self.module), self.attribute)

    def write(self, model: nn.Module, value: Any) -> None:
        """Lets the attribute hold something else; a buffer stays one."""
        owner = model.get_submodule(self.module)
        held = owner._buffers if self.attribute in owner._buffers else owner.__dict__
        held[self.attribute] = value


def state_of(
    model: nn.Module, inputs: Inputs, texts: Sequence[str], twin: Callable[[], nn.Module]
) -> tuple[dict[str, Any], list[str]]:
    """What some attributes hold, by the caller's names for them, and notes.

    An attribute that holds no tensor yet gets the value that one call on the example leaves there.

    Args:
        model: The model.
        inputs: The example.
        texts: Attributes that keep something, ``"encoder.cache"``.
        twin: Makes a copy of the model.

    Raises:
        CompatError: One is no attribute of the model, or is a parameter, or holds no tensor after a call either; or
            another attribute is a part of it, which would not follow.
    """
    places = [_place(text, model) for text in ([texts] if isinstance(texts, str) else texts)]
    values = {place.text: place.read(model) for place in places}
    for text, value in values.items():
        _reject_views(text, value, model)
    late = [place for place in places if not tree.tensors_in(values[place.text])]
    if late:
        used = twin()
        args, kwargs = tree.map_leaves(inputs.call(), _copy)
        with undo_writes(used):
            used(*args, **kwargs)
        values.update({place.text: place.read(used) for place in late})
    for text, value in values.items():
        if not tree.tensors_in(value):
            raise ArgumentError(
                f"state: {text!r} holds a {type(value).__name__} without a tensor, also after a call; name an "
                f"attribute that keeps tensors between calls."
            )
    return values, [
        f"state {place.text!r} is unset before the first call; the file has no such case." for place in late
    ]


def _reject_views(text: str, value: Any, model: nn.Module) -> None:
    """Raises if an attribute lies in the memory of a state, in another shape or at another place."""
    memory = memory_of(value) if isinstance(value, Tensor) else 0
    for path, module in model.named_modules():
        for name, other in (*module._buffers.items(), *vars(module).items()):
            if not memory or not isinstance(other, Tensor) or memory_of(other) != memory:
                continue
            if (other.shape, other.storage_offset()) != (value.shape, value.storage_offset()):
                part = f"{path}.{name}".lstrip(".")
                raise ArgumentError(
                    f"state: {text!r} and {part!r} share memory, and what a state is set to has its own; keep one of "
                    f"them, and take the other of it in forward."
                )


@contextmanager
def state_set_to(model: nn.Module, values: Mapping[str, Any]) -> Iterator[Callable[[], dict[str, Any]]]:
    """Lets attributes hold these values for a while; what it yields says what they hold then."""
    places = [_place(text, model) for text in values]
    before = [place.read(model) for place in places]
    try:
        for place in places:
            place.write(model, tree.map_leaves(values[place.text], _copy))
        yield lambda: {place.text: tree.map_leaves(place.read(model), _copy) for place in places}
    finally:
        for place, value in zip(places, before, strict=True):
            place.write(model, value)


def _copy(leaf: Any) -> Any:
    """A model may write into its state in place."""
    return leaf.clone() if isinstance(leaf, Tensor) else leaf


def _place(text: str, model: nn.Module) -> Place:
    module, _, attribute = str(text).rpartition(".")
    owner = dict(model.named_modules(remove_duplicate=False)).get(module)
    if owner is not None and attribute in owner._parameters:
        raise ArgumentError(f"state: {text!r} is a parameter; wanted a buffer or an attribute that forward writes to.")
    if owner is None or (attribute not in owner._buffers and attribute not in vars(owner)):
        close = get_close_matches(str(text), _attributes(model), n=3, cutoff=0.5)
        near = f"near it: {', '.join(close)}" if close else "no buffer has a name like it"
        raise ArgumentError(f"state: the model has no attribute {text!r}; {near}.")
    return Place(str(text), module, attribute)


def _attributes(model: nn.Module) -> list[str]:
    """Paths of buffers and of attributes that may be state: those that hold tensors, or nothing yet."""
    return [
        f"{path}.{name}".lstrip(".")
        for path, module in model.named_modules()
        for name, value in (*module._buffers.items(), *vars(module).items())
        if not name.startswith("_") and (value is None or tree.tensors_in(value))
    ]
