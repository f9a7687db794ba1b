"""torch.masked_select -> x[mask].

Source: https://docs.pytorch.org/docs/stable/generated/torch.masked_select.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import static_size


@rewrite(torch.masked_select, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def masked_select_to_index(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements where the mask is true; stock dynamo has no function for it.

    Stock TorchScript's file fails where the mask is larger than the input.
    """
    if out is not None:
        return NotImplemented  # type: ignore[no-any-return]
    sizes, wanted = ([static_size(x, axis) for axis in range(x.dim())] for x in (input, mask))
    if sizes != wanted:
        input, mask = torch.broadcast_tensors(input, mask)
    return input[mask]
