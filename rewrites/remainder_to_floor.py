"""torch.remainder, the % of tensors -> division, for engines without Mod.

Math:   a - b * floor(a / b). Floats: off by a few units in the last place of a, and by b where a / b rounds to an
        integer that it is not. Integers: exact.
Source: https://docs.pytorch.org/docs/stable/generated/torch.remainder.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(torch.remainder, avoids=("Mod",), exactness=Exactness.ROUNDING)
def remainder_to_floor(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor:
    """Remainder with the divisor's sign, by Div and Floor; not for a number before the % of a tensor.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    if torch.result_type(input, other).is_floating_point:
        quotient = torch.floor(torch.div(input, other))
    else:
        quotient = torch.floor_divide(input, other)
    return input - quotient * other
