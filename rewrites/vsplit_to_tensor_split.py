"""torch.vsplit -> torch.tensor_split of axis 0.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.vsplit.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.vsplit, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def vsplit_to_tensor_split(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits axis 0; stock TorchScript has no symbolic for it."""
    return torch.tensor_split(input, indices_or_sections, dim=0)
