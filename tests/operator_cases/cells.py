"""What the operator matrix knows of one export, and the file in which it is kept."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from operator_cases import families

DATA = Path(__file__).parents[2] / "docs" / "operator_matrix.jsonl"
Column = tuple[str, int, str]
COLUMNS = (
    ("torchscript", 17, "stock"),
    ("torchscript", 17, "ours"),
    ("dynamo", 18, "stock"),
    ("dynamo", 18, "ours"),
    ("dynamo", 20, "stock"),
    ("dynamo", 20, "ours"),
)
"""Exporter, opset, and whose export it is."""

_FOLDERS = re.compile(r"/(?:[\w.+-]+/)+(?=[\w.+-]+\.(?:py|onnx)\b)")


@dataclass(frozen=True)
class Cell:
    """One export of one case."""

    family: str
    name: str
    exporter: str
    opset: int
    who: str
    verdict: str
    nodes: int = 0
    operators: str = ""
    entries: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.verdict} {self.nodes}" if self.verdict == "ok" else self.verdict


def told(error: BaseException) -> str:
    """An error's text in one line, without graph dumps and without the folders of this machine."""
    text = " ".join(str(error).split()) or type(error).__name__
    return without_folders(text.partition(" [Caused by the value")[0])


def without_folders(text: str) -> str:
    """A text in which files are called by their names."""
    return _FOLDERS.sub("", text)


def read_cells() -> list[Cell]:
    """The last written matrix; empty if there is none."""
    lines = DATA.read_text(encoding="utf-8").splitlines() if DATA.exists() else []
    return [Cell(**json.loads(line)) for line in lines]


def write_cells(cells: list[Cell]) -> None:
    """Writes the matrix."""
    DATA.write_text("".join(json.dumps(asdict(cell)) + "\n" for cell in cells), encoding="utf-8")


def kept(cells: list[Cell]) -> list[Cell]:
    """These cells, and those of the last written result that they do not replace, in the order of the cases."""
    table = {(c.family, c.name, c.exporter, c.opset, c.who): c for c in (*read_cells(), *cells)}
    keys = [(group, case.name, *c) for group, cases in families().items() for case in cases for c in COLUMNS]
    return [table[key] for key in keys if key in table]
