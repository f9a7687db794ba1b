"""Writes docs/catalogue.md from the registry; `python scripts/catalogue.py` after an entry has changed."""

from pathlib import Path

from torch_onnx_compat.catalogue import BUILT_IN, catalogue
from torch_onnx_compat.cli.catalogue import entry_row
from torch_onnx_compat.entry import Entry, Symbolic

PAGE = Path(__file__).parents[1] / "docs" / "catalogue.md"
COLUMNS = ("name", "replaces", "needed", "opset", "targets", "exactness", "source")
INTRODUCTION = """\
# The catalogue

Written by `python scripts/catalogue.py`; edit the entries, not this page. `torch-onnx-compat catalogue NAME` tells one
entry in full. *needed*: the exporters that fail or err without the entry, or the ONNX operators that it avoids where
the target lacks them; no other export applies it. *exactness*: bitwise; rounding, i.e. the same formula in another
order; or approximate, with the largest relative error, and only where the caller allows it.
"""


def page() -> str:
    """The whole page."""
    # Plugins that happen to be installed are not this project's catalogue.
    entries = sorted((e for e in catalogue() if e.owner.startswith(BUILT_IN)), key=lambda e: e.name)
    symbolics = [e for e in entries if isinstance(e, Symbolic)]
    rewrites = [e for e in entries if not isinstance(e, Symbolic)]
    return "\n".join(
        [
            INTRODUCTION,
            *_section("Symbolics: torch operators written in ONNX operators", symbolics),
            "",
            *_section("Rewrites: modules and functions replaced by equivalents", rewrites),
            "",
        ]
    )


def _section(title: str, entries: list[Entry]) -> list[str]:
    header = ["## " + title, "", "| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    return header + ["| " + " | ".join(_cell(entry_row(e), column) for column in COLUMNS) + " |" for e in entries]


def _cell(row: dict[str, str], column: str) -> str:
    text = row[column].replace("|", "\\|").replace("*", "\\*").replace("_", "\\_" if column != "source" else "_")
    return f"`{row[column]}`" if column in ("name", "replaces") else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
