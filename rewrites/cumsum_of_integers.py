"""torch.cumsum of booleans and small integers -> that of their int64 numbers.

Math:   sums of integers are int64.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cumsum.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.cumsum, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def cumsum_of_integers(input: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Running sum, of which stock TorchScript forgets the element type and that one value has no axis."""
    wanted = dtype or (input.dtype if input.is_floating_point() else torch.int64)
    if input.dim() == 0:
        return input.to(wanted).clone()
    if input.dtype in (wanted, torch.int64):
        return NotImplemented  # type: ignore[no-any-return]
    if wanted.is_floating_point:
        return torch.cumsum(input.to(wanted), dim)
    return torch.cumsum(input.to(wanted).to(torch.int64), dim).to(wanted)  # whose default for any integers is int64
