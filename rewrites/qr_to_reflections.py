"""torch.linalg.qr -> Householder reflections, written out.

Math:   torch_onnx_compat.functional.linear_algebra.qr: the signs are LAPACK's.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.qr.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import qr, small_size


@rewrite(torch.linalg.qr, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def qr_to_reflections(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:  # noqa: N803
    """Factors of small matrices, with the signs that torch gives on the CPU.

    Declines: matrices of more than 8 rows or columns, or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got tensors")
    rows, columns = small_size(A, -2), small_size(A, -1)
    orthogonal, upper = qr(A, rows, columns)
    if mode != "complete":
        orthogonal, upper = orthogonal[..., : min(rows, columns)], upper[..., : min(rows, columns), :]
    if mode == "r":
        orthogonal = torch.zeros(0, dtype=A.dtype, device=A.device)
    return torch.return_types.linalg_qr((orthogonal, upper))  # type: ignore[attr-defined]
