"""Decides which entries are wanted for this exporter, opset and target, and keeps account of what they did."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch.torch_version import TorchVersion

from torch_onnx_compat.catalogue.entry import ADMITS, Entry, Exactness, Exporter, Operator, Rewrite, Symbolic, decline
from torch_onnx_compat.catalogue.registry import Registry
from torch_onnx_compat.errors import unknown_name
from torch_onnx_compat.targets import Target

Found: TypeAlias = "Collection[tuple[str, Mapping[str, Any]]]"
_NOT_NEEDED = "needed"
DECISIONS = "control_flow"
"""The entry for Python decisions, rewrites/masks.py."""


@dataclass(frozen=True)
class Note:
    """What one entry did, or refused to do, at one or more places of the model."""

    entry: str
    verdict: str
    """applied or declined"""
    places: tuple[str, ...]
    """Module paths; empty string for the model itself."""
    reason: str = ""

    def __str__(self) -> str:
        shown = ", ".join(p or "the model" for p in self.places[:3])
        more = f" and {len(self.places) - 3} more" if len(self.places) > 3 else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{shown}{more}: {self.entry} {self.verdict}{reason}"


@dataclass
class Plan:
    """The entries that are wanted, why, and what became of them.

    Attributes:
        armed: The wanted entries, each with the reason.
        skipped: The entries that are not wanted here, each with the reason.
        source: What is rewritten in the model's own functions, as a unified diff, if that was asked for.
        obstacle: Why the model is not exported, where that is so.
    """

    exporter: Exporter
    opset: int
    target: Target
    armed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    included: tuple[str, ...] = ()
    source: str = ""
    obstacle: str = ""
    _entries: dict[str, Entry] = field(default_factory=dict)
    _events: list[tuple[str, str, str, str]] = field(default_factory=list)

    def rewrites(self) -> list[Rewrite]:
        """The wanted rewrites."""
        return [e for e in self._entries.values() if isinstance(e, Rewrite)]

    def symbolics(self) -> list[Symbolic]:
        """The wanted symbolics, at most one an operator."""
        return [e for e in self._entries.values() if isinstance(e, Symbolic)]

    def entry(self, name: str) -> Entry:
        """A wanted entry."""
        return self._entries[name]

    def applied(self, entry: str, place: str, what: str = "") -> None:
        """Notes that an entry did its work at a place, and what became of it where that is not always the same."""
        self._events.append((entry, "applied", place, what))

    def declined(self, entry: str, place: str, reason: str) -> None:
        """Notes that an entry refused a place."""
        self._events.append((entry, "declined", place, reason))

    @contextmanager
    def mute(self) -> Iterator[None]:
        """Forgets what is noted inside."""
        there = len(self._events)
        yield
        del self._events[there:]

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the entries did, one note for each entry, verdict and reason."""
        places: dict[tuple[str, str, str], dict[str, None]] = {}
        for name, verdict, place, reason in self._events:
            places.setdefault((name, verdict, reason), {})[place] = None
        return tuple(Note(n, v, tuple(where), reason) for (n, v, reason), where in places.items())

    @property
    def unused(self) -> tuple[str, ...]:
        """Entries that were asked for by name and found nothing to do."""
        done = {note.entry for note in self.notes if note.verdict == "applied"}
        return tuple(name for name in self.included if name not in done)

    def __str__(self) -> str:
        lines = [f"plan for {self.exporter}, opset {self.opset}, target {self.target.name}"]
        lines += [f"  {note}" for note in self.notes] or ["  no entry has anything to do"]
        lines += [f"  {name}: asked for and unused" for name in self.unused]
        lines += [f"  an export fails: {self.obstacle}"] if self.obstacle else []
        lines += [self.source] if self.source else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "exporter": self.exporter,
            "opset": self.opset,
            "target": self.target.name,
            "applied": [_plain(n) for n in self.notes if n.verdict == "applied"],
            "declined": [_plain(n) for n in self.notes if n.verdict == "declined"],
            "unused": list(self.unused),
            "armed": dict(self.armed),
            "skipped": dict(self.skipped),
            "source": self.source,
            "obstacle": self.obstacle,
        }


def _plain(note: Note) -> dict[str, Any]:
    return {"entry": note.entry, "places": list(note.places), "reason": note.reason}


def make_plan(
    registry: Registry,
    *,
    exporter: Exporter,
    opset: int,
    target: Target,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    allow_approximate: bool = False,
    found: Found = (),
) -> Plan:
    """Arms the entries that this exporter, opset and target need.

    Args:
        registry: The entries to choose from.
        exporter: The back end.
        opset: Opset of the file.
        target: The engine.
        include: Entries to arm whether needed or not.
        exclude: Entries not to arm.
        allow_approximate: Whether APPROXIMATE entries may be armed.
        found: Operators of an earlier file, and their facts, that the target does not run right.

    Raises:
        CompatError: `include` or `exclude` names an entry that does not exist.
    """
    for name in (*include, *exclude):
        if name not in registry:
            raise unknown_name("entry", name, (e.name for e in registry))
    plan = Plan(exporter, opset, target, included=tuple(include))
    chosen: dict[str, Entry] = {}
    for entry in registry:
        wanted, reason = _verdict(entry, exporter, opset, target, include, exclude, allow_approximate)
        if not wanted and reason.startswith(_NOT_NEEDED) and avoids_any(entry, found):
            wanted, reason = True, f"the file held what {target.name} does not run right"
        if wanted:
            plan.armed[entry.name] = reason
            chosen[entry.name] = entry
        else:
            plan.skipped[entry.name] = reason
            if ADMITS in reason and _verdict(entry, exporter, opset, target, include, exclude, True)[0]:
                chosen[entry.name] = _withheld(entry, reason)
    plan._entries.update({e.name: e for e in _most_specific(chosen.values(), plan)})
    return plan


def _verdict(
    entry: Entry,
    exporter: Exporter,
    opset: int,
    target: Target,
    include: Collection[str],
    exclude: Collection[str],
    allow_approximate: bool,
) -> tuple[bool, str]:
    if entry.name in exclude:
        return False, "excluded"
    if not entry.covers(opset, target.name):
        low, high = entry.opset
        return False, f"meant for opset {low}..{high} and targets {', '.join(sorted(entry.targets)) or 'any'}"
    if entry.exactness is Exactness.APPROXIMATE and not allow_approximate:
        return False, f"approximate (relative error up to {entry.error:g}); {ADMITS}"
    if entry.name in include:
        return True, "included"
    if entry.need.fixed_in and TorchVersion(torch.__version__) >= entry.need.fixed_in:
        return False, f"torch does without it from {entry.need.fixed_in} on"
    if entry.need.always:
        return True, "always right"
    if exporter in entry.need.exporters:
        return True, f"{exporter} needs it"
    objections = (f"{operator} {target.avoids(operator, opset)}" for operator in _unusable(entry, target, opset))
    reason = next(objections, "")
    return bool(reason), reason or f"{_NOT_NEEDED} {entry.need}"


def _withheld(entry: Entry, reason: str) -> Entry:
    """An entry that is needed and only lacks the caller's leave: it says so wherever it would have been applied."""

    @functools.wraps(entry.body)
    def body(*_: Any, **__: Any) -> Any:
        decline(reason)

    return replace(entry, body=body)


def avoids_any(entry: Entry, found: Found) -> bool:
    """Whether the entry avoids one of the operators found."""
    return any(
        op_type == operator.op_type and all(facts.get(k) == v for k, v in operator.attributes.items())
        for op_type, facts in found
        for operator in entry.need.avoids
    )


def _unusable(entry: Entry, target: Target, opset: int) -> list[Operator]:
    return [operator for operator in entry.need.avoids if target.avoids(operator, opset)]


def _most_specific(entries: Iterable[Entry], plan: Plan) -> list[Entry]:
    """Of the symbolics for one operator, the one with targets or the narrowest opset range; all rewrites."""
    result: list[Entry] = []
    best: dict[str, Symbolic] = {}
    for entry in entries:
        if not isinstance(entry, Symbolic):
            result.append(entry)
            continue
        other = best.get(entry.op)
        winner = entry if other is None or _specificity(entry) > _specificity(other) else other
        if other is not None:
            loser = other if winner is entry else entry
            plan.armed.pop(loser.name, None)
            plan.skipped[loser.name] = f"{winner.name} is more specific"
        best[entry.op] = winner
    # Rewrites for certain targets are tried before general ones.
    result.sort(key=lambda e: not e.targets)
    return [*result, *best.values()]


def _specificity(entry: Symbolic) -> tuple[bool, int]:
    return bool(entry.targets), entry.opset[0] - entry.opset[1]
