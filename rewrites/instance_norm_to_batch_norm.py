"""torch.instance_norm with running statistics -> batch normalisation.

Math:   with statistics that are given there is nothing of the instance in it.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.instance_norm.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.instance_norm, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def instance_norm_to_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Normalises with running statistics; stock TorchScript wants a fixed batch size for that."""
    if use_input_stats:
        return NotImplemented  # type: ignore[no-any-return]
    return torch.batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled)
