"""Finds the fewest conditions that tell the samples which failed from those which did not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from torch_onnx_compat.engines.measure import Sample
from torch_onnx_compat.targets.target import Row, Verdict

_SEVERITY: tuple[Verdict, ...] = ("wrong", "crashes", "refused")
_LATE = (
    *("reused", "version", "type", "rank", "rank.1", "shapes", "inputs", "outputs"),
    *("input.1", "input.2", "input.3", "input.4"),
)
"""Facts that explain a failure less often than attributes do, in the order in which they are tried."""
_SHAPE = frozenset({"rank", "rank.1", "shapes", "outputs"})
_MOST = 3

Items = tuple[tuple[str, Any], ...]


def condense(samples: Iterable[Sample]) -> tuple[frozenset[str], tuple[Row, ...]]:
    """Condenses samples into rows of a profile.

    Returns:
        The operators that always worked, and rows for the others.
    """
    by_operator: dict[str, list[Sample]] = {}
    for sample in samples:
        by_operator.setdefault(sample.op_type, []).append(sample)
    works = frozenset(op for op, those in by_operator.items() if all(s.verdict == "works" for s in those))
    rows = [row for op in sorted(by_operator) if op not in works for row in _rows(op, by_operator[op])]
    return works, tuple(rows)


def _rows(op_type: str, samples: Sequence[Sample]) -> list[Row]:
    passed = [s for s in samples if s.verdict == "works"]
    failed = sorted((s for s in samples if s.verdict != "works"), key=lambda s: s.name)
    if not passed:
        return [Row(op_type, _worst(failed), source=_source(failed))]
    found: list[tuple[Items, list[Sample]]] = []
    while failed:
        items = _best(failed, passed)
        if items is None:
            found += _unexplained(failed, passed)
            break
        found.append((items, [s for s in failed if _has(s, items)]))
        failed = [s for s in failed if not _has(s, items)]
    return _merged(op_type, found)


def _best(failed: Sequence[Sample], passed: Sequence[Sample]) -> Items | None:
    """The fewest facts that no sample has which passed, and as many as possible have which failed."""
    for size in range(1, _MOST + 1):
        candidates: dict[Items, int] = {}
        for sample in failed:
            for items in combinations(_ordered(sample.facts), size):
                if items not in candidates:
                    clean = not any(_has(s, items) for s in passed)
                    candidates[items] = sum(_has(s, items) for s in failed) if clean else 0
        best = max(candidates, key=lambda items: candidates[items], default=None)
        if best is not None and candidates[best]:
            return best
    return None


def _ordered(facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The facts, those first that are tried first: of equally good ones the first wins."""
    return sorted(facts.items(), key=lambda item: (_LATE.index(item[0]) + 1 if item[0] in _LATE else 0, item[0]))


def _has(sample: Sample, items: Items) -> bool:
    return all(name in sample.facts and sample.facts[name] == value for name, value in items)


def _unexplained(failed: Sequence[Sample], passed: Sequence[Sample]) -> list[tuple[Items, list[Sample]]]:
    """Failures that no few facts explain, told by as few facts as hold of no more samples that passed."""
    found: dict[Items, list[Sample]] = {}
    for sample in failed:
        kept = _ordered(sample.facts)
        if sample.verdict == "wrong":  # its numbers depend on the values: be careful at every shape
            kept = [item for item in kept if item[0] not in _SHAPE]
        least = sum(_has(s, tuple(kept)) for s in passed)
        for item in reversed(kept):
            fewer = tuple(other for other in kept if other != item)
            if sum(_has(s, fewer) for s in passed) == least:
                kept = list(fewer)
        found.setdefault(tuple(kept), []).append(sample)
    return list(found.items())


def _merged(op_type: str, found: Sequence[tuple[Items, list[Sample]]]) -> list[Row]:
    """Rows; those of one verdict that differ in the value of a single fact become one with a list of values."""
    rows: list[tuple[dict[str, Any], list[Sample]]] = []
    for items, samples in found:
        when = dict(items)
        for other, others in rows:
            differing = [n for n in when if other.get(n) != when[n]] if other.keys() == when.keys() else []
            if len(differing) == 1 and _worst(others) == _worst(samples):
                name = differing[0]
                values = other[name] if isinstance(other[name], list) else [other[name]]
                other[name] = sorted([*values, when[name]], key=str)
                others += samples
                break
        else:
            rows.append((when, list(samples)))
    return [Row(op_type, _worst(samples), when, source=_source(samples)) for when, samples in rows]


def _worst(samples: Sequence[Sample]) -> Verdict:
    return min((s.verdict for s in samples), key=_SEVERITY.index)


def _source(samples: Sequence[Sample]) -> str:
    """The first probe of the worst verdict, and how many there are."""
    first = min((s for s in samples if s.verdict == _worst(samples)), key=lambda s: s.name)
    reason = f": {first.reason[:80]}" if first.verdict == "wrong" else ""
    more = f" and {len(samples) - 1} more" if len(samples) > 1 else ""
    return f"probe {first.name}{more}{reason}"
