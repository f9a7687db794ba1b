"""aten::remainder, the % of tensors -> Mod.

Math:   integers: Mod itself, whose result has the divisor's sign. Floats: C's fmod, which is exact and has the
        dividend's sign, plus the divisor where the signs differ. a - b * floor(a / b) is not exact: 1e10 % 3 comes out
        0 in float32.
Schema: remainder.Tensor(Tensor self, Tensor other); remainder.Scalar(Tensor self, Scalar other);
        remainder.Scalar_Tensor(Scalar self, Tensor other)
Source: https://docs.pytorch.org/docs/stable/generated/torch.remainder.html; ATen/native/cpu/BinaryOpsKernel.cpp
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::remainder", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def remainder(op: Ops, self: Value, other: Value) -> Value:
    """Remainder with the divisor's sign; stock computes that of floats as a - b * floor(a / b), off by up to b."""
    dtype, (dividend, divisor) = op.promoted(self, other)
    if not dtype.is_floating_point:
        return op.Mod(dividend, divisor)
    rest = op.Mod(dividend, divisor, fmod=1)
    zero = op.constant(0, dtype)
    number = op.number(other)
    if number is None:
        signs_differ = op.Less(op.Mul(rest, op.Sign(divisor)), zero)
    else:
        signs_differ = op.Less(rest, zero) if number > 0 else op.Greater(rest, zero)
    return op.Where(signs_differ, op.Add(rest, divisor), rest)
