"""Eigenvalues of general matrices, LU factors and ranks -> declined, with what to do instead.

Math:   there is no short sequence of ONNX operators for them.
Source: https://docs.pytorch.org/docs/stable/linalg.html
"""

from typing import Any

import torch

from torch_onnx_compat import decline, rewrite

_L = torch.linalg


@rewrite(
    (
        *(_L.eig, _L.eigvals, _L.lu, _L.lu_factor, _L.lu_factor_ex, _L.lu_solve, _L.ldl_factor, _L.ldl_factor_ex),
        *(_L.ldl_solve, _L.matrix_rank, _L.cond, torch.lu_solve, torch.geqrf, torch.ormqr, torch.lobpcg),
    ),
    needed_on=("torchscript", "dynamo"),
)
def factorisation_outside(*_: Any, **__: Any) -> Any:
    """Says of factorisations that neither exporter writes what can be done.

    Declines: always.
    """
    decline(
        "ONNX has no operator for this factorisation; solve small systems by torch.linalg.solve, take eigh for "
        "symmetric matrices, or compute it outside of the file"
    )
