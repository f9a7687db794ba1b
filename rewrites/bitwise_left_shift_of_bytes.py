"""torch.bitwise_left_shift of uint8 -> that of int32.

Math:   what leaves the byte is cut off.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_left_shift.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.bitwise_left_shift, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def bitwise_left_shift_of_bytes(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Shifts bytes, of which stock dynamo makes signed ones."""
    if torch.result_type(input, other) != torch.uint8:
        return NotImplemented  # type: ignore[no-any-return]
    x, y = (value.to(torch.int32) if isinstance(value, Tensor) else value for value in (input, other))
    return torch.bitwise_left_shift(x, y).to(torch.uint8)  # type: ignore[arg-type]
