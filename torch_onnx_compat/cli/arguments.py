"""What the command line's options mean: sizes, shapes and axes."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torch_onnx_compat.cli.console import UsageError, usage
from torch_onnx_compat.errors import unknown_name

if TYPE_CHECKING:
    from torch_onnx_compat.precision.formats import Half
    from torch_onnx_compat.precision.int8.request import Request
    from torch_onnx_compat.zoo.sample import Sample

AUTO = "auto"
"""The axes that may vary as the model's zoo knows them."""


def text(argument: str) -> str:
    """The argument itself, or what the file of that name or standard input holds."""
    if argument == "-":
        return sys.stdin.read()
    path = Path(argument)
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else argument
    except OSError:  # too long for a file name
        return argument


def size(text: str | None) -> tuple[int, int] | None:
    """``480x640`` as height and width, ``224`` as those of a square."""
    if text is None:
        return None
    sizes = _sizes(text)
    if not 1 <= len(sizes) <= 2:
        raise UsageError(f"--size {text!r}: wanted height x width in pixels, e.g. 480x640, or 224 for a square.")
    return sizes[0], sizes[-1]


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """``image=1x3x224x224`` as a name and sizes."""
    name, equals, sizes = text.partition("=")
    if not equals or not name or not _sizes(sizes):
        raise UsageError(f"--shape {text!r}: wanted the input's name and its sizes, e.g. image=1x3x224x224.")
    return name, _sizes(sizes)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x"))) if re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text) else ()


def places(text: str | None) -> list[str] | None:
    """``layer3,fc`` as a list of module paths."""
    return None if text is None else [part.strip() for part in text.split(",")]


PRECISIONS = ("float32", "float16", "bfloat16", "int8", "int8-dynamic", "int8-weights", "int4-weights")
METRICS = ("distance", "top1")


def precision(
    name: str,
    limit: float | None,
    keep: str | None,
    calibration: Path | None,
    metric: str | None,
    *,
    narrow_io: bool,
) -> Half | Request | None:
    """``float16`` or ``int8`` with the options that belong to it as a value; None for float32."""
    if name not in PRECISIONS:
        raise UsageError(str(unknown_name("precision", name, PRECISIONS)))
    given = {
        "--limit": (limit is not None, PRECISIONS[1:]),
        "--keep-float32": (keep is not None, PRECISIONS[1:]),
        "--narrow-io": (narrow_io, PRECISIONS[1:3]),
        "--calibration": (calibration is not None, PRECISIONS[3:4]),
        "--metric": (metric is not None, PRECISIONS[3:]),
    }
    misplaced = [(option, formats) for option, (is_given, formats) in given.items() if is_given and name not in formats]
    for option, formats in misplaced:
        raise UsageError(f"{option} belongs to --precision {' or '.join(formats)}.")
    if metric not in (None, *METRICS):
        raise UsageError(str(unknown_name("metric", metric, METRICS)))
    _check_arrays("--calibration", calibration)
    if name == "float32":
        return None
    from torch_onnx_compat.precision.formats import FORMATS

    told: dict[str, Any] = {"limit": limit, "keep": places(keep) or ()}
    if name in given["--narrow-io"][1]:
        told["keep_io"] = not narrow_io
    else:
        told["metric"] = "top1" if metric == "top1" else None
    with usage():
        return FORMATS[name](**told)


def _check_arrays(option: str, file: Path | None) -> None:
    if file is not None and (file.suffix not in (".npz", ".npy") or not file.is_file()):
        raise UsageError(f"{option} {file}: wanted a file .npz or .npy that numpy.savez or numpy.save wrote.")


def with_calibration(narrower: Half | Request | None, file: Path | None, sample: Sample) -> Half | Request | None:
    """An Int8 with the arrays of a file, in batches of the sample's size; anything else as it is.

    Raises:
        UsageError: The file cannot be read, or its arrays are of different lengths, or too short for one batch.
    """
    from torch_onnx_compat.precision.int8.request import Int8

    if file is None or not isinstance(narrower, Int8):
        return narrower
    import torch

    from torch_onnx_compat.inputs import bind

    arrays = read_arrays("--calibration", file)
    with usage():
        example = bind(sample.model, sample.args, sample.kwargs, None)
    rows = {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()}
    batch = example.tensors[0].shape[0] if example.tensors[0].dim() else 1
    if len(set(rows.values())) != 1 or min(rows.values()) < batch:
        raise UsageError(f"--calibration {file}: rows {rows}; wanted the same number in each, {batch} or more.")
    dtypes = dict(zip(example.names, (tensor.dtype for tensor in example.tensors), strict=True))
    tensors = {
        name: torch.from_numpy(array).to(dtypes.get(name or example.names[0], torch.float32))
        for name, array in arrays.items()
    }
    starts = range(0, min(rows.values()) - batch + 1, batch)
    items: list[Any] = [{name: tensor[i : i + batch] for name, tensor in tensors.items()} for i in starts]
    return replace(narrower, calibration=[(item[""],) if "" in item else item for item in items])


def read_arrays(option: str, file: Path) -> dict[str, Any]:
    """The arrays of an .npz file by name; that of an .npy file under no name.

    Raises:
        UsageError: The file cannot be read.
    """
    import zipfile

    import numpy as np

    try:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            return dict(loaded)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{option} {file}: cannot be read as an .npz: {error}.") from error


def dynamic(texts: list[str] | None) -> Literal["batch", "auto"] | Mapping[str, Any] | None:
    """``["batch"]`` and ``["auto"]`` as they are; ``["ids:0=batch,1=tokens:1..512"]`` as a dict by input and axis."""
    if not texts:
        return None
    if texts == ["batch"] or texts == [AUTO]:
        return "batch" if texts == ["batch"] else "auto"
    axes: dict[str, dict[int, Any]] = {}
    for text in texts:
        name, colon, pairs = text.partition(":")
        if text.isidentifier():
            raise UsageError(
                f"--dynamic {text!r}: which axis is that? Wanted 'batch' alone (axis 0 of every input), 'auto', or the "
                f"input and the axis, e.g. image:2={text}."
            )
        for pair in pairs.split(","):
            found = re.fullmatch(r"(-?\d+)=(\w+)(?::(\d+)\.\.(\d*))?", pair)
            if not colon or not name or found is None:
                raise UsageError(
                    f"--dynamic {text!r}: wanted 'batch' alone, or an input with axes and their names, "
                    f"e.g. image:0=batch,2=height, or with bounds, ids:1=tokens:1..512."
                )
            axis, called, low, high = found.groups()
            axes.setdefault(name, {})[int(axis)] = called if low is None else _bounds(called, low, high)
    return axes


def _bounds(name: str, low: str, high: str) -> tuple[str, int, int | None]:
    return name, int(low), int(high) if high else None
