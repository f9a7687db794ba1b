"""Brings a proven file to a narrower format, by the passes and judges that a model's file is narrowed by.

What eager torch is to a model's file, the original is to another file: it says what is right, in float64 where
onnxruntime, or onnx's reference evaluator, runs it in that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import onnx_ir as ir
import torch

from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.compare import as_array
from torch_onnx_compat.check.lint import lint
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.files.cases import FileCase, check_inputs
from torch_onnx_compat.files.double import to_double
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.runner import Refused, Runner
from torch_onnx_compat.files.values import as_inputs, is_plain
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.walk import nodes_of
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation, Reference
from torch_onnx_compat.precision.float32_places import check_float32_places
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.int8.quantize import QuantizedNetwork
from torch_onnx_compat.precision.int8.request import Int8, Request
from torch_onnx_compat.precision.judge import run_in
from torch_onnx_compat.precision.narrow import NarrowNetwork, PrecisionJob
from torch_onnx_compat.precision.to_format import bring_to_format
from torch_onnx_compat.publish.publish import draft, is_large
from torch_onnx_compat.targets import Target

PATIENCE = 20.0
"""Seconds that a run in float64 may take; float32 stands for it then."""

MEASURED = 3
"""Cases that are measured on."""

_ZEROS = "zeros values"


@dataclass(frozen=True)
class _Inputs:
    """As much of a prepared model as the judges ask for."""

    inputs: Inputs
    model: Any = None


class FileObservation:
    """Runs of a file, with the interface of an Observation as far as the judges of precision use it.

    Args:
        proof: Has the file open.
        example: The first case.
        stack: Closes what is opened.
    """

    def __init__(self, proof: Proof, example: Inputs, stack: ExitStack) -> None:
        self.prepared = _Inputs(example)
        self._proof, self._stack = proof, stack
        self._double: Runner | None = None
        self._refusal = ""
        self._references: dict[str, Reference] = {}

    def reference(
        self,
        label: str,
        inputs: Inputs,
        dtype: torch.dtype | None = None,
        within: AbstractContextManager[Any] | None = None,
    ) -> Reference:
        """Runs the file, once for each label.

        Args:
            label: Names the run.
            inputs: What to run it on.
            dtype: float64, or None for the file's own types.
            within: Nothing: no torch code runs here that a context could look at.

        Raises:
            ModelRefused: It does not run like this.
        """
        if label not in self._references:
            self._references[label] = self._run(inputs, dtype, within)
        return self._references[label]

    def _run(self, inputs: Inputs, dtype: torch.dtype | None, within: Any) -> Reference:
        feeds = {name: as_array(tensor) for name, tensor in zip(inputs.names, inputs.tensors, strict=True)}
        try:
            if dtype is None and within is None:
                outputs = self._proof.run(feeds)
            elif dtype is torch.float64 and within is None:
                outputs = self._run_in_double(feeds)
            else:
                raise ModelRefused(f"a file does not run in {dtype}, or within a context of torch")
        except Refused as error:
            raise ModelRefused(str(error)) from error
        return _reference(self._proof.names, outputs)

    def _run_in_double(self, feeds: Mapping[str, Any]) -> list[Any]:
        if self._refusal:
            raise ModelRefused(self._refusal)
        wide = {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in feeds.items()}
        try:
            return self._open_double().run("double", wide, self._proof.names)
        except (Refused, CompatError) as error:
            self._refusal = str(error)
            raise ModelRefused(self._refusal) from error

    def _open_double(self) -> Runner:
        if self._double is None:
            model = self._proof.file.graph()
            to_double(model)
            path = self._stack.enter_context(draft(model, None, is_large(model))).path
            self._double = self._stack.enter_context(Runner(limit=PATIENCE))
            try:
                self._double.open("double", path)
            except Refused:
                self._double.open("double", path, "reference")
        return self._double


def _reference(names: Sequence[str], outputs: Sequence[Any]) -> Reference:
    tensors = tuple(torch.from_numpy(np.array(value)) for value in outputs)
    return Reference(tensors, tuple((name,) for name in names), (), 0.0)


def narrow_file(
    model: ir.Model, proof: Proof, narrower: Half | Request, target: Target, seconds: float
) -> NarrowNetwork | QuantizedNetwork:
    """Brings a proven float32 graph to a format.

    Args:
        model: The graph.
        proof: The file that it was proven against, and the cases.
        narrower: The format.
        target: The engine that it is for.
        seconds: What the conversion took so far.

    Raises:
        CompatError: The opset, the calibration inputs or the metric do not fit, or a value is no plain tensor, or a
            place to keep in float32 is not there.
        VerificationError: onnxruntime does not run the file.
    """
    nodes = list(nodes_of(model))
    check_float32_places(narrower.keep, map(place, nodes), {node.op_type for node in nodes})
    for case in proof.cases:
        values = [*case.feeds.values(), *case.outputs]
        if not all(isinstance(v, np.ndarray) and v.dtype.kind in "biuf" and is_plain(v) for v in values):
            raise CompatError(f"precision={narrower.name!r}: case {case.label!r} holds more than plain tensors.")
    with ExitStack() as stack:
        cases = [_case(proof.names, case) for case in proof.cases]
        cases[0] = replace(cases[0], label="example")
        observation = FileObservation(proof, cases[0].inputs, stack)
        job = PrecisionJob(
            network=model,
            names=proof.names,
            observation=cast(Observation, observation),
            cases=[case for case in cases if case.label != _ZEROS],
            inputs=[case.inputs for case in cases if case.label != _ZEROS][:MEASURED],
            special=[case for case in cases if case.label == _ZEROS],
            seconds=seconds,
        )
        run_in(cast(Observation, observation), "example", cases[0].inputs, torch.float64)  # slow; kept
        calibration: Sequence[Inputs] = job.inputs[1:]
        if isinstance(narrower, Int8) and (found := _calibration(proof, narrower)):
            observation.prepared, calibration = _Inputs(found[0]), found[1:] or calibration
            narrower = replace(narrower, calibration=None)
        made = bring_to_format(job, narrower, target, calibration)
    lint(made.model, target)
    told: Any = made
    notes = tuple(note.replace("eager torch", "the original") for note in made.precision.notes)
    result: NarrowNetwork | QuantizedNetwork = replace(told, precision=replace(told.precision, notes=notes))
    return result


def _case(names: Sequence[str], case: FileCase) -> Case:
    return Case(case.label, as_inputs(case.feeds), _reference(names, case.outputs))


def _calibration(proof: Proof, int8: Int8) -> list[Inputs]:
    """The calibration inputs: by name, or in the order of the file's inputs."""
    found = []
    names = list(proof.cases[0].feeds)
    dtypes = {name: value.dtype for name, value in proof.cases[0].feeds.items()}
    for number, item in enumerate(int8.calibration or ()):
        given = item if isinstance(item, Mapping) else dict(zip(names, _as_items(item), strict=False))
        try:
            feeds = check_inputs(proof.file, given)
            proof.run(feeds := {name: np.asarray(a).astype(dtypes.get(name)) for name, a in feeds.items()})
        except CompatError as error:
            raise CompatError(f"calibration input {number}: {error}") from error
        found.append(as_inputs(feeds))
    return found


def _as_items(item: Any) -> Sequence[Any]:
    return item if isinstance(item, (tuple, list)) else (item,)
