"""torch.clamp between bounds of another type -> the tensor converted, then clamped.

Math:   torch's promotion rules; int16 goes through int32, for which onnxruntime has kernels.
Source: https://docs.pytorch.org/docs/stable/generated/torch.clamp.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.clamp, torch.clip), needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def clamp_promoted(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Clamps to bounds of a wider type, which stock TorchScript rounds to the tensor's, and int16."""
    dtype = input.dtype
    for bound in (min, max):
        if bound is not None:
            dtype = torch.promote_types(dtype, torch.result_type(input, bound))
    if dtype == torch.int16:
        return torch.clamp(input.to(torch.int32), min, max).to(torch.int16)  # type: ignore[arg-type]
    if dtype == input.dtype:
        return NotImplemented  # type: ignore[no-any-return]
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        min, max = (None if bound is None else torch.as_tensor(bound).to(dtype) for bound in (min, max))
    return torch.clamp(input.to(dtype), min, max)  # type: ignore[arg-type]
