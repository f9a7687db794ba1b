"""torch.nanquantile -> interpolation between two of the ascending values.

Math:   torch_onnx_compat.functional.ranks.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nanquantile.html
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.ranks import quantiles
from torch_onnx_compat.tracing import static_size


@rewrite(torch.nanquantile, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def nanquantile_to_topk(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Quantiles of an axis, or of all values; stock TorchScript has no symbolic, stock dynamo sorts NaN anywhere.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    several = isinstance(q, Tensor) and q.dim() > 0
    if dim is None:
        sizes = [static_size(input, axis) for axis in range(input.dim())]
        fixed = [size for size in sizes if size is not None]
        size = math.prod(fixed) if len(fixed) == len(sizes) else None
        found = quantiles(input.reshape(-1), q, size, interpolation, ignore_nan=True)
        return found.reshape([-1] * several + [1] * keepdim * input.dim())
    dim %= input.dim()
    found = quantiles(input.transpose(dim, -1), q, static_size(input, dim), interpolation, ignore_nan=True)
    found = found.transpose(dim, -1)
    if several:
        found, dim = found.unsqueeze(0).transpose(0, dim + 1), dim + 1
    return found if keepdim else found.squeeze(dim)
