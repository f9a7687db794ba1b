"""Compares the cases of a proof with what the caller's inference computes, where torch has a fast path of its own.

Files are held against eager torch with the fast path off: only there are float masks added to the scores, as torch
documents them, and that is also what a model is trained with. Where inference differs, a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.compare import Comparison, as_array
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.rounding import compare_outputs
from torch_onnx_compat.fast_path import is_on_for_caller
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation, Reference

MOST_NAMED = 4
"""Modules that a note names."""

_WHY = (
    "There a float mask leaves out whatever it is not zero at, padded rows are zeros or are left out, and an item of "
    "which all is padded is NaN."
)


_ASKED = frozenset({"is_grad_enabled", "is_inference_mode_enabled", "requires_grad", "grad_fn", "is_leaf"})
"""What tells code whether torch records for gradients."""


class Inference:
    """Looks for the first case at which the original's fast path computes something else.

    Args:
        names: Names of the outputs.
        how: Tolerances; without random inputs none are made that the caller did not give.
        observation: Runs the original.
    """

    def __init__(self, names: Sequence[str], how: Verify, observation: Observation) -> None:
        self._names, self._how, self._observation = names, how, observation
        self.note: str | None = None
        """Where it differs, and how far; None if it was nowhere seen to."""

    def compare(self, case: Case) -> None:
        """Runs the original on its fast path, if it asked for that at this case."""
        if self.note is not None or not case.reference.fast_paths or not is_on_for_caller():
            return
        try:
            found = self._observation.on_fast_path(case.inputs)
        except ModelRefused as refusal:
            self.note = _note(case.reference.fast_paths, f"at {case.label!r}: {refusal}")
            return
        off = self._off(case, found)
        if off and not self._off(case, self._observation.reference(f"{case.label}, once more", case.inputs)):
            self.note = _note(found.fast_paths, "; ".join(f"at {_place(row)} {row.detail}" for row in off))

    def compare_gradients(self, example: Case) -> str:
        """A note where a plain call, which records for gradients, computes something else on the example."""
        asked = sorted(_ASKED & self._observation.prepared.reach.used)
        if not asked or example.reference.draws:
            return ""
        try:
            off = self._off(example, self._observation.with_gradients(example.inputs))
        except ModelRefused:
            return ""
        told = "; ".join(f"at {_place(row)} {row.detail}" for row in off)
        return told and (
            f"the model asks for {', '.join(asked)}, and computes something else while torch records for gradients: "
            f"{told}. The file has what it computes under torch.no_grad()."
        )

    def compare_extremes(self) -> None:
        """Does the same where all inputs of a kind have other values: where all is padded, and where nothing is."""
        inputs = self._observation.prepared.inputs
        is_asked = self._observation.reference("example", inputs).fast_paths and is_on_for_caller()
        for label, changed in _extremes(inputs, self._how.seed) if is_asked and self._how.random else ():
            if self.note is None:
                try:
                    reference = self._observation.reference(label, changed)
                except ModelRefused:
                    continue
                self.compare(Case(label, changed, reference))

    def _off(self, case: Case, found: Reference) -> list[Comparison]:
        arrays = [as_array(output) for output in found.outputs]
        rows = compare_outputs(self._names, arrays, case, self._how, self._observation, budget=0.0)
        return [row for row in rows if not row.ok]


def _note(paths: Sequence[str], what: str) -> str:
    named = [path or "the model itself" for path in paths]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return (
        f"without gradients eager torch takes its fast path in {', '.join(named[:MOST_NAMED])}{more}, which computes "
        f"something else: {what}. {_WHY} The file has what torch computes with gradients, and after "
        "torch.backends.mha.set_fastpath_enabled(False)."
    )


def _place(row: Comparison) -> str:
    return f"{row.case!r}, output {row.output!r}:" if row.output else f"{row.case!r}:"


def _extremes(inputs: Inputs, seed: int) -> Iterator[tuple[str, Inputs]]:
    """Inputs of one kind, all of which are masks or lengths perhaps, with other values all over.

    Args:
        inputs: The example.
        seed: Of what is drawn. Real numbers of few kinds are redrawn as one of these, so no case has others.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(tensor: Tensor) -> Tensor:
        return torch.randn(tensor.shape, generator=generator).to(tensor)

    changes: tuple[tuple[str, Callable[[Tensor], bool], Callable[[Tensor], Tensor]], ...] = (
        ("booleans that are all True", _is_boolean, torch.ones_like),
        ("booleans that are all False", _is_boolean, torch.zeros_like),
        ("whole numbers that are all 0", _is_whole, torch.zeros_like),
        ("real numbers drawn anew", Tensor.is_floating_point, drawn),
    )
    for label, is_meant, change in changes:
        if any(map(is_meant, inputs.tensors)):
            yield label, replace(inputs, tensors=tuple(change(t) if is_meant(t) else t for t in inputs.tensors))


def _is_boolean(tensor: Tensor) -> bool:
    return tensor.dtype is torch.bool


def _is_whole(tensor: Tensor) -> bool:
    return not (_is_boolean(tensor) or tensor.is_floating_point() or tensor.is_complex())
