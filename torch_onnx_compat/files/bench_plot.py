"""A picture of timings: a bar for each median, with a line up to the 90th percentile."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isnan

from torch_onnx_compat.files.bench import Bench

_WIDTH, _ROW, _TEXT, _RIGHT, _TOP = 900, 26, 380, 90, 30
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")


def plot(rows: Sequence[Bench]) -> str:
    """The timings as an SVG; engines differ in colour, and rows without numbers say why.

    Args:
        rows: What `bench` returned.
    """
    longest = max((row.p90_ms for row in rows if not isnan(row.p90_ms)), default=1.0) or 1.0
    engines = list(dict.fromkeys(row.engine for row in rows))
    body = "".join(
        _bar(row, _TOP + number * _ROW, longest, _COLOURS[engines.index(row.engine) % len(_COLOURS)])
        for number, row in enumerate(rows)
    )
    height = _TOP + len(rows) * _ROW + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12"><rect width="{_WIDTH}" height="{height}" fill="white"/>'
        f'<text x="{_TEXT}" y="18">milliseconds of a run: median, and line to the 90th percentile</text>{body}</svg>'
    )


def _bar(row: Bench, y: float, longest: float, colour: str) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in row.sizes.items())
    name = " · ".join(part for part in (row.file, row.engine, sizes) if part)
    label = f'<text x="{_TEXT - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>'
    if isnan(row.median_ms):
        why = row.error or f"built in {row.load_ms:.3g} ms of the processor, {row.engine_mb:.3g} MB; not run"
        return f'{label}<text x="{_TEXT}" y="{y + 15}" fill="#aa0000">{escape(why[:70])}</text>'
    scale = (_WIDTH - _TEXT - _RIGHT) / longest
    end, far = _TEXT + row.median_ms * scale, _TEXT + row.p90_ms * scale
    return (
        f'{label}<rect x="{_TEXT}" y="{y + 3}" width="{max(end - _TEXT, 1):.1f}" height="16" fill="{colour}"/>'
        f'<line x1="{end:.1f}" x2="{far:.1f}" y1="{y + 11}" y2="{y + 11}" stroke="{colour}" stroke-width="2"/>'
        f'<text x="{max(end, far) + 5:.1f}" y="{y + 15}">{row.median_ms:.3g}</text>'
    )
