"""torch.block_diag -> padded blocks, one below the other.

Math:   the rows of a block are it, between zeros as wide as the blocks before and after.
Source: https://docs.pytorch.org/docs/stable/generated/torch.block_diag.html
"""

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.block_diag, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def block_diag_to_cat(*tensors: Tensor) -> Tensor:
    """Blocks along the diagonal; stock TorchScript has no symbolic for it."""
    blocks = [torch.atleast_2d(tensor) for tensor in tensors]
    dtype = blocks[0].dtype
    for block in blocks:
        dtype = torch.promote_types(dtype, block.dtype)
    widths = [block.shape[1] for block in blocks]
    rows = [
        nn.functional.pad(block.to(dtype), (sum(widths[:number]), sum(widths[number + 1 :])))
        for number, block in enumerate(blocks)
    ]
    return torch.cat(rows, 0)
