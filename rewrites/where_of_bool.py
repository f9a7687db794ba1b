"""torch.where of booleans, or booleans and numbers -> that of numbers.

Math:   torch's promotion rules.
Source: https://docs.pytorch.org/docs/stable/generated/torch.where.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.where, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def where_of_bool(condition: Tensor, *branches: Tensor | float, input: None = None, other: None = None) -> Tensor:
    """Chooses between booleans, for which onnxruntime has no Where, or them and numbers, which TorchScript mixes."""
    kinds = [branch.dtype for branch in branches if isinstance(branch, Tensor)]
    if len(kinds) < 2 or torch.bool not in kinds:
        return NotImplemented  # type: ignore[no-any-return]
    first, second = branches
    if kinds[0] == kinds[1]:
        return torch.where(
            condition, torch.as_tensor(first).to(torch.int32), torch.as_tensor(second).to(torch.int32)
        ).to(torch.bool)
    dtype = torch.result_type(first, second)
    return torch.where(condition, torch.as_tensor(first).to(dtype), torch.as_tensor(second).to(dtype))
