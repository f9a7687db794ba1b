"""What has changed since an earlier sweep: newly passing, newly failing, slower, larger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_onnx_compat.sweep.job import Row

SLOWER, LEAST_S = 1.3, 1.0
"""A model is slower when its export takes this many times as long, and this many seconds longer."""
LARGER = 1.0
"""A file is larger when it has more than this many times the nodes."""


@dataclass(frozen=True)
class Change:
    """One model that differs."""

    kind: str
    """newly passing, newly failing, slower or larger."""
    spec: str
    by: str
    text: str


def changes(old: Sequence[Row], new: Sequence[Row]) -> list[Change]:
    """Compares the rows of two sweeps, model by model, whatever versions they were made with; only what both have.

    Args:
        old: Rows of the earlier one.
        new: Rows of the later one.
    """
    before = {row.name: row for row in old}
    found = []
    for row in new:
        earlier = before.get(row.name)
        if earlier is not None:
            found += [Change(kind, row.spec, row.by, text) for kind, text in _differences(earlier, row)]
    order = ("newly failing", "newly passing", "slower", "larger")
    return sorted(found, key=lambda change: (order.index(change.kind), change.spec, change.by))


def _differences(old: Row, new: Row) -> list[tuple[str, str]]:
    passed, passes = old.verdict == "verified", new.verdict == "verified"
    if passed and not passes:
        return [("newly failing", f"{new.verdict}: {new.reason}")]
    if passes and not passed:
        return [("newly passing", f"was {old.verdict}: {old.reason}")]
    if not passes:
        return []
    found = []
    if new.export_s > SLOWER * old.export_s and new.export_s > old.export_s + LEAST_S:
        found.append(("slower", f"{old.export_s:.1f} s -> {new.export_s:.1f} s"))
    if new.nodes > LARGER * old.nodes:
        found.append(("larger", f"{old.nodes} nodes -> {new.nodes}"))
    return found
