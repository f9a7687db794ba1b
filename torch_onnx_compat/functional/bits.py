"""Bitwise AND of integers in arithmetic, for opsets that have no operator for it.

Math:   bit k of a number is set where its remainder modulo 2^(k + 1) is at least 2^k, also in two's complement; the
        sign bit of int64 is whether it is negative. x | y = x + y - (x & y) and x ^ y = x + y - 2 (x & y).
Source: https://en.wikipedia.org/wiki/Bitwise_operation#Mathematical_equivalents
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.tracing import constant


def integers(*values: Any) -> tuple[torch.dtype, list[Tensor]] | None:
    """Operands as tensors and the dtype they are promoted to; None where that is bool."""
    tensors = [v if isinstance(v, Tensor) else None for v in values]
    dtype = torch.result_type(values[0], values[1])
    if dtype == torch.bool:
        return None
    like = next(t for t in tensors if t is not None)
    return dtype, [constant(v, like, dtype) if t is None else t.to(dtype) for v, t in zip(values, tensors, strict=True)]


def bitwise_and(x: Tensor, y: Tensor) -> Tensor:
    """AND of two tensors of one integer dtype."""
    dtype = x.dtype
    width = torch.iinfo(dtype).bits
    count = 62 if width == 64 else width
    powers = [2**k for k in range(count)]
    is_set = [_bits(v.to(torch.int64), powers) for v in (x, y)]
    both = (is_set[0] & is_set[1]).to(torch.int64)
    # Halves, because onnxruntime's sum of int64 is not exact beyond 2^53.
    total = _number(both.narrow(-1, 0, min(count, 31)), x)
    if count > 31:
        total = total + _number(both.narrow(-1, 31, count - 31), x) * 2**31
    if width == 64:
        # 2^63 and beyond have no positive int64: the two highest bits follow from the sign and from halves.
        for v_bit, weight in ((_bit62, 2**62), (_sign, -(2**63))):
            total = total + (v_bit(x) & v_bit(y)).to(torch.int64) * constant(weight, x, torch.int64)
    return total.to(dtype)


def _number(bits: Tensor, like: Tensor) -> Tensor:
    weights = np.array([2**k for k in range(bits.shape[-1])], dtype=np.int64)
    return (bits * constant(weights, like, torch.int64)).sum(-1)


def _bits(x: Tensor, powers: list[int]) -> Tensor:
    modulus = np.array([2 * p for p in powers], dtype=np.int64)
    rest = torch.remainder(x.unsqueeze(-1), constant(modulus, x, torch.int64))
    return rest >= constant(np.array(powers, dtype=np.int64), x, torch.int64)


def _bit62(x: Tensor) -> Tensor:
    low, high = (constant(limit, x, torch.int64) for limit in (-(2**62), 2**62))
    return ((x < 0) & (x >= low)) | (x >= high)


def _sign(x: Tensor) -> Tensor:
    return x < 0
