"""torch.floor_divide of floats, the // of tensors -> Floor of the quotient, for engines without Mod.

Math:   floor(a / b): one too much where a / b rounds up to an integer, and infinite for an infinite dividend, of which
        torch makes NaN.
Source: https://docs.pytorch.org/docs/stable/generated/torch.floor_divide.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite((torch.floor_divide, Tensor.__floordiv__), avoids=("Mod",), exactness=Exactness.ROUNDING)
def floor_divide_to_floor(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor:
    """Quotient rounded down, by Div and Floor; not for a number before the // of a tensor.

    Declines: integers, which the symbolic floor_divide divides without Mod, and out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    if not torch.result_type(input, other).is_floating_point:
        decline("integers are divided without Mod anyway")
    return torch.floor(torch.div(input, other))
