"""Rows counted: by zoo or family and by who exported, and failures by cause."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torch_onnx_compat.sweep.job import BY, VERDICTS, Row, Verdict

TITLES = {"ours": "export_compat", "torch": "torch.onnx.export", "torchscript": "torch.onnx.export, TorchScript"}
"""Headings by who exported."""
FAILED: tuple[Verdict, ...] = ("wrong", "refused", "crashed", "out of time", "out of memory", "not built")


@dataclass(frozen=True)
class Count:
    """Some rows of one exporter.

    Attributes:
        by: Who exported.
        verdicts: How many of each.
        export_s: Median seconds of the exports that were verified.
        nodes: Median nodes of those files.
        memory: Median peak memory of those processes, in MB.
    """

    by: str
    verdicts: dict[str, int]
    export_s: float
    nodes: float
    memory: float

    @property
    def total(self) -> int:
        """How many rows."""
        return sum(self.verdicts.values())


def count(rows: Iterable[Row]) -> list[Count]:
    """The rows counted by who exported, in the order of `BY`."""
    by: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by[row.by].append(row)
    return [_count(one, by[one]) for one in BY if one in by]


def _count(by: str, rows: Sequence[Row]) -> Count:
    good = [row for row in rows if row.verdict == "verified"]
    verdicts: dict[str, int] = {v: n for v in VERDICTS if (n := sum(row.verdict == v for row in rows))}

    def median(value: Callable[[Row], float]) -> float:
        return statistics.median(map(value, good)) if good else 0.0

    return Count(by, verdicts, median(lambda r: r.export_s), median(lambda r: r.nodes), median(lambda r: r.memory))


def best_of_stock(rows: Iterable[Row]) -> dict[str, Verdict]:
    """For each model that torch alone exported both ways, the better verdict of the two."""
    found: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for row in rows:
        if row.by != "ours":
            found[row.spec, row.size].append(row.verdict)
    return {spec: min(v, key=VERDICTS.index) for (spec, _), v in found.items() if len(v) == len(BY) - 1}


def group_rows(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Rows by zoo, family or whatever `key` says, in its order."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return dict(sorted(found.items()))


def causes_of_failure(rows: Iterable[Row]) -> list[tuple[str, str, list[Row]]]:
    """Verdict, cause and rows of what failed, the most frequent first; numbers and names do not tell causes apart."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.verdict in FAILED:
            found[row.verdict, cause(row.reason)].append(row)
    items = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [(verdict, held[0].reason, held) for (verdict, _), held in items]


def cause(reason: str) -> str:
    """A reason without what differs from model to model."""
    text = re.sub(r"\(at [^)]*\)|'[^']*'|\"[^\"]*\"|\[[^\]]*\]", "…", reason)
    return re.sub(r"[\d.]+", "0", text)[:120]
