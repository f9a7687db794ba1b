"""The judgement of a random program: its file in onnxruntime against eager torch, by a comparison of its own.

What the project says of its file plays no part: the file is run at the example, at other values, and at other sizes of
every axis that varies, wherever eager torch on a fresh copy of the model runs there.
"""

from __future__ import annotations

import itertools
import random
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fuzz.programs import Program, example_inputs, fresh_model
from torch_onnx_compat import CompatError, export_compat

Arrays = list[np.ndarray[Any, Any]]

SIZES = (1, 2, 3, 5, 8, 16, 17, 33, 64, 65)
MOST_SIZES = 130
EACH_AXIS = 8
TOGETHER = 5
KINDS = (
    ("wrong", "WRONG"),
    ("fails", "fails-at-legal-size"),
    ("rounding", "rounding"),
)
REASONS = (
    ("source is not at hand", "source not at hand"),
    ("Cannot rewrite|Refused:|cannot be rewritten", "rewriting refused"),
    ("would freeze|frozen", "would freeze"),
    ("differ|wanted shape|shape .* wanted|does not compute|verification", "verification"),
    ("Could not guard|data-dependent|GuardOnDataDependent|unbacked", "dynamo: data-dependent"),
    ("came out fixed|specialized|ConstraintViolation", "axis fixed"),
    ("does not load|onnxruntime", "onnxruntime refuses"),
    ("takes no size but", "axis that the model fixes"),
)
VALUES: dict[str, Callable[[Tensor, torch.Generator], Tensor]] = {
    "normal": lambda x, g: torch.randn(x.shape, generator=g),
    "large": lambda x, g: torch.randn(x.shape, generator=g) * 1000,
    "negative": lambda x, g: -torch.randn(x.shape, generator=g).abs() - 0.1,
    "positive": lambda x, g: torch.rand(x.shape, generator=g) * 10 + 0.5,
    "zeros": lambda x, g: torch.zeros(x.shape),
    "ones": lambda x, g: torch.ones(x.shape),
    "round": lambda x, g: torch.randint(-6, 7, x.shape, generator=g).float(),
    "tiny": lambda x, g: torch.randn(x.shape, generator=g) * 1e-6,
    "sparse": lambda x, g: torch.randn(x.shape, generator=g) * 4 * (torch.rand(x.shape, generator=g) < 0.1),
}
DISCRETE = ("zeros", "ones", "round", "sparse", "numbers of the source")
NUMBER = "everywhere"
FILLED = 5
"""Numbers of the source of which a whole input is made."""


@dataclass(frozen=True)
class Case:
    """Inputs to judge on, and a name for them."""

    name: str
    inputs: tuple[Tensor, ...]


def is_discrete(case: Case) -> bool:
    """Whether a nudge of the values would change which question they answer."""
    return case.name in DISCRETE or case.name.startswith(NUMBER)


@dataclass(frozen=True)
class Judgement:
    """What became of a program.

    Attributes:
        verdict: right, WRONG, fails-at-legal-size, rounding, refused, other exception or eager-refuses.
        detail: The case and the difference, or the error.
        reason: What kind of refusal it was; empty for a file.
        cases: Cases on which the file was compared.
    """

    verdict: str
    detail: str = ""
    reason: str = ""
    cases: int = 0


def run_eager(program: Program, path: Path, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """What a fresh copy of the model returns; a double input runs the model in float64.

    Raises:
        Exception: Whatever the model raises.
    """
    model = fresh_model(program, path)
    if inputs[0].dtype == torch.float64:
        model = model.double()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model(*(x.clone() for x in inputs))
    return [t.clone() for t in (found if isinstance(found, (tuple, list)) else (found,))]


_FRACTION = re.compile(r"(shape\[[^]]*\]|size\([^)]*\)) \* \d*\.\d")
"""Where a program computes a fraction of a size."""

_PAIR = re.compile(r"\(([1-9]\d*), ([1-9]\d*)\)")
"""Where a program has a key of two sizes."""

ROUNDING = [90, 50, 52]
"""Sizes at which fractions of float32 have other floors: 0.7 * 90, 0.58 * 50, multiples of a tenth of 52."""


def name_sizes(program: Program) -> list[dict[str, int]]:
    """Sizes of the axes that vary: each alone, then several at once; those that the source names come first."""
    dice = random.Random(program.seed + 1)
    named = {int(text) for text in re.findall(r"(?<![\w.])\d+(?![\w.])", program.source)}
    chosen = []
    for name, example in program.sizes.items():
        near = {example - 1, example + 1, example * 2, example * 2 + 1}
        asked = [n for n in sorted(named | {n + 1 for n in named}) if 2 < n < MOST_SIZES]
        dice.shuffle(asked)
        asked = ROUNDING if _FRACTION.search(program.source) else asked[:3]
        wanted = [1, 2, *asked, *sorted(near)[:3], *dice.sample(SIZES, len(SIZES))]
        kept = [n for n in dict.fromkeys(wanted) if n > 0 and n != example][:EACH_AXIS]
        chosen += [{name: n} for n in kept]
    if len(program.sizes) > 1:
        pool = [*SIZES, *(n for n in named if 0 < n < MOST_SIZES)]
        chosen += [{name: dice.choice(pool) for name in program.sizes} for _ in range(TOGETHER)]
        for pair in _PAIR.findall(program.source)[:TOGETHER]:
            chosen += [dict(zip(two, map(int, pair), strict=True)) for two in itertools.permutations(program.sizes, 2)]
        chosen.append(dict.fromkeys(program.sizes, 1))
        chosen.append(dict.fromkeys(program.sizes, dice.choice(pool)))
    return chosen


def numbers_of(program: Program) -> Tensor:
    """The numbers that stand in the source, and their negatives: what a program compares its values with."""
    found = re.findall(r"(?<![\w.])\d+\.\d+|(?<![\w.])\d+(?![\w.])", program.source)
    return torch.tensor(sorted({sign * float(text) for text in found for sign in (1, -1)}))


def of_floats(inputs: tuple[Tensor, ...], change: Callable[..., Tensor]) -> tuple[Tensor, ...]:
    """The inputs with other floats; whole numbers stay."""
    return tuple(change(x) if x.is_floating_point() else x for x in inputs)


def name_cases(program: Program) -> Iterator[Case]:
    """The example, the draws of values, the sizes."""
    example = example_inputs(program)
    generator = torch.Generator().manual_seed(program.seed + 3)
    yield Case("the example", example)
    for name, draw in VALUES.items():
        yield Case(name, of_floats(example, lambda x, draw=draw: draw(x, generator)))
    numbers = numbers_of(program)
    if len(numbers):
        drawn = of_floats(example, lambda x: numbers[torch.randint(len(numbers), x.shape, generator=generator)])
        yield Case("numbers of the source", drawn)
        for number in numbers[torch.randperm(len(numbers), generator=generator)][:FILLED]:
            filled = of_floats(example, lambda x, number=number: torch.full_like(x, float(number)))
            yield Case(f"{NUMBER} {float(number):g}", filled)
    for sizes in name_sizes(program):
        yield Case(f"sizes {sizes}", example_inputs(program, sizes))


def differ(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where two arrays of one shape and type differ by more than the tolerance."""
    if not np.issubdtype(wanted.dtype, np.floating):
        return np.asarray(found != wanted)
    finite = np.isfinite(wanted)
    middle = float(np.median(np.abs(wanted[finite]))) if finite.any() else 0.0
    with np.errstate(all="ignore"):
        far = np.abs(found - wanted) > 1e-3 * np.abs(wanted) + 1e-4 * middle
    alike = (np.isnan(found) & np.isnan(wanted)) | (found == wanted)
    return np.asarray(np.where(finite & np.isfinite(found), far, ~alike))


def spread(program: Program, path: Path, case: Case, wanted: Arrays) -> Arrays:
    """By how much each value moves with the rounding: eager float64, and inputs a last place away; 0 where unknown."""
    noise = [np.zeros(w.shape) for w in wanted]
    same, steps = nullcontext(), (3e-7, -3e-7)
    runs: list[tuple[Any, AbstractContextManager[Any]]] = [(of_floats(case.inputs, Tensor.double), same)]
    if not is_discrete(case):
        runs += [(of_floats(case.inputs, lambda x, step=step: x * (1 + step)), same) for step in steps]
    runs += [(case.inputs, MoveRoundings(step)) for step in steps]
    for inputs, mode in runs:
        try:
            with mode:
                moved = run_eager(program, path, inputs)
        except Exception:  # the program may refuse its own inputs in float64, in any way it likes
            continue
        for place, (there, here) in enumerate(zip(moved, wanted, strict=False)):
            if tuple(there.shape) == here.shape:
                with np.errstate(all="ignore"):
                    gap = np.abs(there.numpy().astype(np.float64) - here.astype(np.float64))
                noise[place] = np.fmax(noise[place], gap)
    return noise


class MoveRoundings(TorchDispatchMode):
    """While active, every sigmoid is off by the rounding of 1/2, from which engines compute it, however small it is.

    Every sum is off by a last place of the sum of the absolute values, and every mean likewise: what is left of values
    that cancel out is rounding alone. Of functions that libraries compute a last place apart, every other value is off:
    torch itself computes the last values of a tensor by other code, so equal values may come to unequal ones.

    Args:
        step: Its change, relative to 1/2.
    """

    def __init__(self, step: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self._step = step

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        packet = getattr(func, "overloadpacket", None)
        if packet is torch.ops.aten.sigmoid:
            return result + self._step / 2
        if packet in (torch.ops.aten.mean, torch.ops.aten.sum) and result.is_floating_point():
            return result + func(args[0].abs(), *args[1:], **kwargs) * (self._step / 2)
        if packet in BY_LIBRARIES and result.is_floating_point():
            return result * (1 + (torch.arange(result.numel()) % 2).reshape(result.shape) * self._step)
        return result + args[0] * (self._step / 2) if packet is torch.ops.aten.silu else result


BY_LIBRARIES = {
    getattr(torch.ops.aten, name)
    for names in ("tanh exp expm1 log log1p sin cos tan", "erf gelu pow softplus mish")
    for name in names.split()
}
"""Functions of single values whose last place depends on the library that computes them."""


def is_rounding(found: Arrays, wanted: Arrays, noise: Arrays) -> bool:
    """Whether every difference is one that eager torch's own rounding makes at that value, which is the noise there."""
    for f, w, moved in zip(found, wanted, noise, strict=True):
        with np.errstate(all="ignore"):
            gap = np.abs(f.astype(np.float64) - w.astype(np.float64))
            largest = float(np.max(np.abs(w[np.isfinite(w)]), initial=0)) if w.dtype.kind == "f" else 0.0
            if bool((differ(f, w) & ~(gap <= 10 * moved + 2e-6 * largest)).any()):
                return False
    return True


def describe(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> str:
    """The first difference of two outputs; empty if there is none."""
    if found.shape != wanted.shape:
        return f"shape {found.shape}, wanted {wanted.shape}"
    if found.dtype != wanted.dtype:
        return f"{found.dtype}, wanted {wanted.dtype}"
    wrong = differ(found, wanted)
    if not wrong.any():
        return ""
    return f"{int(wrong.sum())} of {wrong.size} differ, e.g. {found[wrong].flat[0]} for {wanted[wrong].flat[0]}"


def compare_case(program: Program, path: Path, session: Any, case: Case) -> tuple[str, str] | None:
    """The kind of difference and what it is: `("", "")` for none; None where eager torch refuses the case."""
    try:
        wanted = [t.numpy() for t in run_eager(program, path, case.inputs)]
    except Exception:  # a random program refuses inputs in any way it likes
        return None
    feeds = {i.name: x.numpy() for i, x in zip(program.inputs, case.inputs, strict=True)}
    try:
        found = [np.asarray(a) for a in session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})]
    except Exception as error:
        return "fails", f"{case.name}: {told(error)}"
    if len(found) != len(wanted):
        return "wrong", f"{case.name}: {len(found)} outputs, wanted {len(wanted)}"
    texts = [text for f, w in zip(found, wanted, strict=True) if (text := describe(f, w))]
    if not texts:
        return "", ""
    same_form = all(f.shape == w.shape and f.dtype == w.dtype for f, w in zip(found, wanted, strict=True))
    kind = "rounding" if same_form and is_rounding(found, wanted, spread(program, path, case, wanted)) else "wrong"
    return kind, f"{case.name}: {texts[0]}"


def told(error: BaseException) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]


def sort_refusal(text: str) -> str:
    """What kind of refusal a message is."""
    for pattern, reason in REASONS:
        if re.search(pattern, text):
            return reason
    return re.sub(r"[\d'\"]+", "#", re.sub(r"\S+\.py:\d+: ", "", text))[:70]


def judge_file(program: Program, path: Path, data: bytes) -> Judgement:
    """Compares a file with eager torch on every case that eager torch takes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads, options.inter_op_num_threads = 4, 1, 1
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return Judgement("fails-at-legal-size", f"onnxruntime does not load it: {told(error)}")
    told_of: dict[str, list[str]] = {}
    count = 0
    for case in name_cases(program):
        compared = compare_case(program, path, session, case)
        if compared is not None:
            count += 1
            told_of.setdefault(compared[0], []).append(compared[1])
    for kind, verdict in KINDS:
        if kind in told_of:
            return Judgement(verdict, "; ".join(told_of[kind][:4]), cases=count)
    return Judgement("right", cases=count)


def export_stock(program: Program, path: Path, exporter: str) -> bytes:
    """The file of torch's own exporter.

    Raises:
        Exception: Whatever the exporter raises.
    """
    model, inputs = fresh_model(program, path), example_inputs(program)
    stream = BytesIO()
    names = [i.name for i in program.inputs]
    if exporter == "torchscript":
        torch.onnx.export(model, inputs, stream, dynamo=False, input_names=names, dynamic_axes=program.dynamic)
        return stream.getvalue()
    dims = {name: torch.export.Dim(name) for name in program.sizes}
    shapes = {i.name: {axis: dims[name] for axis, name in i.dynamic.items()} for i in program.inputs}
    made = torch.onnx.export(
        model, inputs, dynamo=True, input_names=names, dynamic_shapes=shapes if dims else None, verbose=False
    )
    assert made is not None
    data: bytes = made.model_proto.SerializeToString()
    return data


def judge_stock(program: Program, path: Path, exporter: str) -> Judgement:
    """What torch's own exporter makes of a program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            data = export_stock(program, path, exporter)
        except Exception as error:
            return Judgement("refused", told(error), "stock refuses")
    return judge_file(program, path, data)


def judge_program(program: Program, path: Path, exporter: str, *, stock: bool = False) -> Judgement:
    """Exports a program with export_compat and judges the file.

    Args:
        program: What to judge.
        path: Its file, from write_program.
        exporter: "torchscript", "dynamo" or "auto".
        stock: Whether a refusal is held against stock torch: it is "refused, needlessly" where stock's file is right.
    """
    inputs = example_inputs(program)
    try:
        run_eager(program, path, inputs)
    except Exception as error:
        return Judgement("eager-refuses", told(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = export_compat(
                fresh_model(program, path), inputs, dynamic=program.dynamic or None, exporter=exporter
            )
        except CompatError as error:
            text = " ".join(str(error).split())
            needless = stock and judge_stock(program, path, exporter).verdict == "right"
            return Judgement("refused, needlessly" if needless else "refused", text[:1500], sort_refusal(text))
        except Exception as error:
            return Judgement("other exception", told(error))
    return judge_file(program, path, result.model_bytes)
