"""Finds the first value at which two files differ, or at which an engine differs from onnxruntime on one file.

Two files, perhaps of two tools, share no names: their values are matched by their numbers, as `check/localise.py`
matches a file's with a model's. In an engine, the file gets every value as an output. An engine whose fusions this
undoes, or that does not take such a file, gets the file cut off after one value at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch

from torch_onnx_compat.check.compare import compare
from torch_onnx_compat.check.eager_log import FLOOR, EagerLog, Step
from torch_onnx_compat.check.file_log import FileLog, scope_of
from torch_onnx_compat.check.localisation import Layer, Localisation
from torch_onnx_compat.check.localise import OUTPUT_FACTOR, RETRIES, Search
from torch_onnx_compat.engines import EngineProcess
from torch_onnx_compat.files.runner import Array, Value
from torch_onnx_compat.files.values import as_inputs
from torch_onnx_compat.graph.excerpt import excerpt
from torch_onnx_compat.publish.publish import draft, is_large


@dataclass(frozen=True)
class FirstDifference:
    """The first value at which two runs differ.

    Attributes:
        found: Whether there is one.
        node: Name of the node that computes it, or its first output's.
        operator: Its operator.
        value: The value's name in the second file.
        reference: The value's name, or its node's operator, on the side that counts as right.
        detail: By how much, and where.
        layers: The error of each value that stands on both sides, in the order in which they are computed.
    """

    found: bool
    node: str = ""
    operator: str = ""
    value: str = ""
    reference: str = ""
    detail: str = ""
    layers: tuple[Layer, ...] = ()

    def __str__(self) -> str:
        if not self.found:
            return "no difference was found that rounding does not explain."
        counterpart = f" ({self.reference} on the other side)" if self.reference else ""
        return f"first difference at {self.operator} {self.node!r}, value {self.value!r}{counterpart}: {self.detail}."

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {**vars(self), "layers": [vars(layer) for layer in self.layers]}


def first_between_files(
    right: Path, other: Path, feeds: Mapping[str, Value], names: Mapping[str, str], outputs: Mapping[str, str]
) -> FirstDifference:
    """The first value at which a file differs from another one, both in onnxruntime, node by node as they are written.

    Args:
        right: The file that counts as right.
        other: The other one.
        feeds: Inputs of the first.
        names: For each of them, its name in the other file.
        outputs: For each output of the first file, its name in the other.

    Raises:
        CompatError: An input is no plain tensor.
    """
    log = FileLog.open(right, as_inputs(feeds))
    file = FileLog.open(other, as_inputs({names[name]: value for name, value in feeds.items()}))
    known = [name for name in log.outputs if outputs.get(name) in file.outputs]
    log.read(log.ancestors(known))
    eager = _steps(log, known)
    _reorder(file, [outputs[name] for name in known])
    found = Localisation(False)
    for _ in range(1 + RETRIES):
        search = Search(eager, file, {})
        found = search.run()
        if not search.is_near:
            break
        for step in eager.steps:
            step.tolerance *= OUTPUT_FACTOR
    if not found.found:
        return FirstDifference(False, layers=found.layers)
    values = f"{found.got:.6g} for {found.wanted:.6g}" if found.got is not None and found.wanted is not None else ""
    return FirstDifference(
        True,
        found.node,
        found.operator,
        found.tensor,
        f"{found.torch_operator} {found.module}".strip(),
        found.detail or values,
        found.layers,
    )


def _reorder(file: FileLog, names: Sequence[str]) -> None:
    """Puts a file's outputs into the order of the other's, without those that the other lacks."""
    by_name = {output.name: output for output in file.model.graph.output}
    chosen = [onnx.ValueInfoProto.FromString(by_name[name].SerializeToString()) for name in names]
    del file.model.graph.output[:]
    file.model.graph.output.extend(chosen)


def _steps(log: FileLog, outputs: Sequence[str]) -> EagerLog:
    """The values of a file as the steps of a model."""
    varying, numbers, eager = log.input_dependents(), {}, EagerLog()
    for name, node in log.makers.items():
        value = log.values.get(name)
        if value is None:
            continue
        numbers[name] = len(eager.steps)
        dtype = torch.float32 if value.is_float else torch.int64
        step = Step(
            operator=node.op_type,
            module=node.name or node.output[0],
            kind="",
            statement=scope_of(node),
            shape=value.shape,
            dtype=dtype,
            sample=value.sample,
            inputs=tuple(numbers[operand] for operand in log.operands(name) if operand in numbers),
            varies=name in varying,
            boundary=f"{node.op_type} {node.name or name}",
        )
        step.tolerance = FLOOR[dtype] * step.scale if value.is_float else 0.0
        eager.steps.append(step)
    eager.outputs = [numbers.get(name) for name in outputs]
    return eager


class EngineValues:
    """The values inside a file, in onnxruntime and in an engine.

    Args:
        path: The file.
        feeds: Its inputs.
        process: The engine.
        tolerance: Relative and absolute error that passes.
    """

    def __init__(
        self, path: Path, feeds: Mapping[str, Value], process: EngineProcess, tolerance: tuple[float, float]
    ) -> None:
        self._model = ir.load(path)
        self._log = FileLog.open(path, as_inputs(feeds))
        self._feeds, self._process, self._tolerance = dict(feeds), process, tolerance
        self._values = {str(v.name): v for node in self._model.graph for v in node.outputs if v.name}

    def first(self) -> FirstDifference:
        """The first value at which the engine differs."""
        order, wanted = self._wanted()
        found = self._run(order)
        bad = {name for name in found if self._off(found[name], wanted[name])}
        if found and bad:
            first = self._finding(next(name for name in order if name in bad), found, wanted)
            return replace(first, layers=self._layers(found, wanted))
        return self._by_cutting(order, wanted)

    def layers(self) -> tuple[Layer, ...]:
        """The error of each value; none where the engine does not give them all at once."""
        order, wanted = self._wanted()
        return self._layers(self._run(order), wanted)

    def _wanted(self) -> tuple[list[str], dict[str, Array]]:
        """The values that outputs follow from, in the order in which they are computed, and what onnxruntime gives."""
        relevant = self._log.input_dependents() & self._log.ancestors(self._log.outputs)
        wanted = self._log.arrays([name for name in self._log.makers if name in relevant])
        order = [name for name in self._log.makers if name in wanted]
        for name in order:  # some engines refuse an output whose type is not declared
            value = self._values[name]
            value.type = value.type or ir.TensorType(ir.DataType.from_numpy(wanted[name].dtype))
        return order, wanted

    def _layers(self, found: Mapping[str, Array], wanted: Mapping[str, Array]) -> tuple[Layer, ...]:
        """The errors of the float values, relative to the largest value of each."""
        layers = []
        for name in found:
            exact = wanted[name].astype(np.float64)
            scale = np.abs(exact).max(initial=0.0)
            if wanted[name].dtype.kind != "f" or not scale or not np.isfinite(scale):
                continue
            same = found[name].size == exact.size
            error = np.abs(found[name].reshape(exact.shape) - exact).max() / scale if same else np.inf
            node = self._log.makers[name]
            layers.append(Layer(f"{node.op_type} {node.name or name}", float(error), sum(self._tolerance)))
        return tuple(layers)

    def _run(self, names: Sequence[str]) -> dict[str, Array]:
        inputs = list(self._model.graph.inputs)
        try:
            part = excerpt(self._model, inputs, [self._values[name] for name in names], "part")
        except ValueError:
            return {}
        with draft(part, None, is_large(part)) as written:
            used = {str(value.name) for value in part.graph.inputs}
            feeds = {name: value for name, value in self._feeds.items() if name in used}
            outcome = self._process.run(written.path, feeds, list(names))
        return dict(zip(names, outcome.outputs, strict=True)) if outcome.status == "ran" else {}

    def _by_cutting(self, order: Sequence[str], wanted: Mapping[str, Array]) -> FirstDifference:
        """Cuts the file off after one value at a time, and searches for a wrong value that follows from right ones.

        Between an output and what it is computed from, the search goes by halves; a value on another path may be right
        where an earlier one is wrong, so at the end every operand of what was found is run.
        """
        seen: dict[str, dict[str, Array]] = {}
        runs_whole = bool(self._run(self._log.outputs))

        def is_bad(name: str) -> bool:
            if name not in seen:
                seen[name] = self._run([name])
            if not seen[name]:  # where the whole runs, the part is refused for having been cut off
                return not runs_whole
            return self._off(seen[name][name], wanted[name])

        place = {name: number for number, name in enumerate(order)}
        name = next((output for output in self._log.outputs if output in place and is_bad(output)), "")
        while name:
            before = sorted((self._log.ancestors([name]) - {name}) & place.keys(), key=place.__getitem__)
            low = bisect_left(before, True, key=is_bad)
            operands = [operand for operand in self._log.operands(name) if operand in place]
            earlier = before[low] if low < len(before) else next(filter(is_bad, operands), "")
            if not earlier:
                break
            name = earlier
        ran = {known: seen[known][known] for known in order if seen.get(known)}
        layers = self._layers(ran, wanted)
        if not name:
            return FirstDifference(False, layers=layers)
        if not seen[name]:
            node = self._log.makers[name]
            return FirstDifference(
                True, node.name or name, node.op_type, name, "", "the engine refuses the file up to it", layers
            )
        return replace(self._finding(name, seen[name], wanted), layers=layers)

    def _off(self, found: Array, wanted: Array) -> bool:
        if found.size == wanted.size == 1:
            found = found.reshape(wanted.shape)
        row = compare("", "", found.astype(wanted.dtype), torch.from_numpy(np.array(wanted)), *self._tolerance)
        return not row.ok

    def _finding(self, name: str, found: Mapping[str, Array], wanted: Mapping[str, Array]) -> FirstDifference:
        node = self._log.makers[name]
        a = found[name].astype(wanted[name].dtype)
        row = compare("", "", a, torch.from_numpy(np.array(wanted[name])), *self._tolerance)
        return FirstDifference(True, node.name or name, node.op_type, name, "", row.detail)
