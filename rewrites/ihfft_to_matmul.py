"""torch.fft.ihfft -> a product with a table of cosines and sines.

Math:   torch_onnx_compat.functional.fourier.
Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.ihfft.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.functional.fourier import fixed_size, rfft, signal


# Always, because functions of complex tensors that dynamo has wrong or not at all need pairs, and because products take
# less time than a DFT in onnxruntime (benchmarks/results/transforms.md has rfft's).
@rewrite(torch.fft.ihfft, needed_on=("torchscript",), always=True, exactness=Exactness.ROUNDING)
def ihfft_to_matmul(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Pair:
    """First half of the axis whose spectrum is real.

    Declines: an axis of no fixed size, or of a length with a prime factor above 1024; out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    size = fixed_size(input, dim)
    return rfft(signal(input), dim, size, n, norm, inverse=True)
