"""A parsed network as data: what TensorRT's parser made of a file, layer by layer."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Value:
    """A tensor of a network.

    Attributes:
        name: Its name, which no other tensor of the network has.
        type: TensorRT's name of its element type, such as FLOAT.
        shape: The sizes that TensorRT derived, -1 where one may vary; None where it derived no rank.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class Layer:
    """A layer of a network.

    Attributes:
        name: Its name, which is that of the node it was made from.
        kind: TensorRT's LayerType, such as CONVOLUTION.
        inputs: Its inputs; None where an optional one is absent.
        outputs: Its outputs.
        attributes: Its properties by TensorRT's names: numbers, names of enumeration members, lists, arrays.
    """

    name: str
    kind: str
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Network:
    """A parsed network.

    Attributes:
        inputs: Its inputs.
        outputs: The names of its outputs.
        layers: Its layers, in no particular order.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[str, ...]
    layers: tuple[Layer, ...]


def read_network(path: str | os.PathLike[str]) -> Network:
    """Reads the .npz file that the adapter writes."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    data = json.loads(str(arrays.pop("network")))
    return Network(
        inputs=tuple(_value(value) for value in data["inputs"]),
        outputs=tuple(data["outputs"]),
        layers=tuple(_layer(layer, arrays) for layer in data["layers"]),
    )


def _layer(data: Mapping[str, Any], arrays: Mapping[str, Array]) -> Layer:
    return Layer(
        name=data["name"],
        kind=data["kind"],
        inputs=tuple(None if value is None else _value(value) for value in data["inputs"]),
        outputs=tuple(_value(value) for value in data["outputs"]),
        attributes={key: _attribute(value, arrays) for key, value in data["attributes"].items()},
    )


def _attribute(value: Any, arrays: Mapping[str, Array]) -> Any:
    return arrays[value["array"]] if isinstance(value, dict) and value.keys() == {"array"} else value


def _value(data: Mapping[str, Any]) -> Value:
    shape = data["shape"]
    return Value(data["name"], data["type"], None if shape is None else tuple(shape))
