"""What the command line's options mean: sizes, shapes and axes."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch_onnx_compat.cli.console import UsageError, usage
from torch_onnx_compat.precision.formats import Half, half_from_keyword


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
    """``480x640`` as height and width."""
    if text is None:
        return None
    sizes = _sizes(text)
    if len(sizes) != 2:
        raise UsageError(f"--size {text!r}: wanted height x width in pixels, e.g. 480x640.")
    return sizes[0], sizes[1]


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


def precision(name: str, limit: float | None, keep: str | None, *, narrow_io: bool) -> Half | None:
    """``float16`` with the options that belong to it as a value; None for float32."""
    with usage():
        half = half_from_keyword(name)
        if half is not None:
            return replace(half, limit=limit, keep=places(keep) or (), keep_io=not narrow_io)
    given = {"--limit": limit is not None, "--keep-float32": keep is not None, "--narrow-io": narrow_io}
    for option, is_given in given.items():
        if is_given:
            raise UsageError(f"{option} belongs to --precision float16 or bfloat16.")
    return None


def dynamic(texts: list[str] | None) -> str | Mapping[str, Any] | None:
    """``["batch"]`` as it is; ``["image:0=batch,2=height"]`` as ``{"image": {0: "batch", 2: "height"}}``."""
    if not texts:
        return None
    if len(texts) == 1 and texts[0].isidentifier():
        return texts[0]
    axes: dict[str, dict[int, str]] = {}
    for text in texts:
        name, colon, pairs = text.partition(":")
        for pair in pairs.split(","):
            found = re.fullmatch(r"(-?\d+)=(\w+)", pair)
            if not colon or not name or found is None:
                raise UsageError(
                    f"--dynamic {text!r}: wanted 'batch' alone, or an input with axes and their names, "
                    f"e.g. image:0=batch,2=height."
                )
            axes.setdefault(name, {})[int(found[1])] = found[2]
    return axes
