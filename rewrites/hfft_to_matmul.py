"""torch.fft.hfft -> a product with a table of cosines and sines.

Math:   torch_onnx_compat.functional.fourier.
Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.hfft.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.functional.fourier import as_pair, fixed_size, irfft, signal


# Always, because functions of complex tensors that dynamo has wrong or not at all need pairs, and because products take
# less time than a DFT in onnxruntime (benchmarks/results/transforms.md has rfft's).
@rewrite(torch.fft.hfft, needed_on=("torchscript",), always=True, exactness=Exactness.ROUNDING)
def hfft_to_matmul(
    input: Tensor | Pair, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Real spectrum of one axis that equals its conjugate mirror image.

    Declines: an axis of no fixed size, or of a length with a prime factor above 1024; out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    size = fixed_size(input, dim)
    return irfft(as_pair(signal(input)), dim, size, n, norm, inverse=False)
