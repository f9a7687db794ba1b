"""torch.fft.fftshift -> two slices of each axis, exchanged.

Math:   torch_onnx_compat.functional.fourier.halves_exchanged.
Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.fftshift.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.functional.fourier import halves_exchanged


@rewrite(torch.fft.fftshift, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fftshift_to_cat(input: Tensor | Pair, dim: int | Sequence[int] | None = None) -> Tensor | Pair:
    """Moves frequency 0 to the middle; stock TorchScript lacks it, dynamo does not take complex ones."""
    shifted: Tensor | Pair = halves_exchanged(input, dim, longer_first=False)
    return shifted
