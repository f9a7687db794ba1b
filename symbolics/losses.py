"""Losses of regression."""

from torch_onnx_compat import Exactness, Ops, Value, symbolic

_NONE, _MEAN = 0, 1  # torch's numbers for reduction="none" and "mean"; "sum" is 2


@symbolic("aten::huber_loss", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def huber_loss(op: Ops, self: Value, target: Value, reduction: int = _MEAN, delta: float = 1.0) -> Value:
    """Loss that is quadratic near 0 and linear beyond; stock TorchScript has no symbolic for it.

    Math: with e = |input - target|: e^2 / 2 where e <= delta, else delta (e - delta / 2); mean, sum or neither of them.
    Schema: huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.HuberLoss.html
    """
    dtype, (input, target) = op.promoted(self, target)
    error = op.Abs(op.Sub(input, target))
    half, limit = op.constant(0.5, dtype), op.constant(delta, dtype)
    parabola = op.Mul(half, op.Mul(error, error))
    line = op.Mul(limit, op.Sub(error, op.constant(0.5 * delta, dtype)))
    loss = op.Where(op.Greater(error, limit), line, parabola)
    if reduction == _NONE:
        return loss
    return op.ReduceMean(loss, keepdims=0) if reduction == _MEAN else op.ReduceSum(loss, keepdims=0)
