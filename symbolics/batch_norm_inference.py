"""aten::_native_batch_norm_legit_no_training -> BatchNormalization.

Schema: _native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean,
        Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)
Source: https://onnx.ai/onnx/operators/onnx__BatchNormalization.html
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic


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
    """Normalised input; torch 2.6 takes BatchNormalization for three outputs where recent onnxscript makes one."""
    dtype = op.dtype(running_mean)
    channels = op.Shape(running_mean)
    scale = weight if weight is not None else op.Expand(op.constant(1.0, dtype), channels)
    shift = bias if bias is not None else op.Expand(op.constant(0.0, dtype), channels)
    saved = op.constant([], dtype)  # the statistics of the batch, which only training has
    normalised = op.BatchNormalization(input, scale, shift, running_mean, running_var, epsilon=eps)
    return normalised, saved, saved
