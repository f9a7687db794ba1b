"""Draws docs/scoreboard.svg, the picture in the README: what three exporters make of the same models.

The models are those of the scoreboard that all three exported:

    python scripts/picture.py
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import scoreboard  # noqa: E402

from torch_onnx_compat.sweep.summary import TITLES  # noqa: E402

PICTURE = ROOT / "docs" / "scoreboard.svg"
KINDS = ("verified", "wrong", "refused", "other")
_WIDTH, _LEFT, _BAR, _STEP, _TOP = 760, 250, 26, 44, 54
_STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1b1f24; }
.count { font-weight: 600; fill: #ffffff; }
.verified { fill: #11632b; } .wrong { fill: #a3151b; } .refused { fill: #8a5a00; } .other { fill: #4f5863; }
@media (prefers-color-scheme: dark) { text { fill: #e7ecf1; } .count { fill: #ffffff; } }
"""


def count() -> dict[str, Counter[str]]:
    """Verdicts by exporter, of the models that all of them exported."""
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for row in scoreboard.rows():
        found[row.spec, row.size][row.by] = row.verdict if row.verdict in KINDS else "other"
    same = [verdicts for verdicts in found.values() if len(verdicts) == len(TITLES)]
    return {title: Counter(verdicts[by] for verdicts in same) for by, title in TITLES.items()}


def draw(counts: dict[str, Counter[str]]) -> str:
    """The picture: a bar for each exporter, light and dark."""
    whole = next(iter(counts.values())).total()
    told = "; ".join(f"{title}: {', '.join(f'{n} {k}' for k, n in c.items())}" for title, c in counts.items())
    parts = [f'<text x="8" y="24">{whole} models, each exported three ways and run against eager torch</text>']
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
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{told}">\n'
        f"<style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(count()), encoding="utf-8")
