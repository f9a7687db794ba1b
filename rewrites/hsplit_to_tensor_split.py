"""torch.hsplit -> torch.tensor_split of axis 1, or 0 of a vector.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.hsplit.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.hsplit, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def hsplit_to_tensor_split(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits axis 1, or 0 of a vector; stock TorchScript has no symbolic for it."""
    return torch.tensor_split(input, indices_or_sections, dim=1 if input.dim() > 1 else 0)
