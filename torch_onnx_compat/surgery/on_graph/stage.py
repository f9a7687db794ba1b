"""Stages: files that the host runs before or after the network's own, or parts that the network was split into."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir
import onnxruntime

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph.stream import write_model
from torch_onnx_compat.publish.publish import is_large
from torch_onnx_compat.session import open_session

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Stage:
    """An ONNX model that the host runs before or after the network, or one part of a network that was split.

    Attributes:
        name: ``preprocess``, ``postprocess`` or ``part1`` and so on.
        model_bytes: The model, serialised.
        inputs: Names of its inputs, in order.
        outputs: Names of its outputs, in order.
        feeds: For each output, the name of the input of the next stages that takes it.
        description: The operators of the stage, as plain data.
    """

    name: str
    model_bytes: bytes = field(repr=False)
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    feeds: Mapping[str, str] = field(default_factory=dict)
    description: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Runs the stage on numpy arrays, in the order of `inputs` or by name.

        Returns:
            An array, or a tuple of arrays where there are several outputs.

        Raises:
            CompatError: There are too many arrays, or too few.
        """
        given = {**dict(zip(self.inputs, arrays, strict=False)), **named}
        if len(arrays) > len(self.inputs) or set(given) != set(self.inputs):
            raise CompatError(
                f"{self.name} takes {', '.join(self.inputs)}; got {len(arrays)} arrays and {sorted(named)}."
            )
        results = self._shared_session.run(None, {name: np.asarray(array) for name, array in given.items()})
        return results[0] if len(results) == 1 else tuple(results)

    def session(self, **options: Any) -> onnxruntime.InferenceSession:
        """Opens the stage in onnxruntime; passes the options to InferenceSession."""
        return open_session(self.model_bytes, **options)

    @cached_property
    def _shared_session(self) -> onnxruntime.InferenceSession:
        return open_session(self.model_bytes)

    def to_dict(self) -> dict[str, Any]:
        """The stage as plain data, without the model."""
        return {
            "name": self.name,
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "description": dict(self.description),
        }

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.inputs)} -> {', '.join(self.outputs)}"

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as an onnx.ModelProto."""
        return onnx.load_model_from_string(self.model_bytes)

    def save(self, destination: str | os.PathLike[str] | BinaryIO) -> None:
        """Writes the model as an ONNX file.

        Args:
            destination: Path or binary file object.
        """
        if isinstance(destination, (str, os.PathLike)):
            Path(destination).write_bytes(self.model_bytes)
        else:
            destination.write(self.model_bytes)


def make_stage(
    name: str, model: ir.Model, feeds: Mapping[str, str] | None = None, description: Mapping[str, Any] | None = None
) -> Stage:
    """Makes a stage of a model.

    Raises:
        CompatError: Its weights do not fit into one file.
    """
    if is_large(model):
        raise CompatError(f"{name} holds more than 1.5 GB of weights; split the model at more places.")
    buffer = io.BytesIO()
    write_model(model, buffer)
    inputs, outputs = ([str(v.name) for v in values] for values in (model.graph.inputs, model.graph.outputs))
    return Stage(name, buffer.getvalue(), tuple(inputs), tuple(outputs), feeds or {}, description or {})
