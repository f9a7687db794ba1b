"""Condenses samples into rows: finds the fewest conditions that separate failed samples from those that passed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from torch_onnx_compat.engines.measure import UNSTABLE, Sample
from torch_onnx_compat.targets.target import PASSED, Row, Verdict

_SEVERITY: tuple[Verdict, ...] = ("wrong", "crashes", "refused")
_LATE = (
    "outputs",
    "reused",
    "input.1",
    "input.2",
    "input.3",
    "input.4",
    "input.0",
    "inputs",
    "version",
    "type",
    "rank",
    "rank.1",
    "rank.out",
    "shapes",
    "batch",
    "image",
)
"""Facts that are tried last, in this order, because words and flags explain a failure more often than they do. Free
numbers come after them: that a failing node had 6 channels is seldom the cause."""
_AROUND = frozenset({"version", "rank", "rank.1", "rank.out", "shapes", "batch", "reused", "gates"})
"""Facts that do not decide which values an operator gets wrong."""
_FLAGS = (0, 1, -1)
"""Whole numbers that count as flags; all other numbers are free."""
_PLACES = ("axis", "axes", "rank")
"""Facts, or their prefixes, whose small numbers are not flags."""
_MOST = 3
"""Facts in one condition, at most."""
_LUCK = 0.5
"""Samples that may have passed by luck, for each that failed: uninitialised memory is right now and then."""

Items = tuple[tuple[str, Any], ...]


def condense(samples: Iterable[Sample]) -> tuple[frozenset[str], tuple[Row, ...]]:
    """Condenses samples into rows of a profile.

    Returns:
        The operators that always worked, and rows for the others.
    """
    by_operator: dict[str, list[Sample]] = {}
    for sample in samples:
        by_operator.setdefault(sample.op_type, []).append(sample)
    works = frozenset(op for op, those in by_operator.items() if all(s.verdict in PASSED for s in those))
    rows = [row for op in sorted(by_operator) if op not in works for row in _rows(op, by_operator[op])]
    return works, tuple(rows)


def _rows(op_type: str, samples: Sequence[Sample]) -> list[Row]:
    failed = sorted((s for s in samples if s.verdict not in PASSED), key=lambda s: s.name)
    passed = _evidence([s for s in samples if s.verdict in PASSED], failed)
    if not passed:
        return [Row(op_type, _worst_verdict(failed), source=_source(failed))]
    found: list[tuple[Items, list[Sample]]] = []
    unstable = [s for s in failed if s.reason == UNSTABLE]
    while unstable and (lucky := _best_items(unstable, passed, luck=_LUCK)):
        found.append((lucky, [s for s in failed if _may_have(s, lucky)]))
        failed, passed, unstable = ([s for s in of if not _may_have(s, lucky)] for of in (failed, passed, unstable))
    while failed:
        items = _best_items(failed, passed) or _drop_useless(failed[0], passed)
        found.append((items, [s for s in failed if _may_have(s, items)]))
        failed = [s for s in failed if not _may_have(s, items)]
    return _merge_rows(op_type, found, passed)


def _evidence(passed: Sequence[Sample], failed: Sequence[Sample]) -> list[Sample]:
    """The samples that passed, without those whose facts are a failure's: there the values decide.

    Where such a failure is a wrong result, the values are taken to decide at every shape and place.
    """
    deciding: list[tuple[dict[str, Any], bool]] = []
    for sample in failed:
        if any(s.facts == sample.facts for s in passed):
            wrong = sample.verdict == "wrong"
            deciding.append((_value_facts(sample.facts) if wrong else dict(sample.facts), wrong))
    return [s for s in passed if not any((_value_facts(s.facts) if wrong else s.facts) == f for f, wrong in deciding)]


def _value_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in _AROUND}


def _best_items(failed: Sequence[Sample], passed: Sequence[Sample], luck: float = 0.0) -> Items | None:
    """The fewest facts that hold for no sample that passed, and for as many as possible that failed.

    Args:
        failed: The samples to explain.
        passed: The samples that the facts must exclude.
        luck: How many may have passed by luck, for each that failed.
    """
    for size in range(1, _MOST + 1):
        candidates: dict[Items, int] = {}
        for sample in failed:
            for items in combinations(_sort_facts(sample.facts), size):
                if items not in candidates:
                    bad = sum(_may_have(s, items) for s in failed)
                    candidates[items] = bad if sum(_may_have(s, items) for s in passed) <= luck * bad else 0
        best = max(candidates, key=lambda items: candidates[items], default=None)
        if best is not None and candidates[best]:
            return best
    return None


def _drop_useless(sample: Sample, passed: Sequence[Sample]) -> Items:
    """The facts of a failure, without those that exclude no sample that passed."""
    items = _sort_facts(sample.facts)
    least = sum(_may_have(s, tuple(items)) for s in passed)
    for item in reversed(items):
        fewer = [other for other in items if other != item]
        if sum(_may_have(s, tuple(fewer)) for s in passed) == least:
            items = fewer
    return tuple(items)


def _sort_facts(facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The facts in the order in which they are tried; of equally good ones the first wins."""
    return sorted(facts.items(), key=lambda item: (_lateness(*item), item[0]))


def _lateness(name: str, value: Any) -> int:
    if name in _LATE:
        return _LATE.index(name) + 1
    return len(_LATE) + 1 if _is_free(value) else 0


def _is_free(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and value not in _FLAGS)


def _may_have(sample: Sample, items: Items) -> bool:
    """Whether the facts may hold; as for targets, a fact that the graph does not tell may be anything."""
    return all(sample.facts.get(name, value) == value for name, value in items)


def _merge_rows(op_type: str, found: Sequence[tuple[Items, list[Sample]]], passed: Sequence[Sample]) -> list[Row]:
    """Builds rows; those of one verdict that differ in the value of a single fact become one with a list of values."""
    rows: list[tuple[dict[str, Any], list[Sample]]] = []
    for items, samples in found:
        when = dict(items)
        for other, others in rows:
            differing = [n for n in when if other.get(n) != when[n]] if other.keys() == when.keys() else []
            if len(differing) == 1 and _worst_verdict(others) == _worst_verdict(samples):
                name = differing[0]
                values = other[name] if isinstance(other[name], list) else [other[name]]
                other[name] = sorted([*values, when[name]], key=str)
                others += samples
                break
        else:
            rows.append((when, list(samples)))
    wide = [_widen(when, passed) for when, _ in rows]
    return [
        # Of rows that would be equal when widened, only the last one is widened.
        Row(op_type, _worst_verdict(samples), when if wide[i] in wide[i + 1 :] else wide[i], source=_source(samples))
        for i, (when, samples) in enumerate(rows)
    ]


def _widen(when: Mapping[str, Any], passed: Sequence[Sample]) -> dict[str, Any]:
    """The condition, with failing numbers replaced by all numbers except those that passed.

    No measurement tries every number: an untried one is taken to fail like its neighbours.
    """
    wide = dict(when)
    for name, wanted in when.items():
        if not _is_open(name, wanted):
            continue
        rest = {other: value for other, value in wide.items() if other != name}
        values = {s.facts.get(name) for s in passed if Row("", "wrong", rest).may_match(1, s.facts)}
        if values and None not in values:
            wide[name] = {"not": sorted(values, key=str)}
    return wide


def _is_open(name: str, wanted: Any) -> bool:
    """Whether a fact may have more values than any measurement tries."""
    values = wanted if isinstance(wanted, list) else [wanted]
    places = name.startswith(_PLACES)
    return any(_is_free(v) or v in ("mixed", "rising") or (places and isinstance(v, int)) for v in values)


def _worst_verdict(samples: Sequence[Sample]) -> Verdict:
    return min((s.verdict for s in samples), key=_SEVERITY.index)


def _source(samples: Sequence[Sample]) -> str:
    """The first probe of the worst verdict, and how many there are."""
    first = min((s for s in samples if s.verdict == _worst_verdict(samples)), key=lambda s: s.name)
    reason = f": {first.reason[:80]}" if first.verdict == "wrong" else ""
    more = f" and {len(samples) - 1} more" if len(samples) > 1 else ""
    return f"probe {first.name}{more}{reason}"
