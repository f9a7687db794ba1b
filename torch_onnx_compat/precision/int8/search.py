"""Judges files of few bits on inputs, and searches for the fewest layers that have to stay in float32."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
import onnx_ir as ir
import onnxruntime
import torch

from torch_onnx_compat.check.compare import Array, as_array
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused
from torch_onnx_compat.precision.int8.loss import disagreement, has_classes, loss_of, relative_distance
from torch_onnx_compat.precision.int8.other_sizes import SECONDS, Move, SizeLoss, moves_of, sizes_of
from torch_onnx_compat.precision.int8.request import TOP1, Int8, Request
from torch_onnx_compat.precision.int8.verdict import UNNAMED, LayerLoss, Quantized, Trial
from torch_onnx_compat.precision.judge import run_in
from torch_onnx_compat.precision.narrow import PrecisionJob
from torch_onnx_compat.publish.publish import draft, is_large

Run = Callable[[Inputs], list[Array]]


class Search:
    """Writes and judges files with fewer and fewer layers of few bits.

    Args:
        job: The proven network, and how it is run.
        request: The format, the metric and its limit.
        inputs: What the files are judged on.
    """

    def __init__(self, job: PrecisionJob, request: Request, inputs: Sequence[Inputs]) -> None:
        self.job, self._request, self.inputs = job, request, inputs
        self._metric = loss_of(request)
        self.notes: list[str] = []
        self.trials: list[Trial] = []
        self._runs = 0
        self._elsewhere: list[SizeLoss] = []
        self.wanted = [self._exact(number, given) for number, given in enumerate(inputs)]

    def find(self, nodes: Sequence[ir.Node], write: Callable[[Sequence[ir.Node]], ir.Model]) -> list[ir.Node]:
        """The fewest of the worst layers that have to stay in float32: 0, 1, 2, 4 … are tried, then those between.

        Args:
            nodes: The layers, the worst first.
            write: Makes the graph with some of them in float32.
        """

        def passes(count: int) -> bool:
            if count == len(nodes):
                return True
            self._judge(write(nodes[:count]), count)
            return self._last.worst <= self._request.bound

        low, high = -1, 0
        while not passes(high):
            low, high = high, min(max(1, 2 * high), len(nodes))
        while high - low > 1:
            middle = (low + high) // 2
            if passes(middle):
                high = middle
            else:
                low = middle
        return list(nodes[:high])

    def finish(self, model: ir.Model, kept: int) -> list[list[Array]]:
        """Judges the graph that was found, and runs it wherever the float32 file was proven; its outputs.

        Args:
            model: The graph.
            kept: How many layers are in float32.

        Raises:
            VerificationError: It does not run there, or its outputs have other shapes or are not finite.
        """
        outputs = self._judge(model, kept)
        self._run_cases(model)
        self._judge_other_sizes(model)
        return outputs

    def verdict(
        self,
        outputs: Sequence[Sequence[Array]],
        layers: tuple[LayerLoss, ...],
        runs: int,
        narrow: int,
    ) -> Quantized:
        """What is known of the file that was judged last; nothing was calibrated.

        Args:
            outputs: Its outputs on the inputs.
            layers: What each layer costs.
            runs: How many runs of the graph were made besides.
            narrow: How many nodes are in few bits.
        """
        metric = self._request.metric
        classes = has_classes(self.wanted)
        return Quantized(
            limit=self._request.bound,
            metric="relative distance of the outputs"
            if metric is None
            else "top-1 disagreement"
            if metric == TOP1
            else UNNAMED,
            is_proven=True,
            judged_on=len(self.inputs),
            calibrated_on=0,
            final=self._last,
            trials=tuple(self.trials),
            float32_loss=self._metric(self._float32_outputs(), self.wanted),
            distance=relative_distance(outputs, self.wanted),
            agreement=1.0 - disagreement(outputs, self.wanted) if classes else None,
            method="",
            narrow=narrow,
            layers=layers,
            runs=self._runs + runs,
            notes=tuple(self.notes),
            format=self._request.name,
            sizes=sizes_of(self.inputs),
            elsewhere=tuple(self._elsewhere),
        )

    def note(self, text: str) -> None:
        """Notes what the caller should know, once."""
        if text not in self.notes:
            self.notes.append(text)

    # Judging

    def _judge(self, model: ir.Model, kept: int) -> list[list[Array]]:
        """The file's outputs on the inputs; its losses join the trials."""
        with ExitStack() as stack:
            run_file, run_literally = self._open(stack, model)
            found = [self._run(run_file, inputs) for inputs in self.inputs]
            rendered = [self._run(run_literally, inputs) for inputs in self.inputs]
        self._runs += 2 * len(found)
        trial = Trial(kept, self._metric(found, self.wanted), self._metric(rendered, self.wanted))
        if trial not in self.trials:
            self.trials.append(trial)
        self._last = trial
        return found

    def _open(self, stack: ExitStack, model: ir.Model) -> tuple[Run, Run]:
        """Runs the file: in onnxruntime, and with every pair rounding."""
        path = stack.enter_context(draft(model, None, is_large(model))).path
        try:
            run_file = self.job.runner(path)
        except Exception as error:
            raise VerificationError(
                f"onnxruntime does not load the file in {self._request.name}: {_reason(error)}"
            ) from error
        has_pairs = any(node.op_type == "DequantizeLinear" for node in model.graph)
        return run_file, self.job.runner(path, sess_options=_literal_options()) if has_pairs else run_file

    def _run(self, run: Run, inputs: Inputs) -> list[Array]:
        try:
            return run(inputs)
        except Exception as error:
            raise VerificationError(
                f"the file in {self._request.name} fails on an input that it is judged on: {_reason(error)}"
            ) from error

    def _exact(self, number: int, inputs: Inputs) -> list[Array]:
        """What the original computes in float64."""
        label = f"held-out input {number}"
        try:
            return self._exact_at(label, inputs)
        except ModelRefused as refusal:
            raise CompatError(f"the model itself fails on {label} of the calibration: {refusal}") from refusal

    def _exact_at(self, label: str, inputs: Inputs) -> list[Array]:
        """What the original computes in float64, or in float32 where it does not run in float64.

        Raises:
            ModelRefused: It runs in neither.
        """
        outputs = run_in(self.job.observation, label, inputs, torch.float64)
        if outputs is None:
            outputs = self.job.observation.reference(label, inputs).outputs
            self.note("eager torch does not run in float64 here, so its float32 was compared with.")
        return [_narrowed(as_array(output)) for output in outputs]

    # Other sizes

    def _judge_other_sizes(self, model: ir.Model) -> None:
        """Judges the file at sizes of the dynamic axes that its inputs do not have, and notes where the limit fails."""
        moves = list(moves_of(self.inputs))
        end = time.perf_counter() + SECONDS
        with ExitStack() as stack:
            runs = self._open(stack, model) if moves else ()
            for number, move in enumerate(moves):
                if time.perf_counter() > end:
                    left = ", ".join(map(str, moves[number:]))
                    self.note(f"the values were not judged at {left}: too slow.")
                    break
                found = self._loss_at(move, runs)
                if found is not None:
                    self._elsewhere.append(found)
        over = [str(found) for found in self._elsewhere if found.is_over]
        if over:
            more = "calibration inputs" if isinstance(self._request, Int8) else "samples"
            self.note(
                f"over the limit at other sizes ({', '.join(over)}): give {more} of these sizes too, so that the "
                f"ranges and what stays in float32 fit them."
            )

    def _loss_at(self, move: Move, runs: Sequence[Run]) -> SizeLoss | None:
        """The larger loss of some runs; None where the original, the metric or the float32 file do not fit the size."""
        try:
            wanted = [self._exact_at(f"{move}, input {n}", inputs) for n, inputs in enumerate(move.inputs)]
            loss, bound = max(self._loss_of(run, move, wanted) for run in runs), self._bound_of(wanted)
            if loss > bound:
                with ExitStack() as stack:
                    run = self._open(stack, self.job.network)[0]
                    if self._loss_of(run, move, wanted) > bound:
                        return None
        except (ModelRefused, CompatError):
            return None
        return SizeLoss(move.axis, move.size, loss, loss > bound)

    def _bound_of(self, wanted: Sequence[list[Array]]) -> float:
        """The limit; of few rows with classes, one row more than it allows."""
        if self._request.metric != TOP1:
            return self._request.bound
        return float(self._request.bound + 1 / max(sum(w[0].size // max(w[0].shape[1], 1) for w in wanted), 1))

    def _loss_of(self, run: Run, move: Move, wanted: Sequence[list[Array]]) -> float:
        """The loss of some inputs, infinite where the file fails."""
        self._runs += len(move.inputs)
        try:
            found = [self._run(run, inputs) for inputs in move.inputs]
        except VerificationError:
            return float("inf")
        return float(self._metric(found, wanted))

    def _run_cases(self, model: ir.Model) -> None:
        """Runs the file wherever the float32 file was proven: at other sizes, too, its outputs have their shapes."""
        with draft(model, None, is_large(model)) as written:
            run = self.job.runner(written.path)
            for case in self.job.cases:
                where = f"the file in {self._request.name}"
                try:
                    found = run(case.inputs)
                except Exception as error:
                    raise VerificationError(f"{where} fails at {case.label}: {_reason(error)}") from error
                for array, wanted, name in zip(found, case.reference.outputs, self.job.names, strict=True):
                    if array.shape != tuple(wanted.shape) or not _is_finite_where(array, as_array(wanted)):
                        raise VerificationError(
                            f"{where} gives {array.shape} at {case.label}, output {name!r}, "
                            f"{'not finite' if array.shape == tuple(wanted.shape) else 'not'} {tuple(wanted.shape)}."
                        )

    def _float32_outputs(self) -> list[list[Array]]:
        with draft(self.job.network, None, is_large(self.job.network)) as written:
            run = self.job.runner(written.path)
            return [run(inputs) for inputs in self.inputs]


def _literal_options() -> onnxruntime.SessionOptions:
    """Options with which every pair rounds, and no integer kernel takes its place."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def _narrowed(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _is_finite_where(found: Array, wanted: Array) -> bool:
    return wanted.dtype.kind != "f" or bool(np.isfinite(found[np.isfinite(wanted)]).all())


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
