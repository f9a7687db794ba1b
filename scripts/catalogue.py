"""Writes docs/catalogue.md from the registry; `python scripts/catalogue.py` after an entry has changed."""

import sys
from itertools import groupby
from pathlib import Path

from torch_onnx_compat.catalogue.catalogue import BUILT_IN, catalogue
from torch_onnx_compat.catalogue.entry import Entry
from torch_onnx_compat.cli.catalogue import entry_row

PAGE = Path(__file__).parents[1] / "docs" / "catalogue.md"
COLUMNS = ("name", "kind", "replaces", "needed", "opset", "targets", "exactness", "source")
INTRODUCTION = """\
# The catalogue

Written by `python scripts/catalogue.py`; edit the entries, not this page. A section is a module in `symbolics/` or
`rewrites/`; entries stand in the order in which they are tried. `torch-onnx-compat catalogue NAME` tells one entry in
full. *kind*: a symbolic is written in ONNX, a decomposition in torch; a rewrite replaces modules or Python functions.
*needed*: the exporters that fail or err without the entry, or the ONNX operators that it avoids where the target lacks
them; no other export applies it. *exactness*: bitwise; rounding, i.e. the same formula in another order; or
approximate, with the largest relative error, and only where the caller allows it.
"""


def page() -> str:
    """The whole page."""
    # Plugins that happen to be installed are not this project's catalogue.
    entries = [e for e in catalogue() if e.owner.startswith(BUILT_IN)]
    lines = [INTRODUCTION]
    for owner, family in groupby(entries, key=lambda e: e.owner):
        lines += [*_section(owner, list(family)), ""]
    return "\n".join(lines)


def _section(owner: str, entries: list[Entry]) -> list[str]:
    title = (sys.modules[owner].__doc__ or "").partition("\n")[0]
    path = owner.removeprefix("torch_onnx_compat.").replace(".", "/")
    header = [f"## {path}", "", title, "", "| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    return header + ["| " + " | ".join(_cell(entry_row(e), column) for column in COLUMNS) + " |" for e in entries]


def _cell(row: dict[str, str], column: str) -> str:
    text = row[column].replace("|", "\\|").replace("*", "\\*").replace("_", "\\_" if column != "source" else "_")
    return f"`{row[column]}`" if column in ("name", "replaces") else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
