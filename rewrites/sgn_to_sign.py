"""torch.sgn of real numbers -> torch.sign.

Math:   they differ for complex numbers only.
Source: https://docs.pytorch.org/docs/stable/generated/torch.sgn.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(torch.sgn, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def sgn_to_sign(input: Tensor) -> Tensor:
    """Sign of real numbers; stock TorchScript has no symbolic for it.

    Declines: complex numbers.
    """
    if input.is_complex():
        decline("complex numbers have no operator")
    return input.clone() if input.dtype == torch.bool else torch.sign(input)
