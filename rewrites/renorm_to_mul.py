"""torch.renorm -> a factor for each slice.

Math:   slices along dim whose norm n exceeds maxnorm are scaled by maxnorm / (n + 1e-7).
Source: https://docs.pytorch.org/docs/stable/generated/torch.renorm.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.distances import norm


@rewrite(torch.renorm, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def renorm_to_mul(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Limits the norms of slices; stock TorchScript has no symbolic for it."""
    last = input.transpose(dim, 0)
    norms = norm(last.reshape(last.shape[0], -1), p).reshape([-1] + [1] * (input.dim() - 1))
    scale = torch.where(norms > maxnorm, maxnorm / (norms + 1e-7), torch.ones_like(norms))
    return (last * scale).transpose(dim, 0)
