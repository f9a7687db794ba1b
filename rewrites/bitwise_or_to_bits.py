"""torch.bitwise_or of integers -> bit by bit.

Math:   torch_onnx_compat.functional.bits.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_and.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.bits import bitwise_and, integers


@rewrite((torch.bitwise_or, Tensor.__or__, Tensor.__ror__), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def bitwise_or_to_bits(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Bitwise OR; stock TorchScript takes booleans only."""
    operands = integers(input, other)
    if operands is None:
        if isinstance(input, Tensor) and isinstance(other, Tensor):
            return NotImplemented  # type: ignore[no-any-return]
        return torch.logical_or(*(torch.as_tensor(value) for value in (input, other)))
    _, (x, y) = operands
    return x + y - bitwise_and(x, y)
