"""Compares the file of a random call with eager torch, by a comparison of its own."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fuzz.calls import OTHER_SIZES, VARYING, Call, Model
from torch_onnx_compat import CompatError, ExportResult, export_compat
from torch_onnx_compat.catalogue.entry import Exporter
from torch_onnx_compat.check.perturb import BreakTies
from torch_onnx_compat.errors import VerificationError

RIGHT, WRONG, SPECIAL, CAUGHT = "right", "WRONG", "special only", "caught"
REFUSED, CRASH, EAGER = "refused", "crash", "eager refuses"
VERDICTS = (RIGHT, WRONG, SPECIAL, CAUGHT, REFUSED, CRASH, EAGER)
TOLERANCES = {torch.float16: (2e-2, 1e-2), torch.float32: (1e-3, 1e-4), torch.float64: (1e-6, 1e-7)}
"""Of a dtype, what a value may be off relative to itself, and relative to the median of the output."""


@dataclass(frozen=True)
class Judged:
    """What came of a call.

    Attributes:
        seed: The call's.
        name: Its function.
        call: The call with its arguments.
        exporter: The exporter that wrote it.
        verdict: One of VERDICTS. "caught" is a refusal since the file was wrong.
        detail: Where the file is wrong, or why there is none.
        special: What differs at special values.
        seconds: How long it took.
    """

    seed: int
    name: str
    call: str
    exporter: str
    verdict: str
    detail: str
    special: list[str]
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """As a line of JSON holds it."""
        return asdict(self)


def judge(seed: int, call: Call, exporter: Exporter) -> Judged:
    """Exports a call, and compares its file with eager torch at other values and sizes than those of the export."""
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict, detail, special = _verdict(seed, call, exporter)
    seconds = round(time.monotonic() - start, 2)
    return Judged(seed, call.name, str(call), exporter, verdict, detail[:600], special, seconds)


def _verdict(seed: int, call: Call, exporter: Exporter) -> tuple[str, str, list[str]]:
    model, generator = Model(call).eval(), torch.Generator().manual_seed(seed)
    example = tuple(x.draw(generator) for x in call.inputs)
    try:
        _eager(model, example)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        return EAGER, _told(error), []
    names = [f"x{i}" for i in range(len(example))]
    try:
        result = export_compat(model, example, exporter=exporter, input_names=names, dynamic=call.axes())
    except VerificationError as error:
        return CAUGHT, _told(error), []
    except CompatError as error:
        return REFUSED, _told(error), []
    except Exception as error:  # any other is a fault of the package
        return CRASH, _told(error), []
    wrong = [text for text in _ordinary(model, call, result, example, generator) if text]
    special = [f"{label}: {text}" for label, text in _special(model, call, result, generator) if text]
    if wrong:
        return WRONG, "; ".join(wrong), special
    return (SPECIAL, special[0], special) if special else (RIGHT, "", [])


def _ordinary(
    model: Model, call: Call, result: ExportResult, example: Sequence[Tensor], generator: torch.Generator
) -> Iterator[str]:
    yield _difference(model, result, example)
    for _ in range(3):
        yield _difference(model, result, [x.draw(generator) for x in call.inputs])
    for size in OTHER_SIZES if call.varies else ():
        text = _difference(model, result, [x.draw(generator, size) for x in call.inputs])
        yield text and f"at size {size} for {VARYING}: {text}"


def _special(model: Model, call: Call, result: ExportResult, generator: torch.Generator) -> Iterator[tuple[str, str]]:
    labels = ("zeros", "repeated, sorted", "special", "some special")
    for way in (0, 1, 2, 2, 3, 3):
        inputs = [x.draw_special(generator, way) for x in call.inputs]
        yield labels[way], _difference(model, result, inputs)
    yield "wide integers", _difference(model, result, [x.draw_wide(generator) for x in call.inputs])


def _eager(model: Model, inputs: Sequence[Tensor]) -> list[Any]:
    with torch.no_grad():
        return [r for r in pytree.tree_leaves(model(*[x.clone() for x in inputs])) if isinstance(r, Tensor)]


def _difference(model: Model, result: ExportResult, inputs: Sequence[Tensor]) -> str:
    """How the file differs from eager torch; empty if it does not, or if eager torch refuses."""
    try:
        wanted = _eager(model, inputs)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        return ""
    shapes = [tuple(x.shape) for x in inputs]
    try:
        found = pytree.tree_leaves(result(*inputs))
    except Exception as error:  # whatever onnxruntime raises is a verdict on the file
        return f"the file fails at {shapes}: {_told(error)}"
    text = _compare_all(found, wanted, shapes)
    if text and any(not _compare_all(found, other, shapes) for other in _with_ties_broken(model, inputs)):
        return ""
    return text


def _with_ties_broken(model: Model, inputs: Sequence[Tensor]) -> Iterator[list[Any]]:
    """Eager torch's results in the orders of equal values that it leaves open; none for a call that does not sort."""
    for lowest_first in (True, False):
        with BreakTies(lowest_first=lowest_first) as mode:
            results = _eager(model, inputs)
        if mode.has_ties:
            yield results


def _compare_all(found: list[Any], wanted: list[Any], shapes: list[tuple[int, ...]]) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} outputs, wanted {len(wanted)}"
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        text = compare_values(torch.as_tensor(a), b)
        if text:
            return f"output {i} at {shapes}: {text}"
    return ""


def compare_values(found: Tensor, wanted: Tensor) -> str:
    """How two tensors differ, empty if they do not: integers and places of NaN and infinities exactly.

    Args:
        found: The file's.
        wanted: Eager torch's.
    """
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{found.dtype} {tuple(found.shape)}, wanted {wanted.dtype} {tuple(wanted.shape)}"
    if not wanted.dtype.is_floating_point:
        return _first(found.numpy(), wanted.numpy(), (found != wanted).numpy())
    relative, absolute = TOLERANCES[wanted.dtype]
    a, b = found.double().numpy(), wanted.double().numpy()
    finite = np.isfinite(b)
    scale = float(np.median(np.abs(b[finite]))) if finite.any() else 0.0
    with np.errstate(all="ignore"):
        off = np.abs(a - b) > relative * np.abs(b) + absolute * scale + float(torch.finfo(wanted.dtype).tiny)
        different = np.where(finite, off | ~np.isfinite(a), ~((a == b) | (np.isnan(a) & np.isnan(b))))
    return _first(a, b, different)


def _first(found: npt.NDArray[Any], wanted: npt.NDArray[Any], different: npt.NDArray[Any]) -> str:
    count = int(different.sum())
    if not count:
        return ""
    place = tuple(int(i) for i in np.argwhere(different)[0]) if different.ndim else ()
    return f"{count} of {different.size} differ, e.g. {found[place]} for {wanted[place]}"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:500]
