"""What a new file should compute, composed of runs of the original and of what was changed on purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.check.compare import as_array
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.files.cases import FileCase
from torch_onnx_compat.files.reading import OnnxFile
from torch_onnx_compat.files.runner import Array, Value
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.surgery.around_model.detections import Detections
from torch_onnx_compat.surgery.around_model.normalize import Normalize


@dataclass(frozen=True)
class Picture:
    """An input that is preprocessed before the original gets it.

    Attributes:
        name: The input.
        normalize: The preprocessing.
        dtype: The type of the original's input.
    """

    name: str
    normalize: Normalize
    dtype: torch.dtype

    def prepare(self, picture: Value) -> Array:
        """The original's input."""
        return as_array(self.normalize.apply(torch.from_numpy(np.array(picture)), self.dtype))


@dataclass(frozen=True)
class Boxes:
    """Suppression behind the original's outputs.

    Attributes:
        detections: Which outputs are boxes and scores.
        pads: Whether there may be fewer boxes than candidates.
    """

    detections: Detections
    pads: bool

    def detect(self, outputs: Mapping[str, Value]) -> dict[str, Array]:
        """The detections in the original's outputs, by name; for an engine's own operator, its inputs."""
        tensors: dict[str, Tensor] = {name: torch.from_numpy(np.array(value)) for name, value in outputs.items()}
        if self.detections.node is None:
            found, _ = self.detections.detect(tensors, self.pads)
        else:  # the file's last node is the engine's own; what it is given can be compared
            found = dict(zip(("boxes", "scores"), self.detections.candidates_of(tensors), strict=True))
        return {tree.qualified_name((name,)): as_array(value) for name, value in found.items()}


@dataclass(frozen=True)
class Oracle:
    """The original, and how the inputs and outputs of a new file follow from its own.

    Attributes:
        file: The original; with other outputs where values inside are wanted, with other attributes where these were
            changed on purpose.
        drawn: The file whose inputs are drawn, and given by the caller.
        values: The values of `file` that are read.
        inputs: For each input of the new file, the input or value of `file` that it gets, or of `drawn` where that is
            preprocessed.
        outputs: For each output, the value of `file` that it should be, before detections.
        constants: Inputs of `file` that the new file lacks, with their values.
        picture: An input that is preprocessed.
        boxes: Suppression behind the outputs.
    """

    file: OnnxFile
    drawn: OnnxFile
    values: tuple[str, ...]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    constants: Mapping[str, Array] = field(default_factory=dict)
    picture: Picture | None = None
    boxes: Boxes | None = None

    @classmethod
    def of(cls, file: OnnxFile) -> Oracle:
        """A file that should compute what the original computes."""
        names = [value.name for value in file.proto.graph.output]
        inputs = {value.name: value.name for value in file.proto.graph.input}
        return cls(file, file, tuple(names), inputs, {name: name for name in names})

    def feeds(self, drawn: Mapping[str, Value]) -> dict[str, Value]:
        """The inputs of the original."""
        feeds = {**drawn, **self.constants}
        if self.picture is not None:
            feeds[self.picture.name] = self.picture.prepare(feeds[self.picture.name])
        return feeds

    def expect(self, values: Sequence[Value]) -> dict[str, Value]:
        """The outputs of the new file, by name, from the values of the original."""
        known = dict(zip(self.values, values, strict=True))
        outputs = {name: known[source] for name, source in self.outputs.items()}
        return outputs if self.boxes is None else dict(self.boxes.detect(outputs))

    def adapt(self, case: FileCase) -> FileCase:
        """A case of the new file, from one of the original's.

        Raises:
            UnsupportedError: A value at which the file begins is no tensor.
        """
        known = {**case.feeds, **dict(zip(self.values, case.outputs, strict=True))}
        feeds = {name: known[source] for name, source in self.inputs.items() if source in known}
        for name, value in feeds.items():
            if self.inputs[name] in self.values and not isinstance(value, np.ndarray):
                raise UnsupportedError(f"{name!r} is no tensor, so the file cannot begin there.")
        outputs = list(self.expect(case.outputs).values())
        return replace(case, feeds=feeds, outputs=outputs, source=self.feeds(case.feeds))

    def are_random(self, drawn: set[str]) -> set[str]:
        """The outputs that random values of the original decide."""
        found = {name for name, source in self.outputs.items() if source in drawn}
        return {"boxes", "scores", "classes", "count", "images"} if self.boxes is not None and found else found
