"""Batch, instance and RMS normalization."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, Ops, Value, decomposition, symbolic
from torch_onnx_compat.tracing import constant


@symbolic(
    "aten::_native_batch_norm_legit_no_training",
    needed_on=("dynamo",),
    fixed_in="2.7",
    opset=(15, 99),
    exactness=Exactness.ROUNDING,
)
def batch_norm_inference(
    op: Ops,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value, Value, Value]:
    """Normalises with running statistics, as one BatchNormalization.

    Torch 2.6 expects three outputs of BatchNormalization, of which recent onnxscript makes one.

    Schema: _native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor
            running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)
    Source: https://onnx.ai/onnx/operators/onnx__BatchNormalization.html
    """
    dtype = op.dtype(running_mean)
    channels = op.Shape(running_mean)
    scale = weight if weight is not None else op.Expand(op.constant(1.0, dtype), channels)
    shift = bias if bias is not None else op.Expand(op.constant(0.0, dtype), channels)
    saved = op.constant([], dtype)  # the statistics of the batch, which only training has
    normalised = op.BatchNormalization(input, scale, shift, running_mean, running_var, epsilon=eps)
    return normalised, saved, saved


@decomposition(functional.batch_norm, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
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
    """Normalises (N, C, ...) with the statistics of the batch; stock TorchScript wants a fixed N for that.

    Math: y = (x - mean) / sqrt(variance + eps) * weight + bias. Mean and variance are taken over every axis but the
          second; the variance is without Bessel's correction.
    """
    if not training or running_mean is not None or running_var is not None:
        return NotImplemented
    axes = [axis for axis in range(input.dim()) if axis != 1]
    shape = [-1 if axis == 1 else 1 for axis in range(input.dim())]
    centred = input - input.mean(axes, keepdim=True)
    normal = centred * (centred.square().mean(axes, keepdim=True) + eps).rsqrt()
    if weight is not None:
        normal = normal * weight.reshape(shape)
    return normal if bias is None else normal + bias.reshape(shape)


@decomposition(torch.instance_norm, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
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
    """Normalises each instance with running statistics; stock TorchScript wants a fixed batch size for that.

    Math: running statistics are the same for every instance, as batch normalization has them.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.instance_norm.html
    """
    if use_input_stats:
        return NotImplemented
    return torch.batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled)


@decomposition(torch.rms_norm, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def rms_norm_to_mean(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Root-mean-square normalisation; stock TorchScript has no symbolic for it.

    Math: x / sqrt(mean(x^2) + eps) * weight, the mean over the last axes. 16-bit floats are computed in float32.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html
    """
    return _rms_norm(input, normalized_shape, weight, eps)


def _rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None) -> Tensor:
    is_half = input.dtype in (torch.float16, torch.bfloat16)
    x = input.float() if is_half else input
    axes = tuple(range(-len(normalized_shape), 0))
    mean = (x * x).mean(axes, keepdim=True)
    # With an axis, since onnxscript's optimiser takes a number below 1e-8 for 0.
    output = x / torch.sqrt(mean + constant([torch.finfo(x.dtype).eps if eps is None else eps], x))
    if weight is not None:
        output = output * (weight.float() if is_half else weight)
    return output.to(input.dtype) if is_half else output


@decomposition(functional.layer_norm, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def layer_norm_of_mixed_types(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises 16-bit floats with float32 weights, as under CPU autocast; ONNX's operator wants one type.

    Math: computed in float32 and rounded at the end, as torch's CPU kernel does.
    Source: https://onnx.ai/onnx/operators/onnx__LayerNormalization.html
    """
    if not _are_mixed(input, weight, bias):
        return NotImplemented
    return functional.layer_norm(input.float(), normalized_shape, weight, bias, eps).to(input.dtype)


@decomposition(functional.group_norm, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def group_norm_of_mixed_types(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises 16-bit floats with float32 weights, as under CPU autocast; ONNX's operators want one type.

    Math: computed in float32 and rounded at the end, as torch's CPU kernel does.
    Source: https://docs.pytorch.org/docs/stable/amp.html
    """
    if not _are_mixed(input, weight, bias):
        return NotImplemented
    return functional.group_norm(input.float(), num_groups, weight, bias, eps).to(input.dtype)


def _are_mixed(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> bool:
    """Whether the input is narrower than its weights; on a GPU, autocast widens the input itself."""
    others = [tensor.dtype for tensor in (weight, bias) if tensor is not None]
    return not input.is_cuda and input.dtype in (torch.float16, torch.bfloat16) and torch.float32 in others
