"""torch.cartesian_prod -> meshgrid, flattened and stacked.

Source: https://docs.pytorch.org/docs/stable/generated/torch.cartesian_prod.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.cartesian_prod, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def cartesian_prod_to_meshgrid(*tensors: Tensor) -> Tensor:
    """All tuples of the vectors' elements; stock TorchScript has no symbolic for it."""
    if len(tensors) == 1:
        return tensors[0].clone()
    grids = torch.meshgrid(*tensors, indexing="ij")
    return torch.stack([grid.reshape(-1) for grid in grids], 1)
