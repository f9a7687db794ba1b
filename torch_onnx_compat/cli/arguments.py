"""What the command line's options mean: sizes, shapes and axes."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torch_onnx_compat.cli.console import UsageError, usage
from torch_onnx_compat.cli.pictures import ENDINGS, picture_input
from torch_onnx_compat.errors import unknown_name

if TYPE_CHECKING:
    from torch_onnx_compat.precision.formats import Half
    from torch_onnx_compat.precision.int8.request import Request
    from torch_onnx_compat.zoo.sample import Sample

AUTO = "auto"
"""The axes that may vary as the model's zoo knows them."""


def text(argument: str) -> str:
    """The argument itself, or what the file of that name or standard input holds.

    Raises:
        UsageError: It is the name of a file that is not there.
    """
    if argument == "-":
        return sys.stdin.read()
    path = Path(argument)
    try:
        if path.is_file():
            return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # too long for a file name
        return argument
    if re.fullmatch(r"\S+\.(txt|log|out|err|md|json)", argument):
        raise UsageError(f"{argument}: no such file.")
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
    if file is not None and not file.is_file():
        raise UsageError(f"{option} {file}: no such file.")
    if file is not None and file.suffix not in (".npz", ".npy"):
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

    from torch_onnx_compat.inputs.inputs import bind

    arrays = read_arrays("--calibration", file)
    with usage():
        example = bind(sample.model, sample.args, sample.kwargs, None)
    batch = example.tensors[0].shape[0] if example.tensors[0].dim() else 1
    dtypes = dict(zip(example.names, (tensor.dtype for tensor in example.tensors), strict=True))
    tensors = {
        name: torch.from_numpy(array).to(dtypes.get(name or example.names[0], torch.float32))
        for name, array in arrays.items()
    }
    items = in_batches(file, tensors, batch)
    return replace(narrower, calibration=[(item[""],) if "" in item else item for item in items])


def in_batches(file: Path, arrays: Mapping[str, Any], batch: int) -> list[dict[str, Any]]:
    """Arrays in batches of so many rows; rows that fill none are left out.

    Raises:
        UsageError: They are of different lengths, or too short for one batch.
    """
    rows = {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()}
    if len(set(rows.values())) != 1 or min(rows.values()) < batch:
        raise UsageError(f"--calibration {file}: rows {rows}; wanted the same number in each, {batch} or more.")
    starts = range(0, min(rows.values()) - batch + 1, batch)
    return [{name: array[i : i + batch] for name, array in arrays.items()} for i in starts]


def with_calibration_of_file(narrower: Half | Request | None, file: Path | None, model: Path) -> Half | Request | None:
    """An Int8 with the arrays of a file, for an ONNX file, in batches of its size; anything else as it is.

    Raises:
        UsageError: The file cannot be read, or its arrays are of different lengths, or too short for one batch.
    """
    from torch_onnx_compat.precision.int8.request import Int8

    if file is None or not isinstance(narrower, Int8):
        return narrower
    from torch_onnx_compat.files.reading import read

    shape = read(model).graph().graph.inputs[0].shape
    batch = shape[0] if shape else 1
    items = in_batches(file, read_arrays("--calibration", file), batch if isinstance(batch, int) else 1)
    return replace(narrower, calibration=[item.get("", item) for item in items])


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
            axes.setdefault(name, {})[int(axis)] = called if low is None else _bounds(text, called, low, high)
    return axes


def _bounds(text: str, name: str, low: str, high: str) -> tuple[str, int, int | None]:
    if int(low) < 1 or (high and int(high) < int(low)):
        raise UsageError(
            f"--dynamic {text!r}: no size is within {low}..{high}; wanted the smallest and the largest one, from 1, "
            f"e.g. ids:1=tokens:1..512."
        )
    return name, int(low), int(high) if high else None


def sizes_by_axis(option: str, texts: list[str] | None, most: int | None = None) -> dict[str, tuple[int, ...]]:
    """``["batch=1,8"]`` as sizes by axis."""
    found = {}
    for text in texts or ():
        name, _, numbers = text.partition("=")
        values = tuple(map(int, numbers.split(","))) if re.fullmatch(r"\d+(,\d+)*", numbers) else ()
        if not name or not values or (most is not None and len(values) > most):
            wanted = "one size, e.g. batch=1" if most == 1 else "sizes, e.g. batch=1,8"
            raise UsageError(f"{option} {text!r}: wanted the name of a dynamic axis and {wanted}.")
        found[name] = values
    return found


def inputs_from(path: Path, file: Path, normalize: Any = None) -> dict[str, Any]:
    """The arrays of an .npz, one for each input; or a picture as the first input of an ONNX file.

    Raises:
        UsageError: The file cannot be read, or holds one array without a name.
    """
    if path.suffix.lower() in ENDINGS:
        return picture_input(path, file, normalize)
    arrays = read_arrays("--input", path)
    if "" in arrays:
        raise UsageError(f"--input {path}: one array without a name; wanted an .npz with one for each input.")
    return arrays


def pairs(option: str, texts: list[str] | None, wanted: str) -> dict[str, str]:
    """``["old=new"]`` as a dict."""
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals or not value:
            raise UsageError(f"{option} {text!r}: wanted {wanted}.")
        found[name] = value
    return found


def attributes(texts: list[str] | None) -> dict[str, dict[str, Any]]:
    """``["Conv_3:pads=[1,1,1,1]"]`` as attributes by node; a value is JSON, or else a text."""
    found: dict[str, dict[str, Any]] = {}
    for text in texts or ():
        parts = re.fullmatch(r"(.+):(\w+)=(.*)", text)
        if parts is None:
            raise UsageError(f"--set {text!r}: wanted a node, an attribute and its value, e.g. Conv_3:pads=[1,1,1,1].")
        node, attribute, value = parts.groups()
        found.setdefault(node, {})[attribute] = _json_or_text(value)
    return found


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def constants(texts: list[str] | None) -> dict[str, Any]:
    """``["training=false"]`` as values by input; a value is JSON, or an .npy file."""
    found: dict[str, Any] = {}
    for name, text in pairs(
        "--constant", texts, "an input and its value, e.g. training=false or table=rows.npy"
    ).items():
        if text.endswith(".npy"):
            found[name] = read_arrays("--constant", Path(text)).get("")
            continue
        found[name] = _json_or_text(text)
        if isinstance(found[name], (str, dict)) or found[name] is None:
            raise UsageError(f"--constant {name}={text}: wanted a number, a list of numbers in JSON, or an .npy file.")
    return found


def fields(option: str, text: str | None, kind: type[Any]) -> Any:
    """``"mean=0.5,0.4,0.4 scale=1/255"`` as an object of a dataclass; None for no text.

    Raises:
        UsageError: A name is none of its fields, or a value makes no sense.
    """
    if text is None:
        return None
    known = [field.name for field in dataclasses.fields(kind)]
    values = {}
    for name, value in pairs(option, text.split(), "pairs such as scale=1/255, with spaces between").items():
        if name not in known:
            raise UsageError(f"{option}: {unknown_name('part', name, known)}")
        values[name] = _plain(value)
    try:
        with usage():
            return kind(**values)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{option} {text!r}: {error}.") from error


PREPROCESS = ("keep", "extract", "fold")
POSTPROCESS = ("keep", "strip", "nms", "nms-dense", "efficient-nms")


def preprocess(text: str, known: Sequence[str] = PREPROCESS) -> Any:
    """``fold`` as it is, ``mean=0.5,0.4,0.4 scale=1/255`` as a Normalize."""
    if "=" not in text:
        return _known("preprocess", text, known)
    from torch_onnx_compat.surgery.around_model.normalize import Normalize

    return fields("--preprocess", text, Normalize)


def postprocess(text: str, known: Sequence[str] = POSTPROCESS) -> Any:
    """``strip`` as it is, ``form=nms boxes=0 scores=1`` as Detections."""
    if "=" not in text:
        return _known("postprocess", text, known)
    from torch_onnx_compat.surgery.around_model.detections import Detections

    return fields("--postprocess", text, Detections)


def _known(option: str, text: str, known: Sequence[str]) -> str:
    if text not in known:
        raise UsageError(f"--{option}: {unknown_name(option, text, known)}")
    return text


def _plain(text: str) -> Any:
    """A number, a fraction, a size, a list of numbers, yes or no, or else the text."""
    if text in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text]
    if _sizes(text) and "x" in text:
        return _sizes(text)
    if "," in text:
        return [_plain(part) for part in text.split(",")]
    found = re.fullmatch(r"(-?[\d.]+(?:e-?\d+)?)(?:/([\d.]+))?", text)
    if found is None:
        return text
    number, divisor = found.groups()
    return float(number) / float(divisor) if divisor else int(number) if number.lstrip("-").isdigit() else float(number)
