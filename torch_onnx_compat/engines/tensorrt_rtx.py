"""NVIDIA TensorRT for RTX: parses and builds files on any processor, and runs them on NVIDIA's graphics cards only.

So this adapter runs nothing. It writes the network that the parser made of a file, for `engines/tensorrt` to run.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import tensorrt_rtx as trt

Shapes = dict[str, list[list[int]]]
"""For each input the smallest, the usual and the largest shape."""


def version() -> str:
    """Version of the engine."""
    return str(trt.__version__)


def build(path: str, ranges: Shapes, values: dict[str, list[int]], into: str, variant: str) -> int:
    """Parses and builds a file, and writes the parsed network to an .npz file.

    Args:
        path: The file.
        ranges: The shapes that the engine is built for.
        values: The numbers of the inputs that hold few whole numbers, which may decide shapes.
        into: The .npz file: `network` holds JSON, the other arrays are weights.
        variant: Not used.

    Returns:
        The bytes of the engine.

    Raises:
        RuntimeError: The parser or the builder refuses the file.
    """
    log = _Log()
    trt.init_libnvinfer_plugins(log, "")
    builder = trt.Builder(log)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, log)
    if not parser.parse_from_file(path):
        errors = (parser.get_error(index) for index in range(parser.num_errors))
        found = "; ".join(f"{error.node_operator()} {error.node_name()}: {error.desc()}" for error in errors)
        raise RuntimeError(log.blame("parser", found))
    weights: dict[str, Any] = {}
    text = json.dumps(_describe(network, weights))  # before the build, which rewrites the network
    log.errors.clear()  # what is asked of layers may fail, such as the static shape of a dynamic one
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    decide_shapes = {t.name for t in map(network.get_input, range(network.num_inputs)) if t.is_shape_tensor}
    for name, shapes in ranges.items():
        if name in decide_shapes and name in values:
            profile.set_shape_input(name, *[values[name]] * 3)
        else:
            profile.set_shape(name, *map(tuple, shapes))
    if ranges:
        config.add_optimization_profile(profile)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise RuntimeError(log.blame("builder", "; ".join(log.errors[-2:]) or "no reason given"))
    np.savez(into, network=np.array(text), **weights)
    return int(engine.nbytes)


class _Log(trt.ILogger):  # type: ignore[misc]
    """Keeps the errors."""

    def __init__(self) -> None:
        trt.ILogger.__init__(self)
        self.errors: list[str] = []

    def blame(self, who: str, why: str) -> str:
        """The text of a refusal: whose, and why; or that a graphics card is missing."""
        first = self.errors[0].lower() if self.errors else ""  # after any error it asks for the card, too
        if "cuda error" in first or "cuda runtime" in first:
            return f"no graphics card: {who}: {why}"
        return f"{who}: {why}"

    def log(self, severity: Any, text: str) -> None:
        """Takes a line."""
        if severity in (trt.ILogger.ERROR, trt.ILogger.INTERNAL_ERROR):
            self.errors.append(text)


def _describe(network: Any, weights: dict[str, Any]) -> dict[str, Any]:
    """The network as plain data; `weights` gets the arrays."""
    return {
        "inputs": [_tensor(network.get_input(index)) for index in range(network.num_inputs)],
        "outputs": [network.get_output(index).name for index in range(network.num_outputs)],
        "layers": [_layer(network.get_layer(index), weights) for index in range(network.num_layers)],
    }


def _tensor(tensor: Any) -> dict[str, Any] | None:
    if tensor is None:
        return None
    try:
        shape = list(tensor.shape)
    except ValueError:  # a rank that the parser does not know yet
        shape = None
    return {"name": tensor.name, "type": tensor.dtype.name, "shape": shape}


def _layer(layer: Any, weights: dict[str, Any]) -> dict[str, Any]:
    name, kind = layer.name, layer.type.name
    # Layers come as ILayer; the class of a kind has its name, those of conditionals with If before it.
    own = next((c for start in ("I", "IIF") if (c := _CLASSES.get(f"{start}{kind.replace('_', '')}LAYER"))), None)
    attributes = {}
    if own is not None:
        layer.__class__ = own
        for key in _properties(own):
            try:
                attributes[key] = _plain(getattr(layer, key), weights)
            except Exception as error:  # of several classes: weights of types that numpy lacks
                attributes[key] = {"unreadable": str(error)}
    return {
        "name": name,
        "kind": kind,
        "inputs": [_tensor(layer.get_input(index)) for index in range(layer.num_inputs)],
        "outputs": [_tensor(layer.get_output(index)) for index in range(layer.num_outputs)],
        "attributes": attributes,
    }


def _properties(own: type) -> list[str]:
    """The properties of a class of layers, and of its classes below ILayer."""
    classes = [c for c in own.__mro__ if issubclass(c, trt.ILayer) and c is not trt.ILayer]
    return [key for c in classes for key, member in vars(c).items() if isinstance(member, property)]


_CLASSES = {name.upper(): getattr(trt, name) for name in dir(trt) if name.startswith("I") and name.endswith("Layer")}


def _plain(value: Any, weights: dict[str, Any]) -> Any:
    """A value that JSON has; an array becomes its name in `weights`."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (trt.ILoop, trt.IIfConditional)):
        return value.name
    if isinstance(value, np.ndarray):
        name = f"w{len(weights)}"
        weights[name] = value
        return {"array": name}
    if hasattr(value, "name") and hasattr(type(value), "__members__"):
        return value.name
    try:
        return [_plain(item, weights) for item in value]
    except (TypeError, ValueError):
        return None
