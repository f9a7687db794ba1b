"""torch.fmod -> division, for engines without Mod.

Math:   a - b * trunc(a / b). Floats: off by a few units in the last place of a, and by b where a / b rounds to an
        integer that it is not. Integers: exact, as a - b * floor(a / b), less b where that has not the sign of a.
Source: https://docs.pytorch.org/docs/stable/generated/torch.fmod.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(torch.fmod, avoids=("Mod",), exactness=Exactness.ROUNDING)
def fmod_to_trunc(input: Tensor, other: Tensor | float, *, out: Tensor | None = None) -> Tensor:
    """Remainder with the dividend's sign, by Div, Floor and Ceil.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    if torch.result_type(input, other).is_floating_point:
        quotient = torch.div(input, other)
        return input - torch.where(quotient < 0, torch.ceil(quotient), torch.floor(quotient)) * other
    rest = input - torch.floor_divide(input, other) * other
    return torch.where(rest * torch.sign(input) < 0, rest - other, rest)
