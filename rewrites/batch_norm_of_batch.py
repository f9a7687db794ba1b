"""F.batch_norm by the statistics of its own input -> mean, variance and a product.

Math:   y = (x - mean) / sqrt(variance + eps) * weight + bias, both over every axis but the second, the variance without
        Bessel's correction.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.batch_norm.html
"""

from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, rewrite


@rewrite(functional.batch_norm, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def batch_norm_of_batch(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises the channels of (N, C, ...) that keep no running statistics; TorchScript wants N fixed for it."""
    if not training or running_mean is not None or running_var is not None:
        return NotImplemented  # type: ignore[no-any-return]
    axes = [axis for axis in range(input.dim()) if axis != 1]
    shape = [-1 if axis == 1 else 1 for axis in range(input.dim())]
    centred = input - input.mean(axes, keepdim=True)
    normal: Tensor = centred * (centred.square().mean(axes, keepdim=True) + eps).rsqrt()
    if weight is not None:
        normal = normal * weight.reshape(shape)
    return normal if bias is None else normal + bias.reshape(shape)
