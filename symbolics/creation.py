"""New tensors: ranges, numbers as tensors, random numbers."""

import math
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.ops import ONNX_TYPES, TORCH_TYPES

# Ranges


def arange_bounds(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Start, end and step of torch.arange's arguments, and the options that are left."""
    names = ("end",) if len(args) == 1 else ("start", "end", "step")
    bounds = dict(zip(names, args, strict=False))
    bounds |= {name: options[name] for name in ("start", "end", "step") if name in options}
    rest = {name: value for name, value in options.items() if name not in bounds}
    return bounds.get("start", 0), bounds["end"], bounds.get("step", 1), rest


def are_whole(*bounds: Any) -> bool:
    """Whether all of them are integers by type: numbers, sizes or tensors."""
    return all(
        not (bound.is_floating_point() or bound.is_complex())
        if isinstance(bound, Tensor)
        else isinstance(bound, (int, torch.SymInt))
        for bound in bounds
    )


@symbolic("aten::arange", needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def arange(op: Ops, start: Value, end: Value = None, step: Value = 1, dtype: Any = None) -> Value:
    """Range of float64 in exactly the step of the model; ranges of other types are left to torch.

    Math: torch.export keeps a step of 1.3; stock torch writes it as a float32 constant and a Cast, so that the range
          counts in steps of 1.2999999523, and may have one element more.
    Schema: arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None,
            Device? device=None, bool? pin_memory=None) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.arange.html;
            https://onnx.ai/onnx/operators/onnx__Range.html
    """
    if dtype != ONNX_TYPES[torch.float64]:
        return NotImplemented
    if end is None:  # the overload with an end only
        start, end = 0, start
    return op.Range(*(op.cast(bound, torch.float64) for bound in (start, end, step)))


@decomposition(torch.arange, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def arange_from_zero(*args: Any, **options: Any) -> Tensor:
    """Range of integers that counts down, or from a size; onnxruntime reads the wrong cells where it is an index.

    Ranges whose bounds are all known, that count up from a known start, or that hold floats are left to torch.

    Math: a, a + s, a + 2 s, ... = a + (0, s, 2 s, ...). onnxruntime makes Gather with the indices of a Range into a
          Slice, whose bounds count from the end where they are negative; an Add between them keeps it from that.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.arange.html; GatherRangeToSlice of onnxruntime's
            core/optimizer/gather_fusion.cc
    """
    start, end, step, rest = arange_bounds(args, options)
    is_fixed = all(type(bound) is int for bound in (start, end, step))
    counts_up = type(start) is int and start >= 0 and type(step) is int and step > 0
    if is_fixed or counts_up or not are_whole(start, end, step) or rest.get("dtype") not in (None, torch.int64):
        return NotImplemented
    return torch.arange(0, end - start, step, **rest) + start


@decomposition(torch.arange, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def arange_of_fractions(*args: Any, **options: Any) -> Tensor:
    """Range of floats that starts at or steps by a fraction, up to a number or a size that varies.

    Ranges that start at and step by whole numbers, which floats hold exactly, and those of integer types or float64
    are left to torch.

    Math: torch computes the number of elements and each of them, start + i step, in double precision. onnxruntime's
          Range adds the rounded step up, so that 30 steps of 1.3 are 38.99999 in float32, of which the floor is 38.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.arange.html;
            https://onnx.ai/onnx/operators/onnx__Range.html
    """
    start, end, step, rest = arange_bounds(args, options)
    default = torch.int64 if are_whole(start, end, step) else torch.get_default_dtype()
    dtype = rest.pop("dtype", None) or default
    if not dtype.is_floating_point or dtype is torch.float64:
        return NotImplemented
    if all(are_whole(bound) or (type(bound) is float and bound.is_integer()) for bound in (start, step)):
        return NotImplemented
    if all(type(bound) in (int, float) for bound in (start, end, step)):
        numbers = [start + step * i for i in range(math.ceil((end - start) / step))]
        return torch.tensor(numbers, dtype=dtype, device=rest.get("device"))
    return torch.arange(start, end, step, dtype=torch.float64, **rest).to(dtype)


@decomposition(torch.eye, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def eye_of_narrow_type(*size: Any, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """Identity of truth values or of narrow integers; onnxruntime has no EyeLike of them.

    Math: 0 and 1 are the same numbers in every type.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.eye.html; EyeLike of onnxruntime's
            docs/OperatorKernels.md
    """
    if dtype not in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.bfloat16):
        return NotImplemented
    return torch.eye(*size, dtype=torch.int32, **options).to(dtype)


@decomposition(torch.full, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def full_of_whole_number(size: Any, fill_value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """A whole number where no type is given, or a truth value; stock TorchScript writes float32, or fails an assertion.

    A size, or what is computed of it, is a tensor in a trace.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.full.html
    """
    if isinstance(fill_value, Tensor):
        if dtype is not None or fill_value.is_floating_point() or fill_value.is_complex():
            return NotImplemented
        made = torch.full(size, fill_value.to(torch.int64), dtype=torch.int64, **options)  # type: ignore[call-overload]
        return made.to(torch.bool) if fill_value.dtype == torch.bool else made
    is_truth = type(fill_value) is bool
    if not is_truth and (dtype is not None or type(fill_value) is not int):
        return NotImplemented
    return torch.full(size, int(fill_value), dtype=dtype or (torch.bool if is_truth else torch.int64), **options)


def equal_steps(start: float, end: float, steps: Any, dtype: torch.dtype, device: Any) -> Tensor:
    """Numbers at equal distances, from start on and up to end; the start alone if it is one number.

    Math: as torch does, counted from the nearer end.
    """
    place = torch.arange(steps, device=device)
    last = torch.full_like(place, steps - 1)
    nearer = place < torch.maximum(torch.div(last + 1, 2, rounding_mode="floor"), torch.ones_like(place))
    number, rest = place.to(dtype), (last - place).to(dtype)
    # A number divided by a tensor is one multiplied by its reciprocal, which rounds twice.
    apart = torch.zeros_like(place, dtype=dtype) + (end - start)
    step = apart / torch.maximum(last, torch.ones_like(place)).to(dtype)
    return torch.where(nearer, start + step * number, end - step * rest)


def _steps_of(start: Any, end: Any, steps: Any, options: dict[str, Any]) -> tuple[torch.dtype, Any] | None:
    """The dtype and device of a range of equal steps whose number varies, or is 1; None of any other."""
    dtype = options.get("dtype") or torch.get_default_dtype()
    are_computed = any(isinstance(end, (torch.Tensor, torch.SymInt, torch.SymFloat)) for end in (start, end))
    if not dtype.is_floating_point:
        return None
    if are_computed:
        return dtype, options.get("device")
    return (dtype, options.get("device")) if type(steps) is not int or steps == 1 else None


@decomposition(torch.linspace, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def linspace_to_arange(start: Any, end: Any, steps: Any, **options: Any) -> Tensor:
    """Numbers at equal distances; stock dynamo fixes their number, stock TorchScript makes NaN of one."""
    found = _steps_of(start, end, steps, options)
    return NotImplemented if found is None else equal_steps(start, end, steps, *found)


@decomposition(torch.logspace, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logspace_to_pow(start: Any, end: Any, steps: Any, base: float = 10.0, **options: Any) -> Tensor:
    """Powers of equally distant exponents; stock TorchScript has no symbolic, stock dynamo fixes their number."""
    found = _steps_of(start, end, steps, options)
    if found is None:
        return NotImplemented
    return torch.pow(base, equal_steps(start, end, steps, *found))


# Numbers


@symbolic("aten::scalar_tensor", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def scalar_tensor(op: Ops, s: Value, dtype: Any = None) -> Value:
    """The number as a constant; stock dynamo rounds it to float32 first, also for float64 tensors.

    Declines: a number that is computed in the graph, and a dtype that is not spelt as ONNX spells it.

    Numbers of bfloat16, which has no more digits than float32, are left to torch.

    Math: torch.export makes a Python number beside a float64 tensor scalar_tensor(number, dtype=float64). Torch writes
          that as a float32 constant and a Cast, so that x * 0.1 multiplies by 0.10000000149.
    Schema: scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
            pin_memory=None) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.scalar_tensor.html
    """
    number = op.number(s)
    if number is None:
        decline("the number must be known, got a tensor")
    if not isinstance(dtype, int) or int(dtype) not in TORCH_TYPES:
        decline(f"dtype must be one of ONNX's, got {dtype!r}")
    if TORCH_TYPES[int(dtype)] is torch.bfloat16:
        return NotImplemented
    return op.constant(number, TORCH_TYPES[int(dtype)])


# Random numbers

NEW = (torch.rand, torch.randn, torch.randint, torch.randperm)
LIKE = (torch.rand_like, torch.randn_like, torch.randint_like)
OF_PARAMETERS = (torch.normal, torch.bernoulli, torch.multinomial, torch.poisson, torch.binomial)
IN_PLACE = (
    Tensor.normal_,
    Tensor.uniform_,
    Tensor.random_,
    Tensor.exponential_,
    Tensor.geometric_,
    Tensor.log_normal_,
    Tensor.cauchy_,
)


@decomposition((*NEW, *LIKE, *OF_PARAMETERS, *IN_PLACE), needed_on=("torchscript", "dynamo"))
def random_to_input(*_: Any, **__: Any) -> Tensor:
    """Names random numbers as the obstacle where an export fails on them or its numbers differ.

    Declines: always; a file that draws its own numbers is written with verify=False where the exporter can write it.

    Source: https://docs.pytorch.org/docs/stable/torch.html#random-sampling
    """
    decline("random numbers differ from run to run; draw them outside and pass them to the model as an input")
