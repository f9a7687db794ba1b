"""aten::pow of tensors -> Pow of the promoted base.

Math:   torch's promotion rules; ONNX's Pow has the type of its base.
Schema: pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.pow.html
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::pow", needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def pow(op: Ops, self: Value, exponent: Value) -> Value:
    """Powers of tensors of two types; stock dynamo gives the base's where torch gives the wider one."""
    if op.number(self) is not None or op.number(exponent) is not None:
        return NotImplemented
    dtype = op.result_type(self, exponent)
    if dtype == op.dtype(self):
        return NotImplemented
    return op.Pow(op.cast(self, dtype), op.cast(exponent, dtype))
