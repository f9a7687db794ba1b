"""torch.bartlett_window of a fixed length -> the window as a constant.

Math:   torch_onnx_compat.functional.windows.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bartlett_window.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.windows import bartlett


@rewrite(torch.bartlett_window, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def bartlett_window_to_constant(window_length: Any, periodic: bool = True, **options: Any) -> Tensor:
    """Triangular window; stock dynamo has no translation of it.

    Declines: a length that varies.
    """
    return bartlett(window_length, periodic, options)
