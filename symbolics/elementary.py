"""Elementary functions of numbers, element by element.

Where torch makes floating-point numbers of integers, they become torch's default type first.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.functional import exponentials
from torch_onnx_compat.functional.angles import angle, atan2
from torch_onnx_compat.functional.complex import is_complex
from torch_onnx_compat.tracing import as_tensor, constant, without_tracing

HYPERBOLIC = Declaration(needed_on=("torchscript",), exactness=Exactness.ROUNDING)


def _float_type(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def _as_float(x: Tensor) -> Tensor:
    # Casts to a tensor's own type would stay in TorchScript's files.
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())


def _promote(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.promote_types(x.dtype, y.dtype)
    return x.to(dtype), y.to(dtype)


# Hyperbolic functions


@symbolic("aten::sinh", **HYPERBOLIC)
def sinh(op: Ops, self: Value) -> Value:
    """Hyperbolic sine; stock TorchScript has no symbolic for it.

    Schema: sinh(Tensor self) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Sinh.html
    """
    return op.Sinh(op.cast(self, _float_type(op.dtype(self))))


@symbolic("aten::cosh", **HYPERBOLIC)
def cosh(op: Ops, self: Value) -> Value:
    """Hyperbolic cosine; stock TorchScript has no symbolic for it.

    Schema: cosh(Tensor self) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Cosh.html
    """
    return op.Cosh(op.cast(self, _float_type(op.dtype(self))))


@symbolic("aten::asinh", **HYPERBOLIC)
def asinh(op: Ops, self: Value) -> Value:
    """Inverse hyperbolic sine; stock TorchScript has no symbolic for it.

    Schema: asinh(Tensor self) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Asinh.html
    """
    return op.Asinh(op.cast(self, _float_type(op.dtype(self))))


@symbolic("aten::acosh", **HYPERBOLIC)
def acosh(op: Ops, self: Value) -> Value:
    """Inverse hyperbolic cosine; stock TorchScript has no symbolic for it.

    Schema: acosh(Tensor self) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Acosh.html
    """
    return op.Acosh(op.cast(self, _float_type(op.dtype(self))))


@symbolic("aten::atanh", **HYPERBOLIC)
def atanh(op: Ops, self: Value) -> Value:
    """Inverse hyperbolic tangent; stock TorchScript has no symbolic for it.

    Schema: atanh(Tensor self) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Atanh.html
    """
    return op.Atanh(op.cast(self, _float_type(op.dtype(self))))


# Angles and lengths


@decomposition(torch.angle, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def angle_to_where(input: Tensor) -> Tensor:
    """Angle of real numbers; stock TorchScript has no symbolic, stock dynamo loses NaN and makes integers of integers.

    Math: torch_onnx_compat.functional.angles.
    """
    return NotImplemented if is_complex(input) else angle(_as_float(input))


@symbolic("aten::real", needed_on=("torchscript",), exactness=Exactness.BITWISE)
def real(op: Ops, self: Value) -> Value:
    """Real numbers as they are; stock TorchScript has no symbolic for it.

    Schema: real(Tensor(a) self) -> Tensor(a)
    Source: https://docs.pytorch.org/docs/stable/generated/torch.real.html
    """
    return op.Identity(self)


@decomposition((torch.atan2, torch.arctan2), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def atan2_to_atan(input: Tensor, other: Tensor) -> Tensor:
    """Angle of a point; stock turns -pi for pi where y is 0, and NaN where both are 0 or infinite.

    Math: torch_onnx_compat.functional.angles.
    """
    dtype = _float_type(torch.promote_types(input.dtype, other.dtype))
    return atan2(input.to(dtype), other.to(dtype))


@decomposition((torch.sinc, torch.special.sinc), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def sinc_to_sin(input: Tensor) -> Tensor:
    """Normalized sinc; stock TorchScript has no symbolic for it.

    Math: sin(pi x) / (pi x).
    """
    angle = input * math.pi
    is_zero, one = angle == 0, torch.ones_like(angle)
    return torch.where(is_zero, one, torch.sin(angle) / torch.where(is_zero, one, angle))


@decomposition(torch.hypot, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def hypot_to_sqrt(input: Tensor, other: Tensor) -> Tensor:
    """Length of the hypotenuse; neither exporter has an operator for it.

    Math: with m the larger magnitude, sqrt(x^2 + y^2) = m sqrt((x / m)^2 + (y / m)^2), which neither overflows nor
          vanishes; m = 1 where it is 0 or infinite. Infinity outweighs NaN.
    """
    x, y = (side.abs() for side in _promote(input, other))
    larger = torch.maximum(x, y)
    scale = torch.where((larger == 0) | torch.isinf(larger), torch.ones_like(larger), larger)
    length = torch.sqrt((x / scale) ** 2 + (y / scale) ** 2) * scale
    return torch.where(torch.isinf(x) | torch.isinf(y), constant(math.inf, x), length)


@decomposition(torch.rad2deg, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def rad2deg_to_mul(input: Tensor) -> Tensor:
    """Radians to degrees; stock TorchScript has no symbolic for it.

    Math: x * 180 / pi.
    """
    return _convert_angle(input, math.pi, 180)


@decomposition(torch.deg2rad, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def deg2rad_to_mul(input: Tensor) -> Tensor:
    """Degrees to radians; stock TorchScript has no symbolic for it.

    Math: x * pi / 180.
    """
    return _convert_angle(input, 180, math.pi)


def _convert_angle(angle: Tensor, half_turn: float, new_half_turn: float) -> Tensor:
    return angle * (new_half_turn / half_turn)


# Exponentials and logarithms


@decomposition((torch.exp2, torch.special.exp2), needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def exp2_to_pow(input: Tensor) -> Tensor:
    """Powers of 2; stock TorchScript has no symbolic for it."""
    return torch.pow(2.0, _as_float(input))


@decomposition((torch.expm1, torch.special.expm1), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def expm1_to_tanh(input: Tensor) -> Tensor:
    """Exponential less 1, precise near 0; stock TorchScript refuses it, stock dynamo rounds exp(x).

    Math: torch_onnx_compat.functional.exponentials.
    """
    return exponentials.expm1(_as_float(input))


@decomposition((torch.log1p, torch.special.log1p), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def log1p_to_log(input: Tensor) -> Tensor:
    """Logarithm of 1 + x, precise near 0; stock rounds 1 + x, so that 1e-6 has three digits and 1e-8 none.

    Math: torch_onnx_compat.functional.exponentials.
    """
    return exponentials.log1p(_as_float(input))


@decomposition(torch.logaddexp, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logaddexp_to_log(input: Tensor, other: Tensor) -> Tensor:
    """Logarithm of a sum of powers of e; stock TorchScript has no symbolic, stock dynamo's is NaN of infinities.

    Math: m + log(1 + e^-|x - y|), m being the larger one, which does not overflow.
    """
    return _log_of_sum(input, other, lambda gap: exponentials.log1p(torch.exp(-gap)))


@decomposition(torch.logaddexp2, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logaddexp2_to_log(input: Tensor, other: Tensor) -> Tensor:
    """Logarithm of a sum of powers of 2; stock TorchScript has no symbolic, stock dynamo's is NaN of infinities.

    Math: m + log2(1 + 2^-|x - y|), m being the larger one, which does not overflow.
    """
    return _log_of_sum(input, other, lambda gap: exponentials.log1p(torch.exp(-gap * math.log(2))) / math.log(2))


def _log_of_sum(x: Tensor, y: Tensor, surplus: Callable[[Tensor], Tensor]) -> Tensor:
    """The larger number plus what the smaller one adds, which is a function of the gap between them."""
    larger = torch.maximum(x, y)
    gap = torch.abs(x - y)
    # Equal infinities have a gap of NaN.
    return torch.where(torch.isinf(larger) & (x == y), larger, larger + surplus(gap))


# Powers and products


@symbolic("aten::pow", needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def pow(op: Ops, self: Value, exponent: Value) -> Value:
    """Powers of tensors of two types, and of booleans; stock dynamo gives the base's where torch gives the wider one.

    Math: torch's promotion rules; ONNX's Pow has the type of its base.
    Schema: pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.pow.html
    """
    if op.number(self) is not None or (op.number(exponent) is not None and op.dtype(self) != torch.bool):
        return NotImplemented
    dtype = op.result_type(self, exponent)
    if dtype == op.dtype(self):
        return NotImplemented
    return op.Pow(op.cast(self, dtype), op.cast(exponent, dtype))


@decomposition((torch.pow, Tensor.__pow__), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def pow_to_sqrt(input: Any, exponent: Any) -> Tensor:
    """Square roots, and their reciprocals, written as powers: NaN of -inf, which ONNX's Pow makes infinite.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.pow.html; pow_tensor_scalar_kernel of ATen's
            native/cpu/PowKernel.cpp
    """
    if type(exponent) is not float or abs(exponent) != 0.5 or not isinstance(input, Tensor):
        return NotImplemented
    if not input.is_floating_point():
        return NotImplemented
    return torch.sqrt(input) if exponent > 0 else torch.rsqrt(input)


@decomposition((torch.pow, Tensor.__pow__), needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def pow_of_computed_number(input: Any, exponent: Any) -> Tensor:
    """Powers whose exponent is a number that values tell, ``x ** k.item()``; stock dynamo does not translate them.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.pow.html
    """
    if not isinstance(exponent, torch.SymFloat) or not isinstance(input, Tensor):
        return NotImplemented
    dtype = input.dtype if input.is_floating_point() else torch.get_default_dtype()
    return torch.pow(input, as_tensor(exponent).to(dtype))


@decomposition(torch.float_power, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def float_power_to_pow(input: Tensor | float, exponent: Tensor | float) -> Tensor:
    """Powers in float64; stock TorchScript has no symbolic for it."""
    return as_tensor(input).double() ** as_tensor(exponent).double()


@decomposition(torch.ldexp, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def ldexp_to_mul(input: Tensor, other: Tensor) -> Tensor:
    """Product with a power of two; stock TorchScript has no symbolic, stock dynamo's power overflows too early or late.

    Math: a whole exponent is halved, since its power may overflow where the product does not; the power of another
          one has its type.
    """
    with without_tracing():
        dtype = torch.ldexp(input.new_empty([1] * input.dim()), other.new_empty([1] * other.dim())).dtype
    two = constant(2.0, input, torch.float64)
    if other.is_floating_point():
        power = torch.pow(two, other.to(torch.float64))
        # Said, since onnxruntime leaves out the casts that would overflow.
        power = torch.where(power > torch.finfo(other.dtype).max, constant(math.inf, power), power)
        return (input.to(dtype) * power.to(other.dtype)).to(dtype)
    half = torch.div(other, 2, rounding_mode="floor")
    first, second = (torch.pow(two, part.to(torch.float64)) for part in (half, other - half))
    return (input.to(torch.float64) * first * second).to(dtype)


@decomposition(torch.addcmul, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def addcmul_to_mul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Adds a product of integers or of numbers without axes.

    Stock TorchScript turns integers into floating-point numbers and gives the result an axis.

    Math: input + value * tensor1 * tensor2.
    """
    if input.is_floating_point() and max(x.dim() for x in (input, tensor1, tensor2)):
        return NotImplemented
    product = tensor1 * tensor2
    return input + (product if value == 1 else product * value)


@decomposition(torch.addcdiv, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def addcdiv_to_div(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Adds a quotient; stock TorchScript has no symbolic for it.

    Math: input + value * tensor1 / tensor2.
    """
    quotient = tensor1 / tensor2
    return input + (quotient if value == 1 else quotient * value)


# Bounds and signs


@decomposition((torch.clamp, torch.clip), needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def clamp_promoted(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Clamps to bounds of a wider type, which stock TorchScript rounds to the tensor's; clamps int16.

    Math: torch's promotion rules. int16, for which onnxruntime has no kernel, is clamped as int32.
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
        min, max = (None if bound is None else as_tensor(bound).to(dtype) for bound in (min, max))
    return torch.clamp(input.to(dtype), min, max)  # type: ignore[arg-type]


def _bounded(choose: Callable[[Tensor, Tensor], Tensor], logical: Any, input: Tensor, other: Tensor) -> Tensor:
    dtype = torch.promote_types(input.dtype, other.dtype)
    if dtype == torch.bool:
        chosen: Tensor = logical(input, other)
        return chosen
    if dtype != torch.int16:
        return NotImplemented
    return choose(input.to(torch.int32), other.to(torch.int32)).to(dtype)


@decomposition(torch.maximum, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def maximum_of_short(input: Tensor, other: Tensor) -> Tensor:
    """Larger of two int16, for which onnxruntime has no kernel, or of two booleans, which stock TorchScript writes."""
    return _bounded(torch.maximum, torch.logical_or, input, other)


@decomposition(torch.minimum, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def minimum_of_short(input: Tensor, other: Tensor) -> Tensor:
    """Smaller of two int16, for which onnxruntime has no kernel, or of two booleans, which stock TorchScript writes."""
    return _bounded(torch.minimum, torch.logical_and, input, other)


@decomposition(torch.fmax, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fmax_to_where(input: Tensor, other: Tensor) -> Tensor:
    """Larger of two numbers, NaN only if both are; neither exporter has an operator for it."""
    return _choose_number(torch.maximum, input, other)


@decomposition(torch.fmin, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fmin_to_where(input: Tensor, other: Tensor) -> Tensor:
    """Smaller of two numbers, NaN only if both are; neither exporter has an operator for it."""
    return _choose_number(torch.minimum, input, other)


def _choose_number(choose: Callable[[Tensor, Tensor], Tensor], input: Tensor, other: Tensor) -> Tensor:
    """What `choose` returns, or the other operand where one is NaN."""
    x, y = _promote(input, other)
    if x.dtype in (torch.int16, torch.bool):  # for which onnxruntime has no kernel
        return choose(x.to(torch.int32), y.to(torch.int32)).to(x.dtype)
    if not x.dtype.is_floating_point:
        return choose(x, y)
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, choose(x, y)))


@decomposition(torch.copysign, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def copysign_to_where(input: Tensor, other: Tensor | float) -> Tensor:
    """Magnitude of one and sign of the other; neither exporter has an operator for it.

    Math: a zero is negative where its reciprocal is. NaN counts as positive.
    """
    dtype = _float_type(input.dtype)
    if not isinstance(other, Tensor):
        return input.to(dtype).abs() * math.copysign(1.0, other)
    dtype = torch.promote_types(dtype, other.dtype)
    sign = other.to(dtype)
    # Not the negated magnitude: onnxruntime's Neg makes 0 of 0 on some processors.
    return input.to(dtype).abs() * torch.where((sign < 0) | (1 / sign < 0), -1.0, 1.0).to(dtype)


@decomposition(torch.sgn, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def sgn_to_sign(input: Tensor) -> Tensor:
    """Sign of real numbers; stock TorchScript has no symbolic for it.

    Declines: complex numbers.

    Math: torch.sign, from which it differs for complex numbers only.
    """
    if input.is_complex():
        decline("complex numbers have no operator")
    return input.clone() if input.dtype == torch.bool else torch.sign(input)


@decomposition(torch.sign, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def sign_of_bool(input: Tensor) -> Tensor:
    """Signs of booleans; stock TorchScript writes a file that is not valid.

    Math: the sign of 0 is 0, that of 1 is 1.
    """
    if input.dtype != torch.bool:
        return NotImplemented
    return input.clone()


@decomposition(torch.heaviside, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def heaviside_to_where(input: Tensor, values: Tensor) -> Tensor:
    """Step function; stock TorchScript has no symbolic for it, stock dynamo errs on infinities and NaN.

    Math: 1 above 0, 0 below, the given value at 0; 0 for NaN.
    """
    return torch.where(input == 0, values, (input > 0).to(input.dtype))


@decomposition((torch.positive, Tensor.__pos__), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def positive_to_identity(input: Tensor) -> Tensor:
    """The tensor itself; stock TorchScript has no symbolic for the plus sign."""
    return input


# Choices and copies


@decomposition(torch.where, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def where_of_bool(condition: Tensor, *branches: Tensor | float, input: None = None, other: None = None) -> Tensor:
    """Chooses between booleans, or booleans and numbers; onnxruntime has no Where of bool, TorchScript mixes the types.

    Math: torch's promotion rules. Two booleans are chosen from as int32.
    """
    kinds = [branch.dtype if isinstance(branch, Tensor) else type(branch) for branch in branches]
    mixes = torch.bool in kinds and all(isinstance(branch, Tensor) for branch in branches)
    if len(kinds) < 2 or not (mixes or all(kind in (torch.bool, bool) for kind in kinds)):
        return NotImplemented
    dtype = torch.result_type(branches[0], branches[1])
    first, second = (as_tensor(branch).to(torch.int32 if dtype == torch.bool else dtype) for branch in branches)
    chosen = torch.where(condition, first, second)
    return chosen.to(torch.bool) if dtype == torch.bool else chosen


@decomposition(Tensor.where, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def where_of_tensor(self: Tensor, condition: Tensor, other: Tensor | float) -> Tensor:
    """The method, of which self is the first branch, on booleans; as torch.where, which has the entry above."""
    if not any(isinstance(branch, Tensor) and branch.dtype == torch.bool for branch in (self, other)):
        return NotImplemented
    return torch.where(condition, self, other)


@decomposition(torch.masked_fill, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def masked_fill_of_bool(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Fills booleans; onnxruntime has no Where of bool."""
    if input.dtype != torch.bool:
        return NotImplemented
    if isinstance(value, Tensor):
        return torch.where(mask, value.to(torch.bool), input)
    return input | mask if value else input & ~mask


@symbolic("aten::copy", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def copy(op: Ops, self: Value, src: Value, non_blocking: bool = False) -> Value:
    """Tensor with another written into it; stock TorchScript has no symbolic, stock dynamo does not broadcast.

    Both exporters write it for a copy_ into an input.

    Math: the values of src in the type of self, broadcast to its shape.
    Schema: copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Expand.html
    """
    return op.Expand(op.cast(src, op.dtype(self)), op.Shape(self))


# Functions that ONNX lacks

INTEGERS = (torch.gcd, torch.lcm)
NEIGHBOURS = (torch.nextafter, torch.frexp)
GAMMA = (torch.polygamma, torch.special.polygamma, torch.mvlgamma, torch.special.multigammaln)
OTHERS = (torch.special.ndtri, torch.special.i1, torch.special.i1e, torch.special.zeta)


@decomposition((*INTEGERS, *NEIGHBOURS, *GAMMA, *OTHERS), needed_on=("torchscript", "dynamo"))
def without_operator(*_: Any, **__: Any) -> Any:
    """Declines functions that neither exporter writes, and says what to do instead.

    Declines: always.

    Math: there is no short sequence of ONNX operators for them.
    Source: https://onnx.ai/onnx/operators/
    """
    decline("ONNX has nothing for this function; compute its result outside and pass it to the model as an input")
