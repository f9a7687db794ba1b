"""A chart of a sweep: for each exporter a bar, with what became of the models that all of them exported."""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Iterable
from html import escape

from torch_onnx_compat.sweep.job import Row
from torch_onnx_compat.sweep.summary import TITLES

KINDS = ("verified", "wrong", "refused", "other")
_WIDTH, _LEFT, _BAR, _STEP, _TOP = 760, 250, 26, 44, 54
_STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1b1f24; }
.count { font-weight: 600; fill: #ffffff; }
.verified { fill: #11632b; } .wrong { fill: #a3151b; } .refused { fill: #8a5a00; } .other { fill: #4f5863; }
@media (prefers-color-scheme: dark) {
  text { fill: #e7ecf1; } .count { fill: #10151a; }
  .verified { fill: #4cc06f; } .wrong { fill: #ff8f8f; } .refused { fill: #e0b04a; } .other { fill: #9aa5b1; }
}
"""


def count_shared(rows: Iterable[Row]) -> dict[str, Counter[str]]:
    """Verdicts by exporter, of the models that all exporters of these rows exported; empty where there are none."""
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for row in rows:
        found[row.spec, row.size][row.by] = row.verdict if row.verdict in KINDS else "other"
    by = [one for one in TITLES if any(one in verdicts for verdicts in found.values())]
    same = [verdicts for verdicts in found.values() if len(verdicts) == len(by)]
    return {TITLES[one]: Counter(verdicts[one] for verdicts in same) for one in by} if same else {}


def image(counts: dict[str, Counter[str]]) -> str:
    """The chart as an image of a page, with what it shows in words."""
    data = base64.b64encode(draw(counts).encode()).decode()
    return f'<p><img class="chart" alt="{escape(_in_words(counts))}" src="data:image/svg+xml;base64,{data}"></p>'


def _in_words(counts: dict[str, Counter[str]]) -> str:
    return "; ".join(f"{title}: {', '.join(f'{n} {k}' for k, n in c.items())}" for title, c in counts.items())


def draw(counts: dict[str, Counter[str]]) -> str:
    """The chart as SVG, light and dark.

    Args:
        counts: Verdicts by exporter, as `count_shared` gives them.
    """
    whole = next(iter(counts.values())).total()
    ways = {1: "", 2: " two ways", 3: " three ways"}[len(counts)]
    parts = [f'<text x="8" y="24">{whole} models, each exported{ways} and run against eager torch</text>']
    for line, (title, verdicts) in enumerate(counts.items()):
        y, x = _TOP + line * _STEP, float(_LEFT)
        parts.append(f'<text x="{_LEFT - 12}" y="{y + 18}" text-anchor="end">{title}</text>')
        for kind in KINDS:
            width = (_WIDTH - _LEFT - 10) * verdicts[kind] / whole
            parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}"/>')
            if width > 24:
                parts.append(f'<text class="count" x="{x + 6:.1f}" y="{y + 18}">{verdicts[kind]}</text>')
            x += width
    below = _TOP + len(counts) * _STEP + 8
    for place, kind in enumerate(KINDS):
        x = _LEFT + place * 120
        parts.append(f'<rect class="{kind}" x="{x}" y="{below}" width="14" height="14"/>')
        parts.append(f'<text x="{x + 20}" y="{below + 12}">{kind}</text>')
    height = below + 24
    size = f'viewBox="0 0 {_WIDTH} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(_in_words(counts))}">'
    return "\n".join((head, f"<style>{_STYLE}</style>", *parts, "</svg>\n"))
