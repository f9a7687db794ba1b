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
    off = {i: _distance(found[i], wanted[i]) for i in doubtful}
    own = dict.fromkeys((i for i in doubtful if off[i] <= SPREAD_SHARE * float(wanted[i].std())), 0.0)
    for other in others:
        for i in own:
            value = as_array(other.reference.outputs[i])
            own[i] = max(own[i], _distance(value, wanted[i]) if value.shape == wanted[i].shape else 0.0)
        if all(off[i] <= OWN_FACTOR * own[i] for i in own):
            break
    return [
        replace(row, ok=True, tolerance=f"{OWN_FACTOR * own[i]:.2g} in the mean", detail=_describe(off[i], own[i]))
        if i in own and off[i] <= OWN_FACTOR * own[i]
        else row
        for i, row in enumerate(rows)
    ]


def _distance(found: Array, wanted: Array) -> float:
    return float(np.sqrt(np.square(found.astype(np.float64) - wanted).mean())) if wanted.size else 0.0


def _describe(off: float, own: float) -> str:
    return f"off by {off:.2g} in the mean, eager torch's own {own:.2g} when its values fall to other steps"
