"""embedding with max_norm -> the rows that are read, shortened.

Math:   a row longer than max_norm is multiplied by max_norm / (norm + 1e-7), as embedding_renorm_ does in the table.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html; ATen/native/Embedding.cpp
"""

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, rewrite


# TorchScript loses it, and stores a table in which the rows of the example alone are shortened.
@rewrite(functional.embedding, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def embedding_max_norm_to_mul(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table, none of them longer than max_norm."""
    if max_norm is None:
        return NotImplemented  # type: ignore[no-any-return]
    rows = functional.embedding(input, weight)
    norm = torch.linalg.vector_norm(rows, norm_type, -1, keepdim=True)
    return torch.where(norm > max_norm, rows * (max_norm / (norm + 1e-7)), rows)
