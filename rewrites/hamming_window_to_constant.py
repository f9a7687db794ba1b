"""torch.hamming_window of a fixed length -> the window as a constant.

Math:   torch_onnx_compat.functional.windows; ONNX's HammingWindow has 25 / 46 for alpha, torch 0.54 unless told.
Source: https://docs.pytorch.org/docs/stable/generated/torch.hamming_window.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.windows import hamming


@rewrite(torch.hamming_window, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def hamming_window_to_constant(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """Hamming window; stock dynamo writes ONNX's, which is another.

    Declines: a length that varies.
    """
    return hamming(window_length, periodic, alpha, beta, options)
