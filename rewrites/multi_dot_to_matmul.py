"""torch.linalg.multi_dot, torch.chain_matmul -> one MatMul after the other.

Math:   products of matrices are associative; where the last factor is a vector, the first product is the one with it.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.multi_dot.html
"""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(
    (torch.linalg.multi_dot, torch.chain_matmul), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING
)
def multi_dot_to_matmul(tensors: Sequence[Tensor] | Tensor, *more: Tensor, out: Tensor | None = None) -> Tensor:
    """Product of several matrices; stock TorchScript lacks both functions, dynamo fixes sizes to find the best order.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    factors = [tensors, *more] if isinstance(tensors, Tensor) else [*tensors, *more]
    if factors[-1].dim() == 1:
        return functools.reduce(lambda right, left: left @ right, reversed(factors))
    return functools.reduce(torch.matmul, factors)
