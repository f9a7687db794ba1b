"""torch.hsplit -> slices of axis 1, or 0 of a vector.

Math:   torch_onnx_compat.functional.splitting.
Source: https://docs.pytorch.org/docs/stable/generated/torch.hsplit.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.splitting import split_axis


@rewrite(torch.hsplit, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def hsplit_to_slices(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits axis 1, or 0 of a vector; stock TorchScript has no symbolic for it."""
    return split_axis(input, indices_or_sections, 1 if input.dim() > 1 else 0)
