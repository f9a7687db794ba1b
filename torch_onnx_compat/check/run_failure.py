"""explain_run(): why onnxruntime refuses some inputs, and the nearest inputs that it accepts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.check.file_log import scope_of
from torch_onnx_compat.diagnosis import hint
from torch_onnx_compat.places import plain
from torch_onnx_compat.session import open_session

_TYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16"}
_TRIES = 24
"""How many other inputs are tried in search of one that works."""


@dataclass(frozen=True)
class RunFailure:
    """Why a file does not run on some inputs.

    Attributes:
        message: onnxruntime's error, in one line.
        problems: The errors of the inputs: the given size, type or name, and the one that the file wants.
        node: The node that failed, if the run came so far.
        operator: Operator of this node.
        module: Path of the module that the node comes from.
        axes: Each input's axes: a name where it is dynamic, a number where it is fixed.
        given: Shapes of the given inputs.
        works: Shapes near the given ones that the file runs on; empty where none was found.
        advice: Cause and action, where the error is a known one.
    """

    message: str
    problems: tuple[str, ...] = ()
    node: str = ""
    operator: str = ""
    module: str = ""
    axes: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    given: dict[str, tuple[int, ...]] = field(default_factory=dict)
    works: dict[str, tuple[int, ...]] = field(default_factory=dict)
    advice: str = ""

    def __str__(self) -> str:
        lines = list(self.problems)
        if self.node:
            lines.append(f"{self.operator} node {self.node!r} of module {self.module or 'the model itself'!r} failed")
        if not lines:
            lines.append("the file does not run on these inputs")
        shapes = ", ".join(f"{n!r} {self.given.get(n, 'nothing')} for {_axes(a)}" for n, a in self.axes.items())
        works = ", ".join(f"{name!r} {shape}" for name, shape in self.works.items())
        parts = [
            "; ".join(lines),
            f"given {shapes}",
            f"it runs on {works}" if works else "no inputs near these were found that it runs on",
            f"onnxruntime: {self.message}" if self.message else "",
            f"diagnosis: {self.advice}" if self.advice else "",
        ]
        return ".\n  ".join(line.rstrip(".") for line in parts if line) + "."


def explain_run(
    file: str | os.PathLike[str] | bytes, feeds: Mapping[str, Array], error: BaseException | None = None
) -> RunFailure | None:
    """Explains why a file does not run on some inputs.

    Args:
        file: Path, or serialised model.
        feeds: The inputs by name.
        error: onnxruntime's error; the file is run to find it if it is not given.

    Returns:
        The reason; None if the file does run.
    """
    session = open_session(file)
    feeds = {name: np.asarray(array) for name, array in feeds.items()}
    error = error or _error(session, feeds)
    if error is None:
        return None
    message = " ".join(plain(str(error)).split())
    wanted = {value.name: value for value in session.get_inputs()}
    axes = {name: tuple(value.shape) for name, value in wanted.items()}
    node = find_failed_node(file, message)
    return RunFailure(
        message=message[:400],
        problems=tuple(_problems(wanted, feeds)),
        node=(node.name or node.output[0]) if node else "",
        operator=node.op_type if node else "",
        module=scope_of(node) if node else "",
        axes=axes,
        given={name: tuple(array.shape) for name, array in feeds.items()},
        works=_nearest_shapes(session, wanted, feeds),
        advice=hint(message),
    )


def _axes(axes: tuple[int | str, ...]) -> str:
    return "(" + ", ".join(f"{axis} (dynamic)" if isinstance(axis, str) else str(axis) for axis in axes) + ")"


def _error(session: onnxruntime.InferenceSession, feeds: Mapping[str, Array]) -> Exception | None:
    try:
        session.run(None, dict(feeds))
    except Exception as error:  # onnxruntime's errors have no base of their own
        return error
    return None


def _problems(wanted: Mapping[str, Any], feeds: Mapping[str, Array]) -> Iterator[str]:
    known = ", ".join(map(repr, wanted))
    yield from (f"the file has no input {name!r}; it has {known}" for name in feeds if name not in wanted)
    sizes: dict[str, tuple[int, str]] = {}
    for name, value in wanted.items():
        if name not in feeds:
            yield f"input {name!r} is missing"
            continue
        array = feeds[name]
        if array.dtype != _dtype(value.type):
            yield f"input {name!r} is {array.dtype}, wanted {_dtype(value.type)}"
        if array.ndim != len(value.shape):
            yield f"input {name!r} has {array.ndim} axes, wanted {len(value.shape)}"
        else:
            yield from _wrong_sizes(name, value.shape, array.shape, sizes)


def _wrong_sizes(
    name: str, axes: Sequence[Any], shape: tuple[int, ...], sizes: dict[str, tuple[int, str]]
) -> Iterator[str]:
    for dim, (axis, size) in enumerate(zip(axes, shape, strict=True)):
        if isinstance(axis, int) and axis != size:
            yield f"input {name!r} has {size} on axis {dim}, which is fixed at {axis}"
        elif isinstance(axis, str) and sizes.setdefault(axis, (size, name))[0] != size:
            yield f"input {name!r} has {size} on axis {dim} ({axis!r}), but {sizes[axis][1]!r} has {sizes[axis][0]}"


def _dtype(kind: str) -> np.dtype[Any]:
    name = _TYPES.get(kind, kind.removeprefix("tensor(").removesuffix(")"))
    return np.dtype(name if name in np.sctypeDict else "float32")


def find_failed_node(file: str | os.PathLike[str] | bytes, message: str) -> onnx.NodeProto | None:
    """The node that onnxruntime's error names; None where the file has no such node, as after a fusion."""
    found = re.search(r"running (\w+) node\. Name:'([^']*)'", message)
    if found is None:
        return None
    if isinstance(file, bytes):
        model = onnx.load_model_from_string(file)
    else:
        model = onnx.load(Path(file), load_external_data=False)
    nodes = {node.name: node for node in model.graph.node}
    only = [node for node in model.graph.node if node.op_type == found[1]]
    return nodes.get(found[2]) or (only[0] if len(only) == 1 else None)


def _nearest_shapes(
    session: onnxruntime.InferenceSession, wanted: Mapping[str, Any], feeds: Mapping[str, Array]
) -> dict[str, tuple[int, ...]]:
    sizes = _sizes(wanted, feeds)
    for candidate in islice(_candidates(sizes), _TRIES):
        tried = {name: _make_input(value, candidate, feeds.get(name)) for name, value in wanted.items()}
        if _error(session, tried) is None:
            return {name: array.shape for name, array in tried.items()}
    return {}


def _sizes(wanted: Mapping[str, Any], feeds: Mapping[str, Array]) -> dict[str, int]:
    """The size given for each dynamic axis."""
    sizes: dict[str, int] = {}
    for name, value in wanted.items():
        given = feeds[name].shape if name in feeds and feeds[name].ndim == len(value.shape) else (1,) * len(value.shape)
        for dim, axis in enumerate(value.shape):
            if not isinstance(axis, int):
                sizes.setdefault(_axis(name, dim, axis), given[dim])
    return sizes


def _axis(name: str, dim: int, axis: Any) -> str:
    return axis if isinstance(axis, str) else f"{name}.{dim}"


def _candidates(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The given sizes, then one axis at a time, nearest sizes first, then all axes at multiples of powers of two."""
    yield dict(sizes)
    steps = sorted({step for power in (1, 2, 4, 8, 16, 32) for step in (-power, power)}, key=abs)
    for axis, size in sizes.items():
        near = {size + step for step in steps[:4]} | {1} | {max(-(-size // m), 1) * m for m in (8, 16, 32)}
        for other in sorted(near - {size}, key=lambda s: abs(s - size)):
            if other > 0:
                yield {**sizes, axis: other}
    for multiple in (2, 4, 8, 16, 32):
        yield {axis: max(round(size / multiple), 1) * multiple for axis, size in sizes.items()}


def _make_input(value: Any, sizes: Mapping[str, int], given: Array | None) -> Array:
    """An input of the wanted type and shape, filled with the given values, which are repeated or cut."""
    shape = [
        axis if isinstance(axis, int) else sizes[_axis(value.name, dim, axis)] for dim, axis in enumerate(value.shape)
    ]
    source = np.zeros(1) if given is None or not given.size else given.reshape(-1)
    return np.resize(source, shape).astype(_dtype(value.type))
