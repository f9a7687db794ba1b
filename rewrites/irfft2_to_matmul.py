"""torch.fft.irfft2 -> one product with a table of cosines and sines for each axis.

Math:   torch_onnx_compat.functional.fourier.
Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.irfft2.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.functional.fourier import irfftn


# Always, because functions of complex tensors that dynamo has wrong or not at all need pairs, and because products take
# less time than a DFT in onnxruntime (benchmarks/results/transforms.md has rfft's).
@rewrite(torch.fft.irfft2, needed_on=("torchscript",), always=True, exactness=Exactness.ROUNDING)
def irfft2_to_matmul(
    input: Tensor | Pair,
    s: Sequence[int] | None = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Two axes, real, from half of their spectrum.

    Declines: axes of no fixed size, or of a length with a prime factor above 1024; out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    return irfftn(input, s, dim, norm)
