"""localise(): finds the first layer at which a file computes something else than the model.

Tensors are identified by their values: a tensor of the file matches a tensor of eager torch that it equals within some
multiples of eager torch's own rounding error. A tensor that an exporter fuses, folds or rewrites is missing on one
side; it counts as right where a right tensor is computed from it. The place is a tensor that is wrong although it is
computed from right tensors only. Names and scopes decide where several nodes qualify.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch
from torch import nn

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.check.eager_log import EagerLog, Step, difference, run_eager
from torch_onnx_compat.check.file_log import FileLog, Value, module_of
from torch_onnx_compat.check.kinds import PARTS, is_same_kind
from torch_onnx_compat.check.localisation import Layer, Localisation, Loss
from torch_onnx_compat.check.matching import (
    AHEAD,
    closure,
    counterpart,
    distance,
    first_items,
    group_by_shape,
    is_evidence,
    right_items,
    squeeze_shape,
)
from torch_onnx_compat.errors import ArgumentError, CompatError
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.judge import CaseError
from torch_onnx_compat.precision.lost import LostNode, find_lost, half_of, is_wide
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.surgery.around_model.boundary import prepare_as_exported

BUDGET = 512 * 2**20
"""Bytes of tensors that one run of the file may hold; beyond it, a few tensors are read and the search narrows down."""

OUTPUT_FACTOR = 4.0
"""Largest error of an output, in tolerances: rounding errors have added up by then."""

FLOAT32_UNIT = torch.finfo(torch.float32).eps

RETRIES = 2
"""How often the search is repeated with larger tolerances, where the difference that it found is near its tolerance."""


def localise(
    model: Any,
    file: str | os.PathLike[str] | bytes | onnx.ModelProto,
    inputs: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    state: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
) -> Localisation:
    """Finds the first layer at which an ONNX file computes something else than a model.

    Args:
        model: The original module.
        file: Path, serialised model or onnx.ModelProto; any exporter's.
        inputs: Positional arguments of forward, e.g. ``(image,)``.
        kwargs: Keyword arguments of forward.
        state: Attributes that are inputs and outputs of the file, as for export_compat.
        outputs: Places whose values are the file's outputs, as for export_compat.

    Raises:
        CompatError: The file takes other inputs than the model, or the model fails on them.
    """
    prepared = prepare_as_exported(model, inputs, kwargs, state=state, outputs=outputs)
    return localise_prepared(prepared, file, prepared.inputs)


def localise_prepared(
    prepared: Prepared, file: str | os.PathLike[str] | bytes | onnx.ModelProto, inputs: Inputs
) -> Localisation:
    """localise() for a model that is prepared already.

    Args:
        prepared: The model.
        file: As for localise().
        inputs: The inputs to run both on.
    """
    log = FileLog.open(file, inputs)
    weights = {tensor.name for tensor in log.model.graph.initializer}
    names = tuple(value.name for value in log.model.graph.input if value.name not in weights)
    if set(names) != set(inputs.names):
        if len(names) != len(inputs.names):
            raise ArgumentError(
                f"the file takes the inputs {list(names)}, but the model {list(inputs.names)}. Of a file with state as "
                f"inputs, name it here, too: state={list(set(names) - set(inputs.names))}."
            )
        log.inputs = replace(inputs, names=names)
    if is_wide(prepared):
        model = log.graph()
        half = half_of(model)
        if half is not None:
            return _localise_narrow(prepared, model, half, log.inputs)
    return _search(prepared, log)


def _search(prepared: Prepared, log: FileLog, coarser: float = 1.0) -> Localisation:
    """Searches for the first difference, with tolerances this many times as large."""
    try:
        eager, modules = run_eager(prepared, log.inputs), dict(prepared.model.named_modules())
    except CompatError:
        raise
    except Exception as error:  # the model's own, of any class
        raise CompatError(f"the model itself fails on these inputs: {type(error).__name__}: {error}") from error
    for step in eager.steps:
        step.tolerance *= coarser
    search = Search(eager, log, modules)
    found = search.run()
    for _ in range(RETRIES):
        if not search.is_near:
            break
        for step in eager.steps:
            step.tolerance *= OUTPUT_FACTOR
        search = Search(eager, log, modules)
        found = search.run()
    return found


def _localise_narrow(prepared: Prepared, model: ir.Model, half: Half, inputs: Inputs) -> Localisation:
    """Finds what a file of half the width lost; where its float32 form is off, too, the first layer that differs."""
    finding = find_lost(prepared, model, half, inputs)
    if finding.ok:
        return Localisation(False, format=half.name)
    log = FileLog.open(ir.to_proto(finding.wide), inputs)
    if not finding.is_precision or not finding.nodes:
        return replace(_search(prepared, log, half.unit / FLOAT32_UNIT), format=half.name)
    eager, modules = run_eager(prepared, inputs), dict(prepared.model.named_modules())
    for step in eager.steps:
        step.tolerance *= half.unit / FLOAT32_UNIT  # the weights are rounded
    search = Search(eager, log, modules)
    lost = tuple(_loss(node, search) for node in finding.nodes)
    first = lost[0]
    kind = type(modules[first.module]).__name__ if first.module in modules else ""
    return Localisation(
        found=True,
        module=first.module,
        kind=kind,
        operator=first.operator,
        node=first.node,
        tensor=finding.nodes[0].output,
        statement=first.statement,
        torch_operator=first.torch_operator,
        detail=first.why,
        format=half.name,
        off=tuple(_off(row, half) for row in finding.rows if not row.ok),
        lost=lost,
    )


def _loss(node: LostNode, search: Search) -> Loss:
    step = search.step_of(node.output)
    made = search.file.makers.get(node.output)
    known = (step.module if step else None) or (made and module_of(made, search.modules))
    return Loss(
        module=known or ("" if step else node.place),
        operator=node.op_type,
        node=node.name,
        statement=step.statement if step else "",
        torch_operator=step.operator if step else "",
        why=node.why,
        loss=node.loss,
        largest=node.largest,
    )


def _off(row: CaseError, half: Half) -> str:
    worst = max(error.worst for error in (row.file, row.rendering) if error is not None)
    how = "is not finite" if worst == float("inf") else f"is off by {worst:.2g}"
    return f"output {row.output!r} {how}, of {half.bound:.2g} at most"


class Search:
    """One comparison of the tensors of both sides.

    Args:
        eager: The tensors of the side that is right.
        file: Those of the file.
        modules: The modules of the model, by path; none where the side that is right is a file too.
    """

    def __init__(self, eager: EagerLog, file: FileLog, modules: Mapping[str, nn.Module]) -> None:
        self.steps = eager.steps
        self.eager_outputs = eager.outputs
        self.file = file
        self.modules = modules
        self.input_dependents = file.input_dependents()
        self.region: set[str] | None = None
        """The tensors around the first wrong one; None where all tensors were read."""
        self.alike = group_by_shape(self.steps)
        self.matched_steps: set[int] = set()
        self.right_steps: set[int] = set()
        self.matched_values: set[str] = set()
        self.is_near = False
        """Whether the difference found is near its tolerance, so that it may not explain the wrong outputs."""

    def run(self) -> Localisation:
        """Finds the first difference."""
        all_at_once = self._size() <= BUDGET
        self._match(
            self.file.ancestors(self.file.outputs) & self.input_dependents if all_at_once else self.file.outputs
        )
        wrong = self._wrong_outputs()
        self._read(self.file.ancestors(name for _, name in wrong) or self.file.ancestors(self.file.outputs))
        self.right_steps = self._right_steps()
        if not wrong:
            return Localisation(False, layers=self._layers())
        step, name = self._first_difference(wrong)
        if step is not None and name is not None:
            self.is_near = distance(step, self.file.values[name]) <= OUTPUT_FACTOR * step.tolerance
        return self._finding(step, name)

    def _first_difference(self, wrong: list[tuple[int, str]]) -> tuple[Step | None, str | None]:
        """The first step and tensor that differ."""
        steps = self._first_steps([index for index, _ in wrong])
        values = self._first_values([name for _, name in wrong])
        step, name = self._pair(steps, values)
        if step is not None and name is not None:
            name = self._result_of(step, name, [other for _, other in wrong])
            step = counterpart(self.steps, step, self.file.values[name], self.matched_steps)
        return step, name

    # Matching tensors

    def _wrong_outputs(self) -> list[tuple[int, str]]:
        wrong = []
        for index, name in zip(self.eager_outputs, self.file.outputs, strict=False):
            value = self.file.values.get(name)
            if index is None or index < 0 or value is None:
                continue
            step = self.steps[index]
            limit = OUTPUT_FACTOR * step.tolerance
            if value.shape == step.shape and difference(value.sample, step.sample) <= limit:
                self.matched_steps.add(index)
                self.matched_values.add(name)
            else:
                wrong.append((index, name))
        return wrong

    def _size(self) -> int:
        """Bytes of all tensors that depend on the inputs, in float64."""
        return sum(8 * prod(step.shape) for step in self.steps if step.varies)

    def _read(self, names: set[str]) -> None:
        """Reads tensors; where one run cannot hold them all, a few first and then those around the first wrong one."""
        ordered = [name for name in self.file.makers if name in names & self.input_dependents]
        whole, size = len(ordered), self._size()
        while size * len(ordered) > BUDGET * whole:
            stride = max(2, -(-size * len(ordered) // (BUDGET * whole)))
            coarse = [*ordered[stride - 1 :: stride], ordered[-1]]
            self._match(coarse)
            bad = self._first_wrong(coarse, ordered)
            if not bad:
                return
            region = self.file.ancestors(bad) - self.file.ancestors(self.matched_values)
            narrowed = [name for name in ordered if name in region]
            if len(narrowed) == len(ordered):
                break
            ordered = narrowed
            self.region = region
        self._match(ordered)

    def _first_wrong(self, coarse: list[str], ordered: list[str]) -> list[str]:
        """The first of these tensors from which no right tensor is computed, and some that follow it."""
        while True:
            right = self.file.ancestors(self.matched_values)
            bad = next((name for name in coarse if name not in right), None)
            if bad is None:
                return []
            start = ordered.index(bad)
            near = ordered[start : start + AHEAD]  # a tensor inside a decomposed layer matches none of torch's
            if all(name in self.file.values for name in near):
                return near
            before = len(self.file.values)
            self._match(near)
            if len(self.file.values) == before:
                return near

    def _match(self, names: Iterable[str]) -> None:
        names = list(names)
        self.file.read(names)
        for name in names:
            value = self.file.values.get(name)
            if value is None or not is_evidence(value.sample):
                continue
            alike = self.alike.get(squeeze_shape(value.shape))
            found = alike.equal_steps(value.sample) if alike else []
            if found:
                self.matched_values.add(name)
                self.matched_steps.update(found)

    # Wrong tensors that are computed from right ones

    def _right_steps(self) -> set[int]:
        """Steps that match a tensor of the file, and steps from which such a step is computed."""
        steps = self.steps
        return right_items(
            range(len(steps)),
            self.matched_steps,
            lambda index: steps[index].inputs,
            lambda index: steps[index].operator.rpartition(".")[2] in PARTS,
            lambda index: steps[index].shape,
        )

    def _first_steps(self, wrong: list[int]) -> list[int]:
        relevant = closure(wrong, lambda index: self.steps[index].inputs)
        bad = {i for i in relevant - self.right_steps if self.steps[i].is_float and self.steps[i].varies}
        if self.region is not None:  # a tensor that was not read proves nothing: those of the region decide
            return sorted(bad)
        return first_items(range(len(self.steps)), bad, lambda index: self.steps[index].inputs)

    def _first_values(self, wrong: list[str]) -> list[str]:
        relevant = self.file.ancestors(wrong)
        values, makers = self.file.values, self.file.makers
        right = right_items(
            list(makers),
            self.matched_values,
            self.file.operands,
            lambda name: makers[name].op_type in PARTS,
            lambda name: values[name].shape if name in values else (),
        )
        if self.region is not None:
            relevant &= self.region
        bad = {name for name in relevant - right if name in values and values[name].is_float}
        return first_items(makers, bad, self.file.operands)

    def _pair(self, steps: list[int], values: list[str]) -> tuple[Step | None, str | None]:
        """A step and a tensor of one module and kind, of several candidates; else the first of each."""
        best: tuple[int, Step | None, str | None] = (
            -1,
            self.steps[steps[0]] if steps else None,
            values[0] if values else None,
        )
        for index in self._steps_nearby(steps):
            for name in values:
                step, node = self.steps[index], self.file.makers[name]
                rank = 2 * (module_of(node, self.modules) == step.module) + is_same_kind(step.operator, node.op_type)
                if rank > best[0]:
                    best = rank, step, name
        return best[1:]

    def _result_of(self, step: Step, name: str, wrong: list[str]) -> str:
        """The first tensor of the step's shape that follows; the tensor itself if it has as many axes as the step.

        One operator of torch may be many nodes, which begin with sizes and other numbers.
        """
        value = self.file.values[name]
        if len(value.shape) == len(step.shape) or squeeze_shape(value.shape) == squeeze_shape(step.shape):
            return name
        followers, relevant = {name}, self.file.ancestors(wrong)
        for other in self.file.makers:
            if other not in relevant or followers.isdisjoint(self.file.operands(other)):
                continue
            followers.add(other)
            if other in self.file.values and self.file.values[other].shape == step.shape:
                return other
        return name

    def _steps_nearby(self, steps: list[int]) -> list[int]:
        """The first wrong steps, and those that follow them within the same module."""
        reach = dict.fromkeys(steps)
        for index in range(steps[0] if steps else 0, len(self.steps)):
            step = self.steps[index]
            wrong = index not in self.matched_steps and step.is_float
            if wrong and any(i in reach and self.steps[i].module == step.module for i in step.inputs):
                reach[index] = None
        return list(reach)

    def step_of(self, name: str) -> Step | None:
        """The step of the model that a tensor of the file corresponds to, by its values; None where none does."""
        if name not in self.file.makers:
            return None
        self.file.read([name])
        value = self.file.values.get(name)
        alike = self.alike.get(squeeze_shape(value.shape)) if value is not None else None
        if value is None or alike is None or not is_evidence(value.sample):
            return None
        return min(
            (self.steps[index] for index in alike.equal_steps(value.sample)),
            key=lambda step: (not is_same_kind(step.operator, self.file.makers[name].op_type), distance(step, value)),
            default=None,
        )

    # The result

    def _finding(self, step: Step | None, name: str | None) -> Localisation:
        node = self.file.makers[name] if name else None
        path = step.module if step else (node and module_of(node, self.modules)) or ""
        value = self.file.values.get(name) if name else None
        wanted, got, detail = _values(step, value)
        return Localisation(
            found=True,
            module=path,
            kind=type(self.modules[path]).__name__ if path in self.modules else "",
            operator=node.op_type if node else "",
            node=(node.name or node.output[0]) if node else "",
            tensor=name or "",
            statement=step.statement if step else "",
            torch_operator=step.operator if step else "",
            wanted=wanted,
            got=got,
            detail=detail,
            layers=self._layers(),
        )

    def _layers(self) -> tuple[Layer, ...]:
        """The modules whose result stands in the file, each with the error of the nearest tensor."""
        shapes: dict[tuple[int, ...], list[Array]] = defaultdict(list)
        for value in self.file.values.values():
            if value.is_float:
                shapes[squeeze_shape(value.shape)].append(value.sample)
        layers = []
        for index, step in enumerate(self.steps):
            near = shapes.get(squeeze_shape(step.shape), ())
            fused = index in self.right_steps and index not in self.matched_steps
            if not step.boundary or not step.is_float or fused or not near or not step.scale:
                continue
            error = min(difference(sample, step.sample) for sample in near)
            layers.append(Layer(step.boundary, error / step.scale, step.tolerance / step.scale))
        return tuple(layers)


def _values(step: Step | None, value: Value | None) -> tuple[float | None, float | None, str]:
    if step is None or value is None:
        return None, None, "the file has no such tensor"
    if squeeze_shape(step.shape) != squeeze_shape(value.shape):
        return None, None, f"shape {value.shape} for {step.shape}"
    if not step.sample.size:
        return None, None, "both are empty"
    worst = np.nan_to_num(np.abs(value.sample - step.sample), nan=np.inf)
    where = int(np.argmax(worst))
    return float(step.sample[where]), float(value.sample[where]), ""
