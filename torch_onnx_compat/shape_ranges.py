"""The shapes that an engine is built for: of each input with dynamic axes the smallest, the usual and the largest."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch_onnx_compat.check.verdicts import AxisProof
from torch_onnx_compat.inputs.inputs import Axis, Inputs

_PLAIN = re.compile(r"[\w./-]+")
_COMMANDS = {"tensorrt-rtx": "tensorrt_rtx", "tensorrt": "trtexec"}
"""NVIDIA's command line programs, by the beginning of the target's name."""


@dataclass(frozen=True)
class ShapeRange:
    """The shapes of one input.

    Attributes:
        least: The smallest shape.
        usual: The example's, for which an engine chooses its kernels.
        most: The largest shape.
    """

    least: tuple[int, ...]
    usual: tuple[int, ...]
    most: tuple[int, ...]


def shape_ranges(inputs: Inputs, proofs: Sequence[AxisProof] = ()) -> dict[str, ShapeRange]:
    """The shapes of the inputs that have dynamic axes.

    An axis goes from the smallest to the largest size that the file was right at, or to the bound that the caller gave.
    An axis that was not tried and has no bound keeps the example's size.

    Args:
        inputs: The example with its axes.
        proofs: What is known of each axis.
    """
    usual = inputs.sizes()
    bounds = inputs.bounds()
    tried = {proof.name: proof.tried for proof in proofs}
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for name, size in usual.items():
        low, high = bounds.get(name, (1, None))
        sizes = (*tried.get(name, ()), size)
        least[name] = min(sizes) if high is None or name in tried else min(low, size)
        most[name] = max(sizes) if high is None else high
    found = {}
    for name, tensor, axes in zip(inputs.names, inputs.tensors, inputs.axes, strict=True):
        if axes:
            shape = tuple(tensor.shape)
            # A derived axis such as "all - new" falls where an axis that it follows rises.
            ends = [_at(shape, axes, sizes) for sizes in (least, most)]
            corners = [_at(shape, axes, corner) for corner in _corners(axes, least, most)]
            low_shape, high_shape = (
                tuple(pick(sizes) for sizes in zip(*ends, *corners, strict=True)) for pick in (min, max)
            )
            found[name] = ShapeRange(low_shape, shape, high_shape)
    return found


def _corners(axes: Mapping[int, Axis], least: Mapping[str, int], most: Mapping[str, int]) -> list[dict[str, int]]:
    """For each derived axis with falling terms, the sizes at which it is smallest and largest."""
    found = []
    for axis in axes.values():
        if any(factor < 0 for _, factor in axis.terms):
            falls = {name for name, factor in axis.terms if factor < 0}
            found.append({name: most[name] if name in falls else least[name] for name in least})
            found.append({name: least[name] if name in falls else most[name] for name in least})
    return found


def _at(shape: Sequence[int], axes: Mapping[int, Axis], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(max(axes[i].size(sizes), 0) if i in axes else size for i, size in enumerate(shape))


def tensorrt_command(target: str, file: str, ranges: Mapping[str, ShapeRange], inputs: Collection[str]) -> str | None:
    """The command line that builds a file for TensorRT; None for other targets.

    Args:
        target: The target's name.
        file: The file.
        ranges: The shapes of its inputs that have dynamic axes.
        inputs: The file's inputs; ranges of others are left out.
    """
    program = next((program for name, program in _COMMANDS.items() if target.startswith(name)), None)
    if program is None:
        return None
    words = [program, f"--onnx={file}", f"--saveEngine={Path(file).with_suffix('.engine')}"]
    held = {name: ranges[name] for name in inputs if name in ranges}
    for flag, pick in (("min", "least"), ("opt", "usual"), ("max", "most")):
        shapes = [f"{_named(name)}:{'x'.join(map(str, getattr(r, pick)))}" for name, r in held.items()]
        if shapes:
            words.append(f"--{flag}Shapes={','.join(shapes)}")
    return shlex.join(words)


def _named(name: str) -> str:
    """An input's name as the programs take it: in single quotes if it holds anything but letters, digits, _ . / -."""
    return name if _PLAIN.fullmatch(name) else f"'{name}'"
