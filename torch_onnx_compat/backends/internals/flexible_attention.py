"""What torch.nn.attention.flex_attention is made of; torch calls it a prototype.

torch 2.6 has all of this but the largest score among the results, which came with torch 2.9.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.internals.find import first_module

MODULE = "torch.nn.attention.flex_attention"


def operator() -> Any:
    """The operator that the public function calls."""
    return torch.ops.higher_order.flex_attention


def count_results() -> int:
    """How many results the operator has: the output, the logarithm of the sum, and the largest score."""
    return 3 if _own("AuxRequest") is not None else 2


def functions(
    score_mod: Callable[..., Any],
    block_mask: tuple[Any, ...],
    score_tensors: tuple[Any, ...],
    mask_tensors: tuple[Any, ...],
) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None]:
    """The functions of scores and of the mask among the operator's arguments, with the tensors that they close over.

    None for those of torch's that stand for none.
    """
    mask_mod = block_mask[-1]
    return (
        None if score_mod is _own("_identity") else lambda *args: score_mod(*args, *score_tensors),
        None if mask_mod is _own("noop_mask") else lambda *args: mask_mod(*args, *mask_tensors),
    )


def run(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """The operator as eager torch computes it, its functions of one score at a time: what a file is held against."""
    made: tuple[Tensor, ...] = first_module("torch._higher_order_ops.flex_attention").math_attention(*args, **kwargs)
    return made


def is_mask(function: Callable[..., Any]) -> bool:
    """Whether a function tells a mask, and not scores."""
    kinds = _own("_ModificationType")
    return bool(_own("_get_mod_type")(function) == kinds.MASK_MOD)


def block_mask_of_one(mask_mod: Callable[..., Any] | None, device: Any) -> Any:
    """A BlockMask of one block, which is held against no length, as torch makes where no mask is given."""
    return _own("BlockMask").from_kv_blocks(
        kv_num_blocks=torch.ones([1, 1, 1], dtype=torch.int32, device=device),
        kv_indices=torch.zeros([1, 1, 1, 1], dtype=torch.int32, device=device),
        BLOCK_SIZE=_own("_LARGE_SPARSE_BLOCK_SIZE"),
        mask_mod=mask_mod,
    )


def _own(name: str) -> Any:
    return getattr(sys.modules.get(MODULE), name, None)
