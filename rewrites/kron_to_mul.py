"""torch.kron -> products of all pairs, interleaved.

Math:   with axes of sizes a and b side by side, cell (i, j) of each pair of axes is x[i] y[j].
Source: https://docs.pytorch.org/docs/stable/generated/torch.kron.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.kron, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def kron_to_mul(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product; stock TorchScript has no symbolic for it, stock dynamo fixes the sizes."""
    rank = max(input.dim(), other.dim())
    x = input.reshape([1] * (rank - input.dim()) + list(input.shape))
    y = other.reshape([1] * (rank - other.dim()) + list(other.shape))
    sizes = [x.shape[axis] * y.shape[axis] for axis in range(rank)]
    for axis in range(rank):
        x, y = x.unsqueeze(2 * axis + 1), y.unsqueeze(2 * axis)
    return (x * y).reshape(sizes)
