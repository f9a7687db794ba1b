"""torch.bitwise_not of integers -> Sub.

Math:   in two's complement ~x = -1 - x; without a sign, the largest number less x.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_not.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.bitwise_not, Tensor.__invert__), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def bitwise_not_to_sub(input: Tensor) -> Tensor:
    """Bitwise NOT; stock TorchScript takes booleans only."""
    if input.dtype == torch.bool:
        return NotImplemented  # type: ignore[no-any-return]
    return (255 if input.dtype == torch.uint8 else -1) - input
