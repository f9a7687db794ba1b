"""Draws docs/scoreboard.svg, the picture in the README: what three exporters make of the same models.

The models are those of the scoreboard that all three exported:

    python scripts/picture.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import scoreboard  # noqa: E402

from torch_onnx_compat.sweep.chart import count_shared, draw  # noqa: E402

PICTURE = ROOT / "docs" / "scoreboard.svg"


def picture() -> str:
    """The SVG."""
    return draw(count_shared(scoreboard.rows()))


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
