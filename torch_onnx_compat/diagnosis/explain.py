"""explain(): finds the causes of an error from its text, the likeliest first."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from torch_onnx_compat.catalogue.entry import ADMITS, Symbolic
from torch_onnx_compat.diagnosis.match import Message, messages, positions, score, words
from torch_onnx_compat.errors import CompatError, causes, with_lines
from torch_onnx_compat.places import is_user_file, plain, short

if TYPE_CHECKING:
    from torch_onnx_compat.plan import Plan

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_KEYS = {"tool", "texts", "cause", "action", "entries", "sources", "instead_of"}
_LONGEST = 200_000
"""Characters of a text that are read, from its end: a traceback names the error last."""

_MOST_REASONS = 3
"""Notes of entries that are added to an error, at most."""

_OTHER_EXPORTER = re.compile(r"take exporter='\w+',? ?(?:or )?")
_ADMIT = "pass allow_approximate=True, which admits the entry named above, or "
"""What to do in the place of the other exporter, which the same entry serves."""
_OPERATOR = re.compile(
    r"operator '?((?:aten|prim|torchvision|[a-z_]\w*)::\w+)|op='(\w+\.\w+)'|(\baten::\w+)|(?:registered for|op:) (\w+)"
)


@dataclass(frozen=True)
class Diagnosis:
    """One cause of an error.

    Attributes:
        name: Name of the pattern.
        tool: The tool that writes such a message.
        cause: The cause.
        action: The remedy.
        entries: Catalogue entries that help.
        sources: Where it is discussed.
        operator: The operator that the text names, if any.
        place: The statement of the user's code that the text names, if any.
        score: Share of the known message that stands in the text, 0..1.
    """

    name: str
    tool: str
    cause: str
    action: str
    entries: tuple[str, ...]
    sources: tuple[str, ...]
    operator: str
    place: str
    score: float

    def __str__(self) -> str:
        about = f" ({self.operator})" if self.operator else ""
        entries = f"; entries: {', '.join(self.entries)}" if self.entries else ""
        place = f"; at {self.place}" if self.place else ""
        return f"{self.cause}{about}; {self.action}{entries}{place}."

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as plain data."""
        return {**vars(self), "entries": list(self.entries), "sources": list(self.sources)}


def explain(text: str) -> list[Diagnosis]:
    """Explains an error of an exporter, of an ONNX tool or of an engine.

    Args:
        text: The error, or a log or traceback that holds it; colours, paths and numbers do not matter.

    Returns:
        The causes, the likeliest first; none where the text holds no known message.
    """
    text = plain(text)[-_LONGEST:]
    places = positions(words(text))
    found: dict[str, tuple[float, Message]] = {}
    for message in _messages():
        share = score(message, places)
        if share > found.get(message.name, (0.0,))[0]:
            found[message.name] = share, message
    # Of several messages in the text, the one of the largest weight is the most specific.
    general = {_patterns()[name].get("instead_of") for name in found} | _WRAPPERS
    ranked = sorted(found.values(), key=lambda f: (f[1].name in general, -f[0] * f[1].total))
    seen: list[Message] = []
    chosen = []
    for share, message in ranked:
        if not any(set(message.weights) <= set(other.weights) for other in seen):
            chosen.append((share, message))
        seen.append(message)
    operator, place = _operator(text), _place(text)
    return [_diagnosis(message.name, share, operator, place) for share, message in chosen]


_WRAPPERS = frozenset({"dynamo_step_capture", "dynamo_step_convert"})
"""Messages that only announce another one."""


def explain_error(error: BaseException) -> list[Diagnosis]:
    """Explains an error together with the errors that caused it; the likeliest cause is first."""
    return explain("\n".join(_chain(error)))


def hint(*texts: str) -> str:
    """The likeliest cause and its action, in one line; empty where the texts hold no known message."""
    found = explain("\n".join(texts))
    return f"{found[0].cause}; {found[0].action}." if found else ""


def with_hint(error: CompatError, *reasons: CompatError) -> CompatError:
    """Adds the likeliest causes to an error's message, which otherwise stays as it is.

    Args:
        error: The error that the caller will see.
        *reasons: The errors that it sums up; itself by default. One that names the remedy itself gets no other.
    """
    open_ones = [reason for reason in reasons or (error,) if not reason.names_remedy]
    hints = dict.fromkeys(hint(*_chain(reason)) for reason in open_ones)
    is_withheld = any(ADMITS in str(reason) for reason in reasons or (error,))
    if is_withheld or len(reasons) > 1:  # every exporter was tried
        hints = dict.fromkeys(_OTHER_EXPORTER.sub(_ADMIT if is_withheld else "", found) for found in hints)
    lines = [f"\n  diagnosis: {found}" for found in hints if found and found not in str(error)]
    if lines:
        error.args = ("".join((str(error), *lines)), *error.args[1:])
    return error


def with_reasons(error: CompatError, plan: Plan) -> CompatError:
    """Adds the reasons why entries of the plan declined.

    Args:
        error: The error of an attempt.
        plan: The plan of this attempt.
    """
    text = "\n".join(_chain(error))
    lines = [str(note) for note in plan.notes if note.verdict == "declined" and note.reason not in text][:_MOST_REASONS]
    return with_lines(error, lines)


def _chain(error: BaseException) -> list[str]:
    """The texts of an error and of the errors that caused it, the first cause first."""
    return [str(cause) for cause in causes(error)][::-1]


@cache
def _patterns() -> dict[str, dict[str, Any]]:
    text = resources.files("torch_onnx_compat.diagnosis").joinpath("patterns.toml").read_text(encoding="utf-8")
    table: dict[str, dict[str, Any]] = tomllib.loads(text)
    for name, row in table.items():
        if set(row) - _KEYS or not row["texts"]:
            raise CompatError(f"diagnosis {name!r}: unknown keys {sorted(set(row) - _KEYS)}; known: {sorted(_KEYS)}.")
    return table


@cache
def _messages() -> list[Message]:
    return messages({name: row["texts"] for name, row in _patterns().items()})


def _diagnosis(name: str, share: float, operator: str, place: str) -> Diagnosis:
    row = _patterns()[name]
    entries = dict.fromkeys((*row.get("entries", ()), *_entries_for(operator)))
    return Diagnosis(
        name=name,
        tool=row["tool"],
        cause=row["cause"],
        action=row["action"],
        entries=tuple(entries),
        sources=tuple(row["sources"]),
        operator=operator,
        place=place,
        score=round(share, 3),
    )


def _operator(text: str) -> str:
    found = _OPERATOR.search(text)
    name = next((group for group in found.groups() if group), "") if found else ""
    return name.replace(".", "::", 1)


def _entries_for(operator: str) -> list[str]:
    """Entries of the catalogue for an operator, or for a function or module of its name."""
    bare = operator.rpartition("::")[2]
    if not bare:
        return []
    from torch_onnx_compat.catalogue.catalogue import catalogue  # it needs torch, and few errors name an operator

    entries = []
    for entry in catalogue():
        replaced = [entry.op] if isinstance(entry, Symbolic) else str(getattr(entry, "replaces", "")).split(", ")
        if operator in replaced or bare in [name.rpartition(".")[2] for name in replaced]:
            entries.append(entry.name)
    return entries


def _place(text: str) -> str:
    """The last statement of the user's own code that a traceback or a TorchScript graph names."""
    found = re.findall(r'File "([^"]+)", line (\d+)', text)
    found += re.findall(r"# (\S+\.py):(\d+):\d+", text) + re.findall(r"^(\S+\.py)\((\d+)\): ", text, re.MULTILINE)
    own = [short(file, int(line)) for file, line in found if is_user_file(file)]
    return own[-1] if own else ""
