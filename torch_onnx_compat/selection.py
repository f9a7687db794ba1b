"""Which of several proven files is published: the first, the smallest, or the one that the engine runs fastest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import onnx

from torch_onnx_compat.attempt import ProvenFile
from torch_onnx_compat.engines import ENGINES, Engine
from torch_onnx_compat.engines.turns import Contestant, take_turns
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.publish.publish import external_data_path
from torch_onnx_compat.request import Quality
from torch_onnx_compat.result import ExportResult
from torch_onnx_compat.targets import Target

SAME_TIME = 1.03
"""Ratio of two times up to which the file of fewer nodes is taken: machines are noisy."""


class Selection:
    """The proven files of one export.

    Args:
        quality: By what the file is chosen; None takes the first one.
        target: The engine.
        inputs: The example.
        exporters: How many exporters may be tried.
    """

    def __init__(self, quality: Quality | None, target: Target, inputs: Inputs, exporters: int) -> None:
        self._quality, self._target, self._inputs, self._exporters = quality, target, inputs, exporters
        self.files: list[ProvenFile] = []
        """Those so far."""

    def is_worth_another(self, file: ProvenFile) -> bool:
        """Takes in a file; says whether the next exporter's is worth its time."""
        self.files.append(file)
        return self._quality is not None and len(self.files) < self._exporters

    def choose(self) -> tuple[ProvenFile, ExportResult]:
        """The file to publish, and the result, which names the others.

        Raises:
            CompatError: The engine runs none of them.
        """
        if len(self.files) == 1:
            return self.files[0], self.files[0].result
        if self._quality == "latency":
            keys, unit = _time(self.files, _engine_of(self._target), self._inputs), "ms"
            near = SAME_TIME * min(keys)
        else:
            keys, unit = [_size(file) / 1e6 for file in self.files], "MB"
            near = min(keys)
        chosen = min((f for f, key in zip(self.files, keys, strict=True) if key <= near), key=_nodes)
        told = [f"{f.result.exporter} {key:.3g} {unit}" for f, key in zip(self.files, keys, strict=True)]
        note = f"the file of {chosen.result.exporter} was taken: {', '.join(told)}."
        return chosen, replace(chosen.result, notes=(*chosen.result.notes, note))


def check_quality(quality: Quality | None, target: Target) -> None:
    """Refuses to measure in an engine that is not here, before any work.

    Raises:
        CompatError: Says what to do instead.
    """
    if quality == "latency":
        _engine_of(target)


def _engine_of(target: Target) -> Engine:
    engine = ENGINES.get(target.name)
    if engine is None or engine.interpreter() is None or engine.builds:
        raise CompatError(
            f"optimize='latency' times files in the target's engine, and {target.name!r} does not run here; install "
            f"it, as torch-onnx-compat measure {target.name} --install does, or pass optimize='size'."
        )
    return engine


def _time(files: list[ProvenFile], engine: Engine, inputs: Inputs) -> list[float]:
    """Milliseconds of the processor that each file takes on the example; infinity where the engine refuses it."""
    contestants = [Contestant(file.draft.path, engine, _feeds(file, inputs), file.outputs) for file in files]
    take_turns(contestants)
    if all(one.error for one in contestants):
        raise CompatError(f"optimize='latency': the engine runs none of the files: {contestants[0].error}")
    return [float("inf") if one.error else 1e3 * one.median for one in contestants]


def _feeds(file: ProvenFile, inputs: Inputs) -> dict[str, Any]:
    """The example, as the file takes it.

    Raises:
        CompatError: The file takes other inputs than the model.
    """
    example = dict(zip(inputs.names, inputs.tensors, strict=True))
    graph = onnx.load(file.draft.path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    types = {v.name: v.type.tensor_type.elem_type for v in graph.input if v.name not in weights}
    others = sorted(set(types) - set(example))
    if others:
        raise CompatError(
            f"optimize='latency' times files on the example, and input {others[0]!r} is none of the model's own; "
            f"pass optimize='size'."
        )
    return {n: example[n].numpy(force=True).astype(onnx.helper.tensor_dtype_to_np_dtype(t)) for n, t in types.items()}


def _nodes(file: ProvenFile) -> int:
    return sum(file.result.nodes.values())


def _size(file: ProvenFile) -> int:
    """Bytes of a file, and of its weights beside it."""
    paths = (file.draft.path, external_data_path(file.draft.path))
    return sum(path.stat().st_size for path in paths if path.exists())
