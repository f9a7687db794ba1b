"""torch.vsplit -> slices of axis 0.

Math:   torch_onnx_compat.functional.splitting.
Source: https://docs.pytorch.org/docs/stable/generated/torch.vsplit.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.splitting import split_axis


@rewrite(torch.vsplit, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def vsplit_to_slices(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits axis 0; stock TorchScript has no symbolic for it."""
    return split_axis(input, indices_or_sections, 0)
