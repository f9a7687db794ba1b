"""torch.bincount(weights=) -> the weights times a comparison with each number.

Math:   torch_onnx_compat.functional.counting.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bincount.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.counting import bincount


@rewrite(torch.bincount, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def bincount_of_weights(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Weight of each number's occurrences; stock dynamo's translation takes no weights."""
    if weights is None:
        return NotImplemented  # type: ignore[no-any-return]
    return bincount(input, weights, minlength)
