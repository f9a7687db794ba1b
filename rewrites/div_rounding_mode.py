"""torch.div with a rounding_mode -> floor_divide, or Div rounded toward zero.

Math:   floor: floor_divide by definition. trunc of integers: a - fmod(a, b) divides without remainder, so nothing is
        rounded down. trunc of floats: floor or ceil of the quotient, by its sign.
Source: https://docs.pytorch.org/docs/stable/generated/torch.div.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite((torch.div, torch.divide), needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def div_rounding_mode(
    input: Tensor | float, other: Tensor | float, *, rounding_mode: str | None = None, out: Tensor | None = None
) -> Tensor:
    """Rounded quotient; stock dynamo divides integers in float32, stock TorchScript casts floats to int64.

    Declines: out=. Plain division, which both exporters write right, is none of its business.
    """
    if rounding_mode is None:
        return NotImplemented  # type: ignore[no-any-return]
    if out is not None:
        decline("out must be None, got a tensor")
    if rounding_mode == "floor":
        return torch.floor_divide(input, other)
    dtype = torch.result_type(input, other)
    if dtype.is_floating_point:
        quotient = torch.div(input, other)
        return torch.where(quotient < 0, torch.ceil(quotient), torch.floor(quotient))
    wide = torch.promote_types(dtype, torch.int32)  # Sub takes narrower integers from opset 14 only
    dividend, divisor = (torch.as_tensor(value).to(wide) for value in (input, other))
    return torch.floor_divide(dividend - torch.fmod(dividend, divisor), divisor).to(dtype)
