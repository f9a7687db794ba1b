"""torch.kaiser_window of a fixed length -> the window as a constant.

Math:   torch_onnx_compat.functional.windows.
Source: https://docs.pytorch.org/docs/stable/generated/torch.kaiser_window.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.windows import kaiser


@rewrite(torch.kaiser_window, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def kaiser_window_to_constant(window_length: Any, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Kaiser window; stock dynamo has no translation of it.

    Declines: a length that varies.
    """
    return kaiser(window_length, periodic, beta, options)
