"""torch.vdot of real vectors -> sum of their products.

Math:   without an imaginary part there is nothing to conjugate, so vdot is dot.
Source: https://docs.pytorch.org/docs/stable/generated/torch.vdot.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.complex import is_complex


@rewrite(torch.vdot, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def vdot_to_sum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two vectors; stock TorchScript has no symbolic for it.

    Declines: complex vectors; out=.
    """
    if is_complex(input) or is_complex(other):
        decline("the vectors must be real; write (input.conj() * other).sum()")
    if out is not None:
        decline("out must be None, got a tensor")
    return (input * other).sum()
