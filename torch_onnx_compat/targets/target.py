"""The Target: an engine's profile, read from a TOML file beside this one or from the caller's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import onnx

from torch_onnx_compat.entry import MIN_OPSET, Operator
from torch_onnx_compat.errors import CompatError, unknown_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Verdict = Literal["works", "wrong", "refused", "crashes"]
VERDICTS = ("works", "wrong", "refused", "crashes")


@dataclass(frozen=True)
class Row:
    """What the engine does with one operator, at some opsets and attribute values."""

    op_type: str
    verdict: Verdict
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: tuple[int, int] = (1, 99)
    source: str = ""

    def matches(self, op_type: str, opset: int, attributes: Mapping[str, Any] | None) -> bool:
        """Whether the row speaks of this operator; unknown attributes (None) may be any."""
        if op_type != self.op_type or not self.opset[0] <= opset <= self.opset[1]:
            return False
        return attributes is None or all(attributes.get(k) == v for k, v in self.attributes.items())


@dataclass(frozen=True)
class Target:
    """An inference engine.

    Args:
        name: What `target=` and messages call it.
        version: Version that was measured.
        opset: The opset it is exported at unless the caller asks for one.
        opsets: First and last opset that it accepts.
        rows: Operators that it does not run right; what no row names works where ONNX defines it.
        measured: Whether the rows come from running the engine, as opposed to its documentation.
    """

    name: str
    version: str = ""
    opset: int = 20
    opsets: tuple[int, int] = (MIN_OPSET, 99)
    rows: tuple[Row, ...] = ()
    measured: bool = False

    def objection(self, op_type: str, opset: int, attributes: Mapping[str, Any] | None = None) -> str | None:
        """Why a node cannot be used here, or None: ONNX has no such operator yet, or the engine fails on it.

        Args:
            op_type: Operator of the default ONNX domain.
            opset: Opset of the file.
            attributes: The node's attributes; None when they are not known.
        """
        first = first_opset(op_type)
        if first is None or opset < first:
            return f"needs opset {first} or later" if first else "is no ONNX operator"
        for row in self.rows:
            if row.verdict != "works" and row.matches(op_type, opset, attributes):
                return f"{row.verdict} on {self.name}"
        return None

    def avoids(self, operator: Operator, opset: int) -> str | None:
        """Why an operator, perhaps only with certain attributes, is to be avoided here, or None."""
        return self.objection(operator.op_type, opset, operator.attributes or None)


@cache
def first_opset(op_type: str) -> int | None:
    """The opset that introduced an operator of the default domain; None if there is no such operator."""
    versions = [s.since_version for s in _schemas() if s.name == op_type]
    return min(versions, default=None)


@cache
def _schemas() -> tuple[Any, ...]:
    return tuple(s for s in onnx.defs.get_all_schemas_with_history() if s.domain == "")


def known_targets() -> tuple[str, ...]:
    """Names of the targets that ship with the package."""
    return tuple(sorted(p.stem for p in Path(__file__).parent.glob("*.toml")))


def load_target(target: str | os.PathLike[str] | Target) -> Target:
    """A target by name, or from the caller's own TOML file.

    Raises:
        CompatError: There is no target of that name, or the file is not a profile.
    """
    if isinstance(target, Target):
        return target
    path = Path(target)
    if path.suffix != ".toml":
        if str(target) not in known_targets():
            raise unknown_name("target", str(target), known_targets())
        path = Path(__file__).parent / f"{target}.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CompatError(f"target file {str(path)!r} cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise CompatError(f"target file {str(path)!r} is no TOML: {error}.") from error
    return _parse(path, data)


def _parse(path: Path, data: dict[str, Any]) -> Target:
    try:
        rows = tuple(
            Row(
                op_type=row["op"],
                verdict=_verdict(row["verdict"]),
                attributes=row.get("attributes", {}),
                opset=tuple(row.get("opset", (1, 99))),
                source=row.get("source", ""),
            )
            for row in data.get("operators", ())
        )
        return Target(
            name=data["name"],
            version=data.get("version", ""),
            opset=data["opset"],
            opsets=tuple(data["opsets"]),
            rows=rows,
            measured=data.get("measured", False),
        )
    except (KeyError, TypeError) as error:
        raise CompatError(f"target file {str(path)!r}: {error} is missing or of the wrong kind.") from error


def _verdict(text: str) -> Verdict:
    if text not in VERDICTS:
        raise unknown_name("verdict", text, VERDICTS)
    return text  # type: ignore[return-value]
