"""torch.bitwise_and of integers -> bit by bit.

Math:   torch_onnx_compat.functional.bits.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_and.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.bits import bitwise_and, integers


@rewrite(
    (torch.bitwise_and, Tensor.__and__, Tensor.__rand__),
    needed_on=("torchscript",),
    opset=(11, 17),
    exactness=Exactness.BITWISE,
)
def bitwise_and_to_bits(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Bitwise AND; stock TorchScript takes booleans only below opset 18."""
    operands = integers(input, other)
    if operands is None:
        if isinstance(input, Tensor) and isinstance(other, Tensor):
            return NotImplemented  # type: ignore[no-any-return]
        return torch.logical_and(*(torch.as_tensor(value) for value in (input, other)))
    _, (x, y) = operands
    return bitwise_and(x, y)
