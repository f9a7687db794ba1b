"""torch.bitwise_xor of integers -> bit by bit.

Math:   torch_onnx_compat.functional.bits.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_and.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.bits import bitwise_and, integers


@rewrite((torch.bitwise_xor, Tensor.__xor__, Tensor.__rxor__), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def bitwise_xor_to_bits(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Bitwise XOR; stock TorchScript takes booleans only."""
    operands = integers(input, other)
    if operands is None:
        return torch.logical_xor(*(torch.as_tensor(value) for value in (input, other)))
    _, (x, y) = operands
    return x + y - 2 * bitwise_and(x, y)
