"""torch.msort -> torch.sort along the first axis.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.msort.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.msort, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def msort_to_sort(input: Tensor) -> Tensor:
    """Sorts along the first axis; stock TorchScript has no symbolic for it."""
    return torch.sort(input, 0).values
