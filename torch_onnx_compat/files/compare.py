"""compare(): two files, a file in two engines; the outputs, and the first value that differs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torch_onnx_compat.check.compare import Comparison, as_array, comparison_lines, uncompared
from torch_onnx_compat.check.compare import compare as compare_arrays
from torch_onnx_compat.check.localise import localise
from torch_onnx_compat.check.on_target import tolerance_of
from torch_onnx_compat.engines import find_engine
from torch_onnx_compat.errors import ArgumentError, CompatError
from torch_onnx_compat.files.cases import FileCase
from torch_onnx_compat.files.layers import EngineValues, FirstDifference, first_between_files
from torch_onnx_compat.files.on_engine import compare_in_engine
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.reading import OnnxFile, read, weights_of
from torch_onnx_compat.files.runner import Refused, Runner
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.surgery.around_model.boundary import prepare_as_exported


@dataclass(frozen=True)
class FileComparison:
    """What two files, or one file in two engines, have in common.

    Attributes:
        right: What counts as right.
        other: What was compared with it.
        table: One row for each case and output.
        first: The first value that differs, where that was asked for.
        notes: What else the caller should know.
    """

    right: str
    other: str
    table: tuple[Comparison, ...]
    first: FirstDifference | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether every output of every case is equal within its tolerance, and the values of any were compared."""
        return all(row.ok for row in self.table) and any(row.compares_values for row in self.table)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        return {
            "right": self.right,
            "other": self.other,
            "equal": self.is_equal,
            "table": [row.to_dict() for row in self.table],
            "first": None if self.first is None else self.first.to_dict(),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        bad = sum(not row.ok for row in self.table)
        verdict = f"{bad} of {len(self.table)} comparisons differ" if bad else "no value could be compared"
        unseen = uncompared(self.table)
        if self.is_equal:
            verdict = (
                f"equal, but for the values of {', '.join(unseen)}, which were not compared" if unseen else "equal"
            )
        lines = [f"{self.other} beside {self.right}: {verdict}"]
        lines += [f"  {self.first}"] if self.first is not None else []
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join([*lines, *comparison_lines(self.table)])


def compare(
    right: str | os.PathLike[str],
    other: str | os.PathLike[str] | None = None,
    *,
    engine: str | None = None,
    layers: bool = False,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    seed: int = 0,
) -> FileComparison:
    """Compares a file with another one, or with itself in another engine.

    Inputs and outputs of two files are paired by name, and where the names differ, by order.

    Args:
        right: The file that counts as right, in onnxruntime.
        other: Another file, in onnxruntime.
        engine: Instead of another file: the engine in which the same file is run.
        layers: Whether the first value that differs is searched for.
        inputs: Inputs to compare on, by name; or several such. Random ones are drawn besides.
        sizes: Sizes of dynamic axes, as for convert().
        seed: Of the random inputs.

    Raises:
        CompatError: A file is broken or does not run, the files take other inputs, or the engine is not installed.
    """
    if (other is None) == (engine is None):
        raise CompatError("compare: give another file, or an engine, and not both.")
    given = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    tried = {name: (value,) if isinstance(value, int) else tuple(value) for name, value in (sizes or {}).items()}
    file = read(right)
    if other is None:
        with Proof(file, given, tried, seed) as proof:
            proof.make_cases()
            return _in_engine(proof, str(engine), layers)
    beside = read(other)
    fixed = {name: size for name, size in _sizes_fixed_in(file, beside).items() if name not in tried}
    with Proof(file, given, {**tried, **{name: (size,) for name, size in fixed.items()}}, seed) as proof:
        proof.make_cases()
        told = ", ".join(f"{name}={size}" for name, size in fixed.items())
        proof.notes += [f"{beside.path} takes {told} only, so nothing else was tried."] if fixed else []
        return _with_file(proof, beside, layers)


def _sizes_fixed_in(file: OnnxFile, other: OnnxFile) -> dict[str, int]:
    """The sizes of a file's dynamic axes that are fixed in another one."""
    found: dict[str, int] = {}
    others = {value.name: value for value in other.proto.graph.input}
    names = _pair("inputs", _inputs_of(file), _inputs_of(other))
    for value in file.proto.graph.input:
        if value.name in names:
            both = (v.type.tensor_type.shape.dim for v in (value, others[names[value.name]]))
            found |= {one.dim_param: two.dim_value for one, two in zip(*both, strict=False) if two.dim_value}
    found.pop("", None)
    return found


def _with_file(proof: Proof, other: OnnxFile, layers: bool) -> FileComparison:
    names = _pair("inputs", _inputs_of(proof.file), _inputs_of(other))
    outputs = _pair("outputs", proof.names, [value.name for value in other.proto.graph.output])
    rows: list[Comparison] = []
    worst: FileCase | None = None
    proof.runner.open("other", other.path)
    for case in proof.cases:
        feeds = {names.get(name, name): value for name, value in case.feeds.items()}
        try:
            found = proof.runner.run("other", feeds, [outputs[name] for name in proof.names])
        except Refused as error:
            rows.append(Comparison(case.label, "", float("nan"), float("nan"), "", False, f"fails: {error}"))
            continue
        rows += proof.compare_outputs(case, found)
        if worst is None and not all(row.ok for row in rows):
            worst = case
    first = None
    if layers:
        case = worst or proof.cases[0]
        feeds = {name: value for name, value in case.feeds.items() if name in names}
        first = first_between_files(proof.file.path, other.path, feeds, names, outputs)
    return FileComparison(str(proof.file.path), str(other.path), tuple(rows), first, tuple(proof.notes))


def _inputs_of(file: OnnxFile) -> list[str]:
    weights = weights_of(file.proto.graph)
    return [value.name for value in file.proto.graph.input if value.name not in weights]


def _pair(what: str, names: Sequence[str], others: Sequence[str]) -> dict[str, str]:
    """Each name with its name in the other file: the same one, else the one at the same place.

    Raises:
        CompatError: The other file has another number of them.
    """
    if set(names) <= set(others):
        return {name: name for name in names}
    if len(names) != len(others):
        raise ArgumentError(f"the {what} are {', '.join(names)} on one side and {', '.join(others)} on the other.")
    return dict(zip(names, others, strict=True))


def _in_engine(proof: Proof, name: str, layers: bool) -> FileComparison:
    engine = find_engine(name)
    rows: list[Comparison] = []
    first, worst = None, None
    process = proof.runner.engine(engine)
    for case, _, compared in compare_in_engine(proof.file.path, proof, engine, process):
        rows += compared
        worst = worst or (None if all(row.ok for row in compared) else case)
    label = f"{proof.file.path} in {engine.name} {process.version}"
    if layers and worst is not None:
        first = EngineValues(proof.file.path, worst.feeds, process, tolerance_of(engine)).first()
    elif layers:
        values = EngineValues(proof.file.path, proof.cases[0].feeds, process, tolerance_of(engine))
        first = FirstDifference(False, layers=values.layers())
    return FileComparison(str(proof.file.path), label, tuple(rows), first, tuple(proof.notes))


def compare_with_model(
    file: str | os.PathLike[str],
    name: str,
    model: Any,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    layers: bool = False,
    state: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
) -> FileComparison:
    """Compares a file with a torch model, on one example.

    Args:
        file: The file, whose inputs are those of the model, by name or by order.
        name: What the result calls the model.
        model: The module, which counts as right.
        args: Positional arguments of forward.
        kwargs: Keyword arguments of forward.
        layers: Whether the first layer that differs is searched for.
        state: Attributes that are inputs and outputs of the file, as for export_compat.
        outputs: Places whose values are the file's outputs, as for export_compat.

    Raises:
        CompatError: The file takes other inputs than the model, or either does not run.
    """
    prepared = prepare_as_exported(model, args, kwargs, state=state, outputs=outputs)
    reference = Observation(prepared).reference("example", prepared.inputs)
    onnx_file = read(file)
    arrays = {n: as_array(t) for n, t in zip(prepared.inputs.names, prepared.inputs.tensors, strict=True)}
    names = _pair("inputs", list(arrays), _inputs_of(onnx_file))
    results = [value.name for value in onnx_file.proto.graph.output]
    if len(results) != len(reference.outputs):
        raise ArgumentError(
            f"the file has {len(results)} outputs, and the model {len(reference.outputs)}. Of a file with other "
            f"outputs than the model's, or with state, name them here, too: outputs=['layer3', ''], state=['h']."
        )
    with Runner() as runner:
        runner.open("file", onnx_file.path)
        found = runner.run("file", {names[n]: array for n, array in arrays.items()}, results)
    rows = [
        compare_arrays("example", output, np.asarray(value), wanted.detach())
        for output, value, wanted in zip(results, found, reference.outputs, strict=True)
    ]
    first = None
    if layers:
        place = localise(model, file, args, kwargs=kwargs, state=state, outputs=outputs)
        detail = place.detail or (f"{place.got:.6g} for {place.wanted:.6g}" if place.got is not None else "")
        where = f"{place.torch_operator} in {place.module or 'the model itself'}".strip()
        first = FirstDifference(
            place.found,
            place.node,
            place.operator,
            place.tensor,
            where if place.found else "",
            detail,
            tuple(replace(layer, module=layer.module or "the model itself") for layer in place.layers),
        )
    return FileComparison(name, str(onnx_file.path), tuple(rows), first)
