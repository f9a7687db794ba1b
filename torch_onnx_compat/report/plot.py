"""The error of each layer as a drawing: one mark a layer, on a logarithmic scale, and what rounding explains."""

from __future__ import annotations

import math
from html import escape
from typing import Any

_WIDTH, _HEIGHT = 360, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 10, 30
_LEAST = 1e-9
"""Smaller errors are drawn here: a logarithm has no zero."""
_STYLE = """
svg { background: #fff; font: 9px system-ui, sans-serif; } text { fill: #444; }
.grid { stroke: #ccc; stroke-width: .5; }
.limit { fill: none; stroke: #888; stroke-dasharray: 4 3; } .right { fill: #1f6f8b; }
.wrong { fill: none; stroke: #a3151b; stroke-width: 2; }
"""
"""Of a picture that stands alone; in a page, the page's style holds."""


def plot(layers: list[dict[str, Any]]) -> str:
    """Draws the layers in the order in which they ran, as a figure of a page.

    Args:
        layers: Module, error and tolerance of each, relative to the largest value.
    """
    drawn, caption = _draw(layers, "")
    return (
        f"<figure>{drawn}<figcaption>{escape(caption)} Marks: largest difference over the layer's largest value. "
        f"Dashed: what rounding explains.</figcaption></figure>"
    )


def draw(layers: list[dict[str, Any]]) -> str:
    """The same as a picture that stands alone, an SVG whose title is what it shows in words.

    Args:
        layers: As for `plot`; where there are none, the picture says so.
    """
    if layers:
        return _draw(layers, _STYLE)[0]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"><style>{_STYLE}</style>'
        f'<text x="{_LEFT}" y="{_HEIGHT // 2}">no value inside was compared</text></svg>'
    )


def _draw(layers: list[dict[str, Any]], style: str) -> tuple[str, str]:
    """The drawing, and what it shows in words."""
    errors = [_finite(layer["error"]) for layer in layers]
    limits = [_finite(layer["tolerance"]) for layer in layers]
    low = math.floor(math.log10(min(*errors, *limits)))
    high = max(math.ceil(math.log10(max(*errors, *limits))), low + 1)
    wrong = [layer for layer in layers if layer["error"] > layer["tolerance"]]
    worst = max(layers, key=lambda layer: _finite(layer["error"]) / _finite(layer["tolerance"]))
    caption = (
        f"{len(wrong)} of {len(layers)} layers are off by more than rounding, the first at "
        f"{wrong[0]['module'] or 'the model itself'}."
        if wrong
        else f"All {len(layers)} layers are within what rounding explains; the nearest to it is "
        f"{worst['module'] or 'the model itself'}."
    )
    marks = "".join(
        _mark(layer, _x(i, len(layers)), _y(error, low, high))
        for i, (layer, error) in enumerate(zip(layers, errors, strict=True))
    )
    line = " ".join(f"{_x(i, len(layers)):.1f},{_y(limit, low, high):.1f}" for i, limit in enumerate(limits))
    own = 'xmlns="http://www.w3.org/2000/svg" ' if style else ""
    head = f"<title>{escape(caption)}</title><style>{style}</style>" if style else ""
    drawn = (
        f'<svg {own}viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(caption)}">'
        f'{head}{_axes(low, high, len(layers))}<polyline class="limit" points="{line}"/>{marks}</svg>'
    )
    return drawn, caption


def _finite(value: float) -> float:
    return min(max(value, _LEAST), 1e9) if value == value else 1e9


def _x(index: int, count: int) -> float:
    return _LEFT + (index + 0.5) * (_WIDTH - _LEFT - _RIGHT) / count


def _y(value: float, low: int, high: int) -> float:
    share = (math.log10(value) - low) / (high - low)
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _mark(layer: dict[str, Any], x: float, y: float) -> str:
    title = f"<title>{escape(layer['module'] or 'the model itself')}: {layer['error']:.2g}</title>"
    if layer["error"] > layer["tolerance"]:  # told by shape as well as by colour
        return f'<path class="wrong" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0-8l-8 8">{title}</path>'
    return f'<circle class="right" cx="{x:.1f}" cy="{y:.1f}" r="2.5">{title}</circle>'


def _axes(low: int, high: int, count: int) -> str:
    step = max(1, -(-(high - low) // 6))
    lines = []
    for power in range(low, high + 1, step):
        y = _y(10.0**power, low, high)
        lines.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>'
        )
    ends = (
        f'<text x="{_LEFT}" y="{_HEIGHT - 10}">first layer</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 10}" text-anchor="end">layer {count}</text>'
    )
    return "".join(lines) + ends
