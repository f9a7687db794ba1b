"""What each kind of layer computes, in torch; the modules beside this one add their kinds.

The meaning of a layer is that of NVIDIA's documentation of its class (the Python API's reference, and "TensorRT
Operators"), never what a file's node means: a layer that says nearest takes the nearest value. Floating-point numbers
of every width are float64 here. Where the documentation leaves open what a layer computes, it is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.engines.tensorrt.network import Layer
from torch_onnx_compat.errors import CompatError

FLOATS = frozenset({"FLOAT", "HALF", "BF16"})
TYPES = {
    **dict.fromkeys(FLOATS, torch.float64),
    "INT64": torch.int64,
    "INT32": torch.int32,
    "INT8": torch.int8,
    "UINT8": torch.uint8,
    "BOOL": torch.bool,
}


class NotKnown(CompatError):
    """It is not known here what a layer computes, so nothing can be said of the network."""


class NetworkFault(CompatError):
    """A network that cannot be computed as it stands: sizes that do not fit, an index outside of a tensor."""


@dataclass(frozen=True)
class Call:
    """A layer with the values of its inputs.

    Attributes:
        layer: The layer.
        inputs: Its inputs; None where one is absent.
    """

    layer: Layer
    inputs: Sequence[Tensor | None]

    def input(self, index: int) -> Tensor:
        """An input that must be there.

        Raises:
            NetworkFault: It is absent.
        """
        found = self.optional(index)
        if found is None:
            raise self.fault(f"has no input {index}")
        return found

    def optional(self, index: int) -> Tensor | None:
        """An input, or None."""
        return self.inputs[index] if index < len(self.inputs) else None

    def numbers(self, index: int, attribute: str) -> list[int]:
        """Whole numbers, from an input where it is given, otherwise from an attribute."""
        tensor = self.optional(index)
        if tensor is not None:
            return [int(number) for number in tensor.reshape(-1)]
        return [int(number) for number in self.get(attribute)]

    def get(self, attribute: str) -> Any:
        """An attribute.

        Raises:
            NotKnown: The adapter could not read it.
        """
        value = self.layer.attributes.get(attribute)
        if value is None or (isinstance(value, dict) and "unreadable" in value):
            raise self.not_known(f"its {attribute} cannot be read")
        return value

    def weights(self, attribute: str, shape: Sequence[int]) -> Tensor | None:
        """An attribute's array as float64; None where there is none."""
        array = self.layer.attributes.get(attribute)
        if isinstance(array, dict):
            raise self.not_known(f"its {attribute} cannot be read")
        return None if array is None or not array.size else torch.tensor(array).double().reshape(tuple(shape))

    def axes(self, attribute: str, rank: int) -> list[int]:
        """The axes of a bit mask."""
        return [axis for axis in range(rank) if self.get(attribute) >> axis & 1]

    def not_known(self, why: str) -> NotKnown:
        """An error that names the layer."""
        return NotKnown(f"layer {self.layer.name!r} of kind {self.layer.kind}: {why}; the network cannot be judged.")

    def fault(self, what: str) -> NetworkFault:
        """An error that names the layer."""
        return NetworkFault(f"layer {self.layer.name!r} of kind {self.layer.kind} {what}.")


Body = Callable[[Call], Tensor | Sequence[Tensor]]
KINDS: dict[str, Body] = {}
"""The body of each kind of layer."""


def layer(*kinds: str) -> Callable[[Body], Body]:
    """Makes a function the body of kinds of layers."""

    def add(body: Body) -> Body:
        KINDS.update(dict.fromkeys(kinds, body))
        return body

    return add


def fit_together(call: Call, *tensors: Tensor) -> None:
    """Checks that tensors have one rank, and along each axis one size or 1: TensorRT adds no axes.

    Raises:
        NetworkFault: They do not.
    """
    ranks = {tensor.dim() for tensor in tensors}
    sizes = [{size for size in column if size != 1} for column in zip(*(t.shape for t in tensors), strict=False)]
    if len(ranks) > 1 or any(len(column) > 1 for column in sizes):
        raise call.fault(f"joins shapes {', '.join(str(tuple(t.shape)) for t in tensors)}, which do not fit")
