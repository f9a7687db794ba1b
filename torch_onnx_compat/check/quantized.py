"""Judges failed comparisons of quantized models by how far rounding moves the original's own outputs.

A quantized model rounds the result of each layer to one of 256 steps. A value halfway between two steps falls to either
side after a rounding error of the convolution or its bias, and one step is a large change to the next layer: in
torchvision's quantized resnet18 with random weights, three quarters of the logits move when the input changes by a
millionth. These outputs are therefore compared as a whole: the file's error in the mean with the original's own change
in the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.compare import Array, Comparison, as_array

OWN_FACTOR = 1.5
"""Largest error of a file, as a multiple of the original's own change; both are roots of the mean square."""

SPREAD_SHARE = 0.5
"""Largest error of a file, relative to the output's own standard deviation.

An unrelated output of the same distribution would be off by sqrt(2) = 1.4 standard deviations.
"""


STILL_SHARE = 0.02
"""Largest share of an output's whole numbers that are off where no run of the original moved."""

_QUANTIZED = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized", "torch.ao.quantization.fake_quantize")
"""Modules whose classes round to the steps of integers."""


_ROUNDS = ("quantize_per_tensor", "quantize_per_channel", "quantize_per_token", "quantize_affine")
"""Operators of graphs that round to steps, as PT2E and FX write them; fake_quantize_per_tensor too."""


def is_quantized(model: object) -> bool:
    """Whether a model holds modules of torch.ao that round to steps, or graphs and scripts with operators that do."""
    if isinstance(model, torch.jit.ScriptModule):
        return "quantized::" in str(model.inlined_graph)
    return isinstance(model, nn.Module) and any(
        type(module).__module__.startswith(_QUANTIZED)
        or (isinstance(module, torch.fx.GraphModule) and any(map(_rounds, module.graph.nodes)))
        for module in model.modules()
    )


def _rounds(node: torch.fx.Node) -> bool:
    if node.op not in ("call_function", "call_method"):
        return False
    name = str(node.target).replace("dequantize", "")
    return any(operator in name for operator in _ROUNDS)


def judge_by_spread(
    rows: Sequence[Comparison], found: Sequence[Array], case: Case, others: Iterable[Case]
) -> list[Comparison]:
    """Passes the rows whose output is off no further than eager torch's own moves after a rounding.

    Args:
        rows: Comparisons of one case.
        found: The file's outputs.
        case: The inputs, and the original's outputs.
        others: Runs of the original on inputs that were changed by roundings.
    """
    wanted = [as_array(o).astype(np.float64) for o in case.reference.outputs]
    doubtful = [
        i
        for i, (row, array, w) in enumerate(zip(rows, found, wanted, strict=True))
        if not row.ok and array.shape == w.shape and np.isfinite(array).all() and np.isfinite(w).all()
    ]
    if not doubtful:
        return list(rows)
    doubts = {i: _Doubt(found[i], wanted[i]) for i in doubtful}
    doubts = {i: doubt for i, doubt in doubts.items() if not doubt.is_hopeless}
    for other in others:
        for i, doubt in doubts.items():
            doubt.see(as_array(other.reference.outputs[i]))
        if all(doubt.is_explained for doubt in doubts.values()):
            break
    return [doubts[i].passed(row) if i in doubts and doubts[i].is_explained else row for i, row in enumerate(rows)]


class _Doubt:
    """An output that is off, and how far the original's own is in other runs."""

    def __init__(self, found: Array, wanted: Array) -> None:
        self._wanted = wanted
        self._off, self._own = _distance(found, wanted), 0.0
        self._still = found != wanted if found.dtype.kind != "f" else np.zeros(wanted.shape, dtype=bool)
        """Where whole numbers are off, and no run has moved: classes have no mean."""

    @property
    def is_hopeless(self) -> bool:
        return self._off > SPREAD_SHARE * float(self._wanted.std())

    @property
    def is_explained(self) -> bool:
        return self._off <= OWN_FACTOR * self._own and self._still.sum() <= STILL_SHARE * self._still.size

    def see(self, value: Array) -> None:
        """Takes in the output of another run."""
        if value.shape == self._wanted.shape:
            self._own = max(self._own, _distance(value, self._wanted))
            self._still &= value == self._wanted

    def passed(self, row: Comparison) -> Comparison:
        """The row, passed."""
        tolerance = f"{OWN_FACTOR * self._own:.2g} in the mean"
        return replace(row, ok=True, tolerance=tolerance, detail=_describe(self._off, self._own))


def _distance(found: Array, wanted: Array) -> float:
    return float(np.sqrt(np.square(found.astype(np.float64) - wanted).mean())) if wanted.size else 0.0


def _describe(off: float, own: float) -> str:
    return f"off by {off:.2g} in the mean, eager torch's own {own:.2g} when its values fall to other steps"
