"""torch.fft.ifftshift -> two slices of each axis, exchanged.

Math:   torch_onnx_compat.functional.fourier.halves_exchanged.
Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.ifftshift.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.functional.fourier import halves_exchanged


@rewrite(torch.fft.ifftshift, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def ifftshift_to_cat(input: Tensor | Pair, dim: int | Sequence[int] | None = None) -> Tensor | Pair:
    """Moves frequency 0 from the middle to the front; stock TorchScript lacks it, dynamo does not take complex ones."""
    shifted: Tensor | Pair = halves_exchanged(input, dim, longer_first=True)
    return shifted
