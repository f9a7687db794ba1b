"""torch.stack of tensors of several types -> stack of tensors converted to the common one.

Math:   torch's promotion rules.
Source: https://docs.pytorch.org/docs/stable/generated/torch.stack.html
"""

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.stack, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def stack_promoted(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Joins along a new axis; stock dynamo leaves the types as they are, which Concat does not take."""
    types = [tensor.dtype for tensor in tensors]
    if out is not None or len(set(types)) <= 1:
        return NotImplemented  # type: ignore[no-any-return]
    common = reduce(torch.promote_types, types)
    return torch.stack([tensor.to(common) for tensor in tensors], dim)
