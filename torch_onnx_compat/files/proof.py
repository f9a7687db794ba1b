"""Proves a file against the file that it was made from: the same inputs, the same outputs, at several sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from torch_onnx_compat.check.compare import NOISE_FACTOR, NOISE_LIMIT, Comparison
from torch_onnx_compat.check.rounding import DECISION_RUNS, RUNS, STEP, Doubt, decision_step
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.files import noise
from torch_onnx_compat.files.cases import CaseMaker, FileCase, check_inputs
from torch_onnx_compat.files.chain import FileChain
from torch_onnx_compat.files.opset import raise_opset
from torch_onnx_compat.files.oracle import Oracle
from torch_onnx_compat.files.random_values import random_values
from torch_onnx_compat.files.reading import OnnxFile, describe_structure
from torch_onnx_compat.files.runner import Judge, Refused, Runner, Value
from torch_onnx_compat.files.values import as_numbers, compare_value, is_same
from torch_onnx_compat.publish.publish import draft, is_large
from torch_onnx_compat.surgery.on_graph.stage import Stage

_LACKS = re.compile("NOT_IMPLEMENTED|not a registered|under development|No Op registered|Type Error")
"""What onnxruntime says of operators, opsets and types that it lacks."""

_ORIGINAL, _NOISY, _NEW = "original", "noisy", "new"


class Proof:
    """The original in an engine, and the cases on which files are compared with it; a context manager.

    Args:
        file: The original.
        inputs: Inputs that the caller gave, by name, for each case.
        sizes: Sizes of dynamic axes that the caller gave: each is fixed at these, the first one where others vary.
        seed: Of the random numbers.
        runner: Runs the files; by default one of its own, which ends with the proof.
        oracle: What the new files should compute, where that is not what the original does.

    Raises:
        CompatError: The original does not run, its inputs cannot be drawn, or it refuses all that were drawn.
    """

    def __init__(
        self,
        file: OnnxFile,
        inputs: Sequence[Mapping[str, Value]] = (),
        sizes: Mapping[str, Sequence[int]] | None = None,
        seed: int = 0,
        runner: Runner | None = None,
        oracle: Oracle | None = None,
    ) -> None:
        self._oracle = Oracle.of(file) if oracle is None else oracle
        self.file = self._oracle.file
        self.notes: list[str] = []
        self.runner = Runner() if runner is None else runner
        self._owns_runner = runner is None
        drawn = self._oracle.drawn
        given = [check_inputs(drawn, feeds) for feeds in inputs]
        self._maker = CaseMaker(drawn, self._run, self._fall_back, given, dict(sizes or {}), seed, self.notes)
        self._stack = ExitStack()
        self._cases: list[FileCase] | None = None
        self._names: list[str] = []
        self._random: set[str] = set()
        self._changed: dict[str, bool] = {}
        """Whether originals that round otherwise run, by their keys."""
        self.judge: Judge = "onnxruntime"

    def __enter__(self) -> Proof:
        if self._owns_runner:
            self._stack.enter_context(self.runner)
        try:
            self.judge = self._open(_ORIGINAL, self.file.path, self.file)
        except BaseException:  # an interrupt, too, must not leave the process running
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.opens_anew = False
        for key in () if self._owns_runner else (_ORIGINAL, *self._changed):
            self.runner.close(key)
        self._stack.close()

    @property
    def cases(self) -> list[FileCase]:
        """The cases, made once."""
        return self.make_cases() if self._cases is None else self._cases

    @property
    def names(self) -> list[str]:
        """The outputs that are compared."""
        return list(self._names or self._oracle.outputs)

    def make_cases(self) -> list[FileCase]:
        """Makes the cases.

        Raises:
            CompatError: The original refuses the given inputs, or all that were drawn.
        """
        found = list(self._maker.cases())
        if not found:
            raise CompatError(f"{self.file}: there is no case to compare on; give inputs.")
        self._names = list(self._oracle.expect(found[0].outputs))
        self._find_random(found[0])
        if self.runner.opens_anew:
            found = list(self._maker.cases())
        self._cases = [self._oracle.adapt(case) for case in found]
        return self._cases

    def first_case(self) -> FileCase:
        """The first case alone: given inputs, else random ones at sizes that the original takes.

        Raises:
            CompatError: The original refuses them.
        """
        return self._oracle.adapt(next(self._maker.cases()))

    def run(self, feeds: Mapping[str, Value]) -> list[Value]:
        """What the original computes.

        Raises:
            Refused: It does not run on these inputs.
        """
        return list(self._oracle.expect(self._run(feeds)).values())

    def run_file(self, path: Path, feeds: Mapping[str, Value]) -> list[Value]:
        """What onnxruntime makes of a new file.

        Raises:
            Refused: It does not run it.
        """
        self.runner.open(_NEW, path)
        try:
            return self.runner.run(_NEW, feeds, self.names)
        finally:
            self.runner.close(_NEW)

    def vary_rows(self, size: int) -> None:
        """Adds cases of other numbers of rows, which the original computes in batches of this size."""
        self._maker.rows = size

    @property
    def random_outputs(self) -> frozenset[str]:
        """Outputs that differ from run to run of the original; only their types and shapes can be compared."""
        return frozenset(self._random)

    @property
    def declared(self) -> dict[str, onnx.ValueInfoProto]:
        """The original's outputs as it declares them, by name."""
        return {value.name: value for value in self.file.proto.graph.output}

    def tried(self) -> dict[str, tuple[int, ...]]:
        """The sizes at which there are cases, by dynamic axis."""
        names = dict.fromkeys(name for case in self.cases for name in case.sizes)
        return {n: tuple(sorted({case.sizes[n] for case in self.cases if n in case.sizes})) for n in names}

    def check(
        self, path: Path, *, before: Sequence[Stage] = (), after: Sequence[Stage] = (), in_onnxruntime: bool = False
    ) -> tuple[tuple[Comparison, ...], Judge]:
        """Compares a file with the original on every case.

        Args:
            path: The file, in a folder that may be written to where there are stages.
            before: Stages that the host runs before the file.
            after: Stages that the host runs after it.
            in_onnxruntime: Whether onnxruntime has to run it, and nobody else will do.

        Returns:
            The table, and who ran the file.

        Raises:
            VerificationError: The file does not open or run, or a value is off; holds the table so far.
        """
        cases = self.cases
        try:
            judge = self._open_new(path, in_onnxruntime=in_onnxruntime)
        except CompatError as error:
            raise VerificationError(f"the new file does not open: {error}") from error
        chain = FileChain(self.runner, _NEW, path, before, after)
        try:
            chain.open()
            try:
                return self._compare_all(cases, chain), judge
            except VerificationError:
                if judge == "onnxruntime" or not self._opens_in_onnxruntime(path):
                    raise
                # The evaluator has its own faults, as in an operator's older versions.
                return self._compare_all(cases, chain), "onnxruntime"
        finally:
            chain.close()

    def _opens_in_onnxruntime(self, path: Path) -> bool:
        try:
            self.runner.open(_NEW, path)
        except Refused:
            return False
        return True

    def _open_new(self, path: Path, *, in_onnxruntime: bool) -> Judge:
        """Opens the new file where the original runs: two engines may differ on what neither file is to blame for."""
        if in_onnxruntime:
            self.runner.open(_NEW, path)
            return "onnxruntime"
        if self.judge == "reference":
            try:
                self.runner.open(_NEW, path, "reference")
            except Refused:
                return self._open(_NEW, path, None)
            return "reference"
        return self._open(_NEW, path, None)

    def _compare_all(self, cases: Sequence[FileCase], chain: FileChain) -> tuple[Comparison, ...]:
        rows: list[Comparison] = []
        for case in cases:
            try:
                found = chain.run(case.feeds, self.names)
            except Refused as error:
                row = Comparison(case.label, "", float("nan"), float("nan"), "", False, f"fails: {error}")
                raise VerificationError(
                    f"the new file does not run on case {case.label!r}, which the original runs: {error}", (*rows, row)
                ) from error
            rows += self.compare_outputs(case, found)
            bad = [row for row in rows if not row.ok]
            if bad:
                name = (self.file.shown or self.file.path).name
                raise VerificationError(
                    f"the new file does not compute what {name} computes: case {bad[0].case!r}, output "
                    f"{bad[0].output!r}: {bad[0].detail}",
                    tuple(rows),
                )
        return tuple(rows)

    def compare_outputs(self, case: FileCase, found: Sequence[Value]) -> list[Comparison]:
        """Compares outputs with those of the original; those that fail are judged by the original's rounding.

        Args:
            case: The case.
            found: The outputs.
        """
        rows, doubts = [], {}
        for index, name in enumerate(self.names):
            is_random = name in self._random
            rows.append(compare_value(case.label, name, found[index], case.outputs[index], is_random=is_random))
            pair = as_numbers(found[index]), as_numbers(case.outputs[index])
            if not rows[-1].ok and pair[0] is not None and pair[1] is not None and pair[0].shape == pair[1].shape:
                doubts[index] = Doubt(pair[0], pair[1], NOISE_LIMIT)
        failed = [index for index, row in enumerate(rows) if not row.ok]
        if not failed or set(failed) - set(doubts) or any(doubt.is_hopeless for doubt in doubts.values()):
            return rows
        self._explain(case, doubts)
        return [_excuse(row, doubts[i]) if i in doubts else row for i, row in enumerate(rows)]

    def _explain(self, case: FileCase, doubts: dict[int, Doubt]) -> None:
        steps = [(STEP, Doubt.explain_by_noise)] * RUNS
        steps += [(decision_step(n), Doubt.explain_by_decision) for n in range(DECISION_RUNS)]
        for step, explain in steps:
            if not any(len(doubt.places) for doubt in doubts.values()) or not self._open_noisy():
                return
            try:
                feeds = {**case.source, noise.STEP: np.array(step, np.float32)}
                outputs = self._run_changed(_NOISY, feeds)
            except Refused:
                return
            for index, doubt in doubts.items():
                value = as_numbers(outputs[index])
                is_asked = doubt.is_float or explain is Doubt.explain_by_decision
                if value is not None and value.shape == np.shape(case.outputs[index]) and is_asked:
                    explain(doubt, value)

    def _open_noisy(self) -> bool:
        return self._open_changed(_NOISY, noise.make_noisy)

    def run_otherwise(self, case: FileCase, dtype: str = "float32") -> list[Value] | None:
        """What the original computes where it rounds otherwise.

        Args:
            case: The case.
            dtype: float32, for a random change of each rounding; or a narrower type, to which inputs, weights and
                results are rounded.

        Returns:
            The outputs; None where no such original can be made, or it does not run.
        """
        narrow, feeds = ir.DataType.from_numpy(np.dtype(dtype)), dict(case.source)
        if narrow is ir.DataType.FLOAT:
            is_open, feeds[noise.STEP] = self._open_noisy(), np.array(STEP, np.float32)
        else:
            is_open = self._open_changed(dtype, lambda model: noise.make_narrow(model, narrow))
        try:
            return self._run_changed(_NOISY if narrow is ir.DataType.FLOAT else dtype, feeds) if is_open else None
        except Refused:
            return None

    def _run_changed(self, key: str, feeds: Mapping[str, Value]) -> list[Value]:
        return list(self._oracle.expect(self.runner.run(key, feeds, self._oracle.values)).values())

    def _open_changed(self, key: str, change: Callable[[ir.Model], None]) -> bool:
        """Opens the original that rounds otherwise; False where there is none."""
        if key not in self._changed:
            try:
                model = self.file.graph()
                model = raise_opset(model, noise.LOWEST_OPSET)
                if model.functions:
                    InlinePass()(model)
                change(model)
                written = self._stack.enter_context(draft(model, None, is_large(model)))
                self.runner.open(key, written.path, self.judge, plain=True)
                self._changed[key] = True
            except Exception as error:  # a graph in which the changes have no place: nothing is excused then
                self.notes.append(f"what rounding changes is not known: {' '.join(str(error).split())[:200]}")
                self._changed[key] = False
        return self._changed[key]

    # The original

    def _open(self, key: str, path: Path, original: OnnxFile | None) -> Judge:
        """Opens a file in onnxruntime, or in the reference evaluator where onnxruntime has no kernels for it."""
        try:
            self.runner.open(key, path)
            return "onnxruntime"
        except Refused as refusal:
            first = CompatError(str(refusal).replace(str(path.resolve()), path.name))
        structure = describe_structure(path)
        if not structure and _LACKS.search(str(first)):
            try:
                self.runner.open(key, path, "reference")
            except Refused:
                pass
            else:
                self.notes.append(
                    f"onnxruntime does not open {'the original' if original else 'the new file'}, so onnx's reference "
                    f"evaluator ran it: {str(first)[:200]}"
                )
                return "reference"
        objection = f"; onnx's checker objects: {structure}" if structure else ""
        where = f"{original}: does not run as it is: " if original else ""
        raise CompatError(f"{where}onnxruntime: {first}{objection}")

    def _run(self, feeds: Mapping[str, Value]) -> list[Value]:
        outputs = self.runner.run(_ORIGINAL, self._oracle.feeds(feeds), self._oracle.values)
        self._maker.seconds += self.runner.seconds
        return outputs

    def _find_random(self, case: FileCase) -> None:
        """Finds the outputs that random numbers decide, or that another run computes otherwise."""
        random = random_values(self.file.proto.graph)
        varying = self._differing(case.outputs, self._run(case.feeds))
        if varying - random and self._keeps_state(case, random):
            varying = set()
        found = self._oracle.are_random(random | varying)
        for name in (name for name in self.names if name in found):
            self._random.add(name)
            self.notes.append(f"output {name!r} differs from run to run; its type and shape were compared.")

    def _keeps_state(self, case: FileCase, random: set[str]) -> bool:
        """Whether runs differ only as they change weights, as onnxruntime's training form of BatchNormalization does.

        From here on each run opens its file anew then.
        """
        self.runner.opens_anew = True
        if self._differing(self._run(case.feeds), self._run(case.feeds)) - random:
            self.runner.opens_anew = False
            return False
        self.notes.append("a run changes what the next one computes, so each case was run in a session of its own.")
        return True

    def _differing(self, one: Sequence[Value], other: Sequence[Value]) -> set[str]:
        values = zip(self._oracle.values, one, other, strict=True)
        return {name for name, a, b in values if not is_same(a, b)}

    def _fall_back(self, feeds: Mapping[str, Value]) -> bool:
        """Lets the reference evaluator be the judge where onnxruntime has no way to give or take values of a type."""
        if self.judge == "reference":
            return False
        try:
            self.runner.open(_ORIGINAL, self.file.path, "reference")
            self._run(feeds)
        except Refused:
            self.runner.open(_ORIGINAL, self.file.path)
            return False
        self.judge = "reference"
        self.notes.append("onnxruntime does not run the original, so onnx's reference evaluator did.")
        return True


def _excuse(row: Comparison, doubt: Doubt) -> Comparison:
    """The row, passed where the original's own rounding explains every value that is off."""
    if row.ok or not doubt.is_explained:
        return row
    count = doubt.by_noise + doubt.by_decision
    detail = f"{count} values off where the original's own move when its operations round otherwise"
    return replace(
        row, ok=True, tolerance=f"{NOISE_FACTOR:g} x noise" if doubt.by_noise else row.tolerance, detail=detail
    )
