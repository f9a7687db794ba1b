"""torch.slogdet, torch.linalg.slogdet -> the pivots of an elimination, written out.

Math:   torch_onnx_compat.functional.linear_algebra.log_determinant.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.slogdet.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import log_determinant, small_size


@rewrite((torch.linalg.slogdet, torch.slogdet), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def slogdet_to_elimination(A: Tensor | None = None, *, input: Tensor | None = None, out: Any = None) -> Any:  # noqa: N803
    """Sign and logarithm of the determinant of small matrices; neither exporter has the operator.

    Declines: matrices of more than 8 rows or of no fixed size; out=.
    """
    matrix = input if A is None else A
    assert matrix is not None
    if out is not None:
        decline("out must be None, got tensors")
    return torch.return_types.linalg_slogdet(log_determinant(matrix, small_size(matrix)))  # type: ignore[attr-defined]
