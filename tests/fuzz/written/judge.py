"""The judgement of a program written by hand: its file against eager torch, at many sizes and values."""

from __future__ import annotations

import inspect
import random
import re
import warnings
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from fuzz.judge import Case, Judgement, describe, is_rounding, sort_refusal, told
from fuzz.written.program import Written
from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.inputs.inputs import bind

Array = np.ndarray[Any, Any]
LADDER = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65, 80, 100, 127, 128, 129, 160, 200)
LADDER += (50, 70, 90, 170, 180, 224, 240, 256, 257, 300, 384, 400, 511, 512, 513, 640, 1000, 1024)
MOST = 600_000
"""Elements of a case at most."""

RANDOM = 24
"""Cases whose sizes are all drawn."""


def name_sizes(written: Written) -> Iterator[dict[str, int]]:
    """Each axis on a ladder that has the numbers of the source, then all axes drawn."""
    dice = random.Random(1)
    source = inspect.getsource(written.kind)
    named = {int(text) for text in re.findall(r"(?<![\w.])\d{1,4}(?![\w.])", source)}
    near = {n + step for n in named for step in (-1, 0, 1) if n + step > 0}
    for name, size in written.sizes.items():
        own = {size - 1, size + 1, 2 * size, 2 * size + 1, 3 * size}
        low, high = written.limits.get(name, (1, 1 << 30))
        for other in sorted({*LADDER, *near, *own, low, min(high, 1024)} - {0, size}):
            if low <= other <= high:
                yield {name: other}
    names = list(written.sizes)
    pool = [*LADDER[:27], *(n for n in near if n < 300)]
    if len(names) > 1:
        for number in range(RANDOM):
            chosen = dice.choices(pool, k=len(names))
            sizes = dict(zip(names, chosen if number % 4 else [chosen[0]] * len(names), strict=True))
            if all(low <= sizes[name] <= high for name, (low, high) in written.limits.items()):
                yield sizes


def name_cases(written: Written) -> Iterator[Case]:
    """The example, other values, other sizes, and other values there."""
    yield Case("the example", written.draw())
    kinds = list(dict.fromkeys(name for i in written.inputs for name in i.draws))
    for seed, name in enumerate(kinds, 1):
        yield Case(f"values {name}", written.draw(seed, values=name))
    for seed in range(100, 106):
        yield Case(f"seed {seed}", written.draw(seed))
    for number, sizes in enumerate(name_sizes(written)):
        for values in ("", kinds[number % len(kinds)]):
            inputs = written.draw(1000 + number, sizes, values)
            if sum(x.numel() for x in inputs) <= MOST:
                yield Case(f"{sizes} {values}".strip(), inputs)


def flatten(found: Any) -> list[Tensor]:
    """The tensors of a result, in the order of a file's outputs."""
    if isinstance(found, Tensor):
        return [found]
    if isinstance(found, (bool, int, float)):
        return [torch.tensor(found)]
    if isinstance(found, dict):
        return [t for part in found.values() for t in flatten(part)]
    if isinstance(found, (list, tuple)):
        return [t for part in found for t in flatten(part)]
    if hasattr(found, "__dataclass_fields__"):
        return [t for name in found.__dataclass_fields__ for t in flatten(getattr(found, name))]
    return []


def name_feeds(written: Written, tensors: Sequence[Tensor]) -> dict[str, Array]:
    """The inputs of a file by name; those in the containers of an argument are called after their place in it."""
    args, kwargs = written.arrange(tensors)
    bound = bind(written.make(), args, kwargs, None).real()
    return {name: x.numpy() for name, x in zip(bound.names, bound.tensors, strict=True)}


def run_eager(written: Written, inputs: tuple[Tensor, ...]) -> list[Array]:
    """What a new model returns; floats of 64 bits run it in these.

    Raises:
        Exception: Whatever the model raises.
    """
    model = written.make()
    if any(x.dtype == torch.float64 for x in inputs):
        model = model.double()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args, kwargs = written.arrange([x.clone() for x in inputs])
        return [t.detach().clone().numpy() for t in flatten(model(*args, **kwargs))]


def noises(written: Written, inputs: tuple[Tensor, ...], wanted: list[Array]) -> list[Array]:
    """By how much eager torch's values in 64 bits and at inputs a last place away differ; 0 where that is unknown."""
    noise = [np.zeros(w.shape) for w in wanted]
    floats = [tuple(x * (1 + step) if x.is_floating_point() else x for x in inputs) for step in (3e-7, -3e-7)]
    for moved in (*floats, tuple(x.double() if x.is_floating_point() else x for x in inputs)):
        try:
            others = run_eager(written, moved)
        except Exception:  # a program refuses what it likes
            continue
        for place, (one, other) in enumerate(zip(wanted, others, strict=True)):
            if one.shape == other.shape:
                with np.errstate(all="ignore"):
                    noise[place] = np.fmax(noise[place], np.abs(other.astype(np.float64) - one.astype(np.float64)))
    return noise


def _have_one_form(found: list[Array], wanted: list[Array]) -> bool:
    return all(f.shape == w.shape and f.dtype == w.dtype for f, w in zip(found, wanted, strict=True))


def judge_file(written: Written, data: bytes) -> Judgement:
    """Compares a file with eager torch on every case that eager torch takes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads, options.inter_op_num_threads = 4, 1, 1
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return Judgement("fails-at-legal-size", f"onnxruntime does not load it: {told(error)}")
    wrong, fails, count = list[str](), list[str](), 0
    for case in name_cases(written):
        try:
            wanted = run_eager(written, case.inputs)
        except Exception:  # a program refuses what it likes
            continue
        count += 1
        feeds = name_feeds(written, case.inputs)
        try:
            found = [np.asarray(a) for a in session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})]
        except Exception as error:
            fails.append(f"{case.name}: {told(error)}")
            continue
        texts = [text for f, w in zip(found, wanted, strict=False) if (text := describe(f, w))]
        if len(found) != len(wanted):
            texts = [f"{len(found)} outputs, wanted {len(wanted)}"]
        elif texts and _have_one_form(found, wanted):
            texts = [] if is_rounding(found, wanted, noises(written, case.inputs, wanted)) else texts
        wrong += [f"{case.name}: {texts[0]}"] if texts else []
    if wrong or fails:
        bad = wrong or fails
        detail = f"{len(bad)} of {count} cases: " + "; ".join(bad[:4])
        return Judgement("WRONG" if wrong else "fails-at-legal-size", detail, cases=count)
    return Judgement("right", cases=count)


def judge_stock(written: Written, exporter: str) -> Judgement:
    """What torch's own exporter makes of a program."""
    inputs, names = written.draw(), [i.name for i in written.inputs]
    stream = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if exporter == "torchscript":
                torch.onnx.export(
                    written.make(), inputs, stream, dynamo=False, input_names=names, dynamic_axes=written.dynamic
                )
                return judge_file(written, stream.getvalue())
            dims = dict.fromkeys(written.sizes, torch.export.Dim.DYNAMIC)
            shapes = {i.name: {axis: dims[name] for axis, name in i.dynamic.items()} for i in written.inputs}
            made = torch.onnx.export(
                written.make(), inputs, dynamo=True, input_names=names, dynamic_shapes=shapes, verbose=False
            )
        except Exception as error:
            return Judgement("refused", told(error), "stock refuses")
    assert made is not None
    return judge_file(written, made.model_proto.SerializeToString())


def with_other_example(written: Written, kind: str) -> Written | None:
    """The same program with an example that tells less; None where it has none, or refuses it.

    Args:
        written: The program.
        kind: "equal" sizes of all axes that vary, the "smallest" ones, or the name of a draw of values.
    """
    if kind not in ("equal", "smallest"):
        others = [written.at({}, kind)] if any(kind in i.draws for i in written.inputs) else []
    else:
        sizes = dict.fromkeys((*written.sizes.values(), 6, 8, 16, 32, 5)) if kind == "equal" else range(1, 65)
        others = [written.at(dict.fromkeys(written.sizes, size)) for size in sizes if written.sizes]
    for other in others:
        if other.draw() and any(not torch.equal(*pair) for pair in zip(other.draw(), written.draw(), strict=True)):
            try:
                run_eager(other, other.draw())
            except Exception:  # a program refuses what it likes
                continue
            return other
    return None


def judge(written: Written, exporter: str, *, stock: bool = False, proof: bool = True) -> Judgement:
    """Exports a program and judges the file.

    Args:
        written: The program.
        exporter: "torchscript", "dynamo" or "auto".
        stock: Whether a refusal is "refused, needlessly" where the file of torch's own exporter is right.
        proof: Whether export_compat proves the file.
    """
    how = {} if proof else {"verify": False}
    try:
        run_eager(written, written.draw())
    except Exception as error:
        return Judgement("eager-refuses", told(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            args, kwargs = written.arrange(written.draw())
            result = export_compat(written.make(), args, kwargs=kwargs, exporter=exporter, **written.keywords(), **how)
        except CompatError as error:
            text = " ".join(str(error).split())
            needless = stock and judge_stock(written, exporter).verdict == "right"
            return Judgement("refused, needlessly" if needless else "refused", text[:1500], sort_refusal(text))
        except Exception as error:
            return Judgement("other exception", told(error))
    return judge_file(written, result.model_bytes)
