"""Runs of a quantized original in which values near the middle of two steps fall to the other side.

torch's kernels add the bias in float; engines hold it in int32, in steps of the input's scale times the weight's, which
moves every value of a channel by up to half of such a step. A mean of n whole steps lies exactly between two steps once
in n times. Which values fall to the other side is drawn by these chances.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.perturb import rounds
from torch_onnx_compat.check.perturbed_runs import run_within
from torch_onnx_compat.observe import Observation

CHANCE = 2.0**-10
"""How often a value lies nearer to the middle of two steps than float32's errors: 255 steps have 2^-16, sums more."""


class FallOtherwise(DispatchMode):
    """While active, results in eight bits are a step off where they might have been rounded to it.

    Args:
        seed: Of the draws.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not isinstance(result, Tensor) or not _is_on_steps(result) or not rounds(func):
            return result
        return self._fall(result, self._shift(args, result), "relu" in str(func._schema.name))

    def _shift(self, args: Any, result: Tensor) -> Tensor:
        """How far engines may move a value before it is rounded, in steps, for all values or each channel."""
        operand = args[0] if isinstance(args[0], Tensor) else None
        scales = weight_scales(args[1]) if len(args) > 1 and isinstance(args[1], torch.ScriptObject) else None
        if operand is None or not operand.is_quantized or scales is None:
            fewer = operand is not None and operand.is_quantized and operand.numel() > result.numel()
            terms = operand.numel() / max(result.numel(), 1) if operand is not None and fewer else 1 / CHANCE
            return torch.tensor(max(CHANCE, 1 / terms))
        steps = (operand.q_scale() * scales / result.q_scale()).float()
        drawn = (torch.rand(steps.shape, generator=self._generator) - 0.5) * steps
        drawn = torch.where(drawn < 0, drawn.clamp(-0.5, -CHANCE), drawn.clamp(CHANCE, 0.5))
        is_channel = drawn.dim() == 1 and result.dim() > 2
        return drawn.view(-1, *[1] * (result.dim() - 2)) if is_channel else drawn

    def _fall(self, result: Tensor, shift: Tensor, has_relu: bool) -> Tensor:
        """Moves each value by a step, in the shift's direction, as often as the shift is long."""
        whole, info = result.int_repr().int(), torch.iinfo(result.int_repr().dtype)
        least = result.q_zero_point() if has_relu else info.min
        falls = torch.rand(whole.shape, generator=self._generator) < shift.abs()
        falls &= (whole > least) & (whole < info.max)
        moved = whole + torch.where(falls, shift.sign().int().expand_as(whole), 0)
        return torch._make_per_tensor_quantized_tensor(
            moved.to(result.int_repr().dtype), result.q_scale(), result.q_zero_point()
        )


def weight_scales(packed: Any) -> Tensor | None:
    """The scales of a layer's weights, one or one for each channel; None for a layer without a bias."""
    weight, bias = packed.unpack() if hasattr(packed, "unpack") else torch.ops.quantized.linear_unpack(packed)
    if bias is None:
        return None
    if weight.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return torch.tensor(weight.q_scale())
    scales: Tensor = weight.q_per_channel_scales()
    return scales


def _is_on_steps(tensor: Tensor) -> bool:
    return tensor.is_quantized and tensor.dtype in (torch.quint8, torch.qint8) and tensor.qscheme() in _PER_TENSOR


_PER_TENSOR = (torch.per_tensor_affine, torch.per_tensor_symmetric)


def runs_fallen_otherwise(case: Case, observation: Observation, count: int) -> Iterator[Case]:
    """Runs of a quantized original on a case's inputs, in which values fall to other steps.

    Args:
        case: The inputs.
        observation: Runs the original.
        count: How many runs.
    """
    for number in range(count):
        yield from run_within(f"{case.label}, on other steps, {number}", case, observation, FallOtherwise(number))
