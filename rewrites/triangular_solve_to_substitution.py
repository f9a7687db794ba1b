"""torch.triangular_solve -> substitution, written out.

Math:   torch_onnx_compat.functional.linear_algebra.solve_triangular.
Source: https://docs.pytorch.org/docs/stable/generated/torch.triangular_solve.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import common_batch, small_size, solve_triangular


@rewrite(torch.triangular_solve, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def triangular_solve_to_substitution(
    b: Tensor,
    A: Tensor,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """Solves small triangular systems.

    Declines: matrices of more than 8 rows or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got tensors")
    size = small_size(A)
    matrix, right = common_batch(A, b)
    given = matrix.transpose(-2, -1) if transpose else matrix
    solution = solve_triangular(given, right, size, upper=upper != transpose, unit=unitriangular)
    return torch.return_types.triangular_solve((solution, matrix))
