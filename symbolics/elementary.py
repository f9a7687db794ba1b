"""Elementary functions of numbers, element by element."""

import math
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.functional.angles import atan2
from torch_onnx_compat.tracing import constant


@symbolic("aten::sinh", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def sinh(op: Ops, self: Value) -> Value:
    """Hyperbolic sine; stock TorchScript has no symbolic for it.

    Math: by definition; integers become torch's default floating-point type first.
    Schema: sinh(Tensor self) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Sinh.html
    """
    dtype = op.dtype(self)
    return op.Sinh(self if dtype.is_floating_point else op.cast(self, torch.get_default_dtype()))


@symbolic("aten::cosh", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def cosh(op: Ops, self: Value) -> Value:
    """Hyperbolic cosine; stock TorchScript has no symbolic for it.

    Math: by definition; integers become torch's default floating-point type first.
    Schema: cosh(Tensor self) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Cosh.html
    """
    dtype = op.dtype(self)
    return op.Cosh(self if dtype.is_floating_point else op.cast(self, torch.get_default_dtype()))


@symbolic("aten::asinh", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def asinh(op: Ops, self: Value) -> Value:
    """Inverse hyperbolic sine; stock TorchScript has no symbolic for it.

    Math: by definition; integers become torch's default floating-point type first.
    Schema: asinh(Tensor self) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Asinh.html
    """
    dtype = op.dtype(self)
    return op.Asinh(self if dtype.is_floating_point else op.cast(self, torch.get_default_dtype()))


@symbolic("aten::acosh", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def acosh(op: Ops, self: Value) -> Value:
    """Inverse hyperbolic cosine; stock TorchScript has no symbolic for it.

    Math: by definition; integers become torch's default floating-point type first.
    Schema: acosh(Tensor self) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Acosh.html
    """
    dtype = op.dtype(self)
    return op.Acosh(self if dtype.is_floating_point else op.cast(self, torch.get_default_dtype()))


@symbolic("aten::atanh", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def atanh(op: Ops, self: Value) -> Value:
    """Inverse hyperbolic tangent; stock TorchScript has no symbolic for it.

    Math: by definition; integers become torch's default floating-point type first.
    Schema: atanh(Tensor self) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Atanh.html
    """
    dtype = op.dtype(self)
    return op.Atanh(self if dtype.is_floating_point else op.cast(self, torch.get_default_dtype()))


@decomposition((torch.atan2, torch.arctan2), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def atan2_to_atan(input: Tensor, other: Tensor) -> Tensor:
    """Angle of a point; stock turns -pi for pi where y is 0, and NaN where both are 0 or infinite.

    Math: torch_onnx_compat.functional.angles.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.atan2.html
    """
    dtype = torch.promote_types(input.dtype, other.dtype)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    return atan2(input.to(dtype), other.to(dtype))


@decomposition((torch.sinc, torch.special.sinc), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def sinc_to_sin(input: Tensor) -> Tensor:
    """Normalized sinc; stock TorchScript has no symbolic for it.

    Math: sin(pi x) / (pi x).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.sinc.html
    """
    angle = input * math.pi
    is_zero = angle == 0
    return torch.where(
        is_zero, torch.ones_like(angle), torch.sin(angle) / torch.where(is_zero, torch.ones_like(angle), angle)
    )


@decomposition(torch.hypot, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def hypot_to_sqrt(input: Tensor, other: Tensor) -> Tensor:
    """Length of the hypotenuse; neither exporter has an operator for it.

    Math: with m the larger magnitude, sqrt(x^2 + y^2) = m sqrt((x / m)^2 + (y / m)^2), which neither overflows nor
          vanishes; m = 1 where it is 0 or infinite. Infinity outweighs NaN.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.hypot.html
    """
    dtype = torch.promote_types(input.dtype, other.dtype)
    x, y = input.to(dtype).abs(), other.to(dtype).abs()
    larger = torch.maximum(x, y)
    scale = torch.where((larger == 0) | torch.isinf(larger), torch.ones_like(larger), larger)
    length = torch.sqrt((x / scale) ** 2 + (y / scale) ** 2) * scale
    return torch.where(torch.isinf(x) | torch.isinf(y), constant(math.inf, x), length)


@decomposition(torch.rad2deg, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def rad2deg_to_mul(input: Tensor) -> Tensor:
    """Radians to degrees; stock TorchScript has no symbolic for it.

    Math: x * 180 / pi.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.rad2deg.html
    """
    return input * (180 / math.pi)


@decomposition((torch.exp2, torch.special.exp2), needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def exp2_to_pow(input: Tensor) -> Tensor:
    """Powers of 2; stock TorchScript has no symbolic for it.

    Math: by definition.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.exp2.html
    """
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return torch.pow(2.0, x)


@decomposition((torch.expm1, torch.special.expm1), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def expm1_to_tanh(input: Tensor) -> Tensor:
    """Exponential less 1, precise near 0; stock TorchScript refuses it, stock dynamo rounds exp(x).

    Math: exp(x) - 1 = 2 t / (1 - t) with t = tanh(x / 2), which loses nothing near 0; beyond 1/2 nothing is lost
          anyway.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.expm1.html
    """
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    half = torch.tanh(x * 0.5)
    is_near = torch.abs(x) < 0.5
    return torch.where(is_near, 2 * half / (1 - half), torch.exp(x) - 1)


@decomposition(torch.logaddexp, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logaddexp_to_log(input: Tensor, other: Tensor) -> Tensor:
    """Logarithm of a sum of powers; stock TorchScript has no symbolic, stock dynamo's is NaN of infinities.

    Math: m + log(1 + b^-|x - y|), m the larger, which does not overflow; m alone where both are the same infinity.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.logaddexp.html
    """
    larger = torch.maximum(input, other)
    gap = torch.abs(input - other)
    return torch.where(torch.isinf(larger) & (input == other), larger, larger + torch.log1p(torch.exp(-gap)))


@decomposition(torch.logaddexp2, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logaddexp2_to_log(input: Tensor, other: Tensor) -> Tensor:
    """Logarithm of a sum of powers; stock TorchScript has no symbolic, stock dynamo's is NaN of infinities.

    Math: m + log(1 + b^-|x - y|), m the larger, which does not overflow; m alone where both are the same infinity.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.logaddexp2.html
    """
    larger = torch.maximum(input, other)
    gap = torch.abs(input - other)
    return torch.where(
        torch.isinf(larger) & (input == other),
        larger,
        larger + torch.log1p(torch.exp(-gap * math.log(2))) / math.log(2),
    )


@symbolic("aten::pow", needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def pow(op: Ops, self: Value, exponent: Value) -> Value:
    """Powers of tensors of two types; stock dynamo gives the base's where torch gives the wider one.

    Math: torch's promotion rules; ONNX's Pow has the type of its base.
    Schema: pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.pow.html
    """
    if op.number(self) is not None or op.number(exponent) is not None:
        return NotImplemented
    dtype = op.result_type(self, exponent)
    if dtype == op.dtype(self):
        return NotImplemented
    return op.Pow(op.cast(self, dtype), op.cast(exponent, dtype))


@decomposition(torch.float_power, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def float_power_to_pow(input: Tensor | float, exponent: Tensor | float) -> Tensor:
    """Powers in float64; stock TorchScript has no symbolic for it.

    Math: by definition.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.float_power.html
    """
    base, power = (torch.as_tensor(v).double() for v in (input, exponent))
    result: Tensor = base**power
    return result


@decomposition(torch.ldexp, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def ldexp_to_mul(input: Tensor, other: Tensor) -> Tensor:
    """Product with a power of two; stock TorchScript has no symbolic for it.

    Math: by definition.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.ldexp.html
    """
    return input * torch.pow(2.0, other)


@decomposition(torch.addcmul, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def addcmul_to_mul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Adds a product of integers; stock TorchScript makes floats of them.

    Math: input + value * tensor1 * tensor2.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.addcmul.html
    """
    if input.is_floating_point():
        return NotImplemented
    product = tensor1 * tensor2
    return input + (product if value == 1 else product * value)


@decomposition(torch.addcdiv, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def addcdiv_to_div(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Adds a quotient; stock TorchScript has no symbolic for it.

    Math: input + value * tensor1 / tensor2.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.addcdiv.html
    """
    quotient = tensor1 / tensor2
    return input + (quotient if value == 1 else quotient * value)


@decomposition((torch.clamp, torch.clip), needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def clamp_promoted(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Clamps to bounds of a wider type, which stock TorchScript rounds to the tensor's, and int16.

    Math: torch's promotion rules; int16 goes through int32, for which onnxruntime has kernels.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.clamp.html
    """
    dtype = input.dtype
    for bound in (min, max):
        if bound is not None:
            dtype = torch.promote_types(dtype, torch.result_type(input, bound))
    if dtype == torch.int16:
        return torch.clamp(input.to(torch.int32), min, max).to(torch.int16)  # type: ignore[arg-type]
    if dtype == input.dtype:
        return NotImplemented
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        min, max = (None if bound is None else torch.as_tensor(bound).to(dtype) for bound in (min, max))
    return torch.clamp(input.to(dtype), min, max)  # type: ignore[arg-type]


@decomposition(torch.fmax, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fmax_to_where(input: Tensor, other: Tensor) -> Tensor:
    """Larger of two numbers, NaN only if both are; neither exporter has an operator for it.

    Math: the maximum, or the other operand where one is NaN.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.fmax.html
    """
    dtype = torch.promote_types(input.dtype, other.dtype)
    x, y = input.to(dtype), other.to(dtype)
    if not dtype.is_floating_point:
        return torch.maximum(x, y)
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.maximum(x, y)))


@decomposition(torch.fmin, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fmin_to_where(input: Tensor, other: Tensor) -> Tensor:
    """Smaller of two numbers, NaN only if both are; neither exporter has an operator for it.

    Math: the minimum, or the other operand where one is NaN.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.fmin.html
    """
    dtype = torch.promote_types(input.dtype, other.dtype)
    x, y = input.to(dtype), other.to(dtype)
    if not dtype.is_floating_point:
        return torch.minimum(x, y)
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.minimum(x, y)))


@decomposition(torch.copysign, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def copysign_to_where(input: Tensor, other: Tensor | float) -> Tensor:
    """Magnitude of one and sign of the other; neither exporter has an operator for it.

    Math: a zero is negative where its reciprocal is. NaN counts as positive.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.copysign.html
    """
    dtype = input.dtype if input.is_floating_point() else torch.get_default_dtype()
    if isinstance(other, Tensor):
        dtype = torch.promote_types(dtype, other.dtype)
        sign = other.to(dtype)
        magnitude = input.to(dtype).abs()
        # Not the negated magnitude: onnxruntime's Neg makes 0 of 0 on some processors.
        return magnitude * torch.where((sign < 0) | (1 / sign < 0), -1.0, 1.0).to(dtype)
    magnitude = input.to(dtype).abs()
    return magnitude * math.copysign(1.0, other)


@decomposition(torch.sgn, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def sgn_to_sign(input: Tensor) -> Tensor:
    """Sign of real numbers; stock TorchScript has no symbolic for it.

    Declines: complex numbers.

    Math: they differ for complex numbers only.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.sgn.html
    """
    if input.is_complex():
        decline("complex numbers have no operator")
    return input.clone() if input.dtype == torch.bool else torch.sign(input)


@decomposition(torch.sign, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def sign_of_bool(input: Tensor) -> Tensor:
    """Signs of booleans, of which stock TorchScript makes a file that is not valid.

    Math: the sign of 0 is 0, that of 1 is 1.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.sign.html
    """
    if input.dtype != torch.bool:
        return NotImplemented
    return input.clone()


@decomposition(torch.heaviside, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def heaviside_to_where(input: Tensor, values: Tensor) -> Tensor:
    """Step function; stock TorchScript has no symbolic for it, stock dynamo errs on infinities and NaN.

    Math: 1 above 0, 0 below, the given value at 0; 0 for NaN.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.heaviside.html
    """
    return torch.where(input == 0, values, (input > 0).to(input.dtype))


@decomposition((torch.positive, Tensor.__pos__), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def positive_to_identity(input: Tensor) -> Tensor:
    """The tensor itself; stock TorchScript has no symbolic for the plus sign.

    Math: by definition.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.positive.html
    """
    return input


@decomposition(torch.where, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def where_of_bool(condition: Tensor, *branches: Tensor | float, input: None = None, other: None = None) -> Tensor:
    """Chooses between booleans, for which onnxruntime has no Where, or them and numbers, which TorchScript mixes.

    Math: torch's promotion rules.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.where.html
    """
    kinds = [branch.dtype for branch in branches if isinstance(branch, Tensor)]
    if len(kinds) < 2 or torch.bool not in kinds:
        return NotImplemented
    first, second = branches
    if kinds[0] == kinds[1]:
        return torch.where(
            condition, torch.as_tensor(first).to(torch.int32), torch.as_tensor(second).to(torch.int32)
        ).to(torch.bool)
    dtype = torch.result_type(first, second)
    return torch.where(condition, torch.as_tensor(first).to(dtype), torch.as_tensor(second).to(dtype))


@symbolic("aten::copy", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def copy(op: Ops, self: Value, src: Value, non_blocking: bool = False) -> Value:
    """What a tensor holds after another was written into it.

    Schema: copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor
    Semantics: the values of src in the type of self, broadcast to its shape. Both exporters make it of a copy_ into an
               input; TorchScript has no form of it, and dynamo forgets to broadcast.
    Source: https://onnx.ai/onnx/operators/onnx__Expand.html
    """
    return op.Expand(op.cast(src, op.dtype(self)), op.Shape(self))


@decomposition(
    (
        *(torch.gcd, torch.lcm, torch.nextafter, torch.frexp, torch.polygamma, torch.special.polygamma),
        *(torch.mvlgamma, torch.special.multigammaln, torch.special.ndtri, torch.special.i1, torch.special.i1e),
        torch.special.zeta,
    ),
    needed_on=("torchscript", "dynamo"),
)
def without_operator(*_: Any, **__: Any) -> Any:
    """Says of functions that neither exporter writes what can be done.

    Declines: always.

    Math: there is no short sequence of ONNX operators for them.
    Source: https://onnx.ai/onnx/operators/
    """
    decline("ONNX has nothing for this function; compute its result outside and pass it to the model as an input")
