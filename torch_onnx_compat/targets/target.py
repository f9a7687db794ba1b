"""Target: an engine's profile, and its verdicts on operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal

from torch_onnx_compat.catalogue.entry import MIN_OPSET, Operator
from torch_onnx_compat.errors import ArgumentError
from torch_onnx_compat.targets.placement import Placement

Verdict = Literal["works", "built", "wrong", "refused", "crashes", "slow", "rough", "unknown"]
Dynamic = Literal["yes", "partly", "no"]
PASSED: tuple[Verdict, ...] = ("works", "built")
"""The verdicts of nodes that nothing is held against. built: the engine parses and builds the node as it is meant; what
its kernels compute was not seen."""
VERDICTS: tuple[Verdict, ...] = ("works", "built", "wrong", "refused", "crashes", "slow", "rough")
"""The verdicts of rows. slow: the engine runs the node right, but another form of it faster; rough: right within the
engine's tolerance, but another form of it nearer."""
BETTER: tuple[Verdict, ...] = ("slow", "rough")
"""The verdicts of nodes that run right, and better in another form."""


@dataclass(frozen=True)
class Row:
    """The engine's verdict on one operator under certain facts.

    Args:
        op_type: Operator of the default ONNX domain.
        verdict: The verdict.
        when: Facts that a node must have, by name (see `graph/facts`): one value, a list of allowed values, or
            ``{"not": [...]}`` with the values that are excluded.
        opset: First and last opset of the files that the row is about.
        source: Where it was measured or can be read.
    """

    op_type: str
    verdict: Verdict
    when: Mapping[str, Any] = field(default_factory=dict)
    opset: tuple[int, int] = (1, 99)
    source: str = ""

    def may_match(self, opset: int, facts: Mapping[str, Any]) -> bool:
        """Whether no known fact contradicts the row; an unknown fact may be anything."""
        return self._in_range(opset) and all(_fits(facts[k], v) for k, v in self.when.items() if k in facts)

    def matches(self, opset: int, facts: Mapping[str, Any]) -> bool:
        """Whether all facts of the row are known and hold."""
        return self._in_range(opset) and all(k in facts and _fits(facts[k], v) for k, v in self.when.items())

    def _in_range(self, opset: int) -> bool:
        return self.opset[0] <= opset <= self.opset[1]

    @property
    def condition(self) -> str:
        """The facts in words; empty where the row holds for the operator as such."""
        texts = [_describe(name, wanted) for name, wanted in self.when.items()]
        if self.opset != (1, 99):
            texts.append(f"opset {self.opset[0]}..{self.opset[1]}")
        return ", ".join(texts)


@dataclass(frozen=True)
class Objection:
    """Why a target does not run a node right."""

    verdict: Verdict
    reason: str
    source: str = ""


@dataclass(frozen=True)
class Target:
    """An inference engine.

    Args:
        name: What `target=` and messages call it.
        version: Version that was measured.
        opset: The opset to export at unless the caller asks for one.
        opsets: First and last opset that it accepts.
        rows: Operators that it does not run right, or only in part.
        measured: Whether the rows come from the engine itself, as opposed to its documentation.
        runs: Whether the engine ran in the measurement; if not, it only parsed and built, and `works` means built.
        ir_version: Highest IR version that it accepts.
        dynamic: Whether it accepts axes without a fixed size.
        folds: Whether it runs nodes that depend on constants alone; if not, they are folded before the file is written.
        works: Operators that ran right in all probes.
        types: For element types other than float32 the operators that do not run in them, by verdict.
        date: When it was measured.
        how: With which probes it was measured.
        placement: The quantized form that it runs in eight bits; None where it has none, or none is known.
        exact: Whether nodes that it runs roughly are written otherwise: the other form takes longer.
    """

    name: str
    version: str = ""
    opset: int = 20
    opsets: tuple[int, int] = (MIN_OPSET, 99)
    rows: tuple[Row, ...] = ()
    measured: bool = False
    runs: bool = True
    ir_version: int = 99
    dynamic: Dynamic = "yes"
    folds: bool = True
    works: frozenset[str] = frozenset()
    types: Mapping[str, Mapping[Verdict, frozenset[str]]] = field(default_factory=dict)
    date: str = ""
    how: str = ""
    placement: Placement | None = None
    exact: bool = False

    def judge(self, op_type: str, opset: int, facts: Mapping[str, Any]) -> Objection | None:
        """The objection to a node; None where it works or nothing is known.

        Args:
            op_type: Operator of the default ONNX domain.
            opset: Opset of the file.
            facts: The known facts of the node; the others may be anything.
        """
        return next(self._objections(op_type, opset, facts, sure=False), None)

    def source(self, op_type: str, opset: int, facts: Mapping[str, Any]) -> str:
        """What the judgement on a node rests on; empty where no row and no table is about it."""
        objection = self.judge(op_type, opset, facts)
        if objection is not None:
            return objection.source
        rows = self._by_operator.get(op_type, ())
        return next((r.source for r in rows if r.verdict in PASSED and r.may_match(opset, facts)), "")

    def verdict(self, op_type: str, opset: int, facts: Mapping[str, Any]) -> Verdict:
        """The verdict on a node; unknown where the operator was not measured, built where the engine never ran."""
        objection = self.judge(op_type, opset, facts)
        if objection is not None:
            return objection.verdict
        tried = op_type in self.works or op_type in self._by_operator
        return ("works" if self.runs else "built") if tried else "unknown"

    @property
    def computes_double(self) -> bool:
        """Whether the engine was seen to compute and compare in float64."""
        facts = {"type": "double"}
        return self.measured and all(self.verdict(one, self.opset, facts) == "works" for one in _ARITHMETIC)

    def objection(self, op_type: str, opset: int, attributes: Mapping[str, Any] | None = None) -> str | None:
        """Why an operator with these attributes is to be avoided whatever its other facts are, or None."""
        found = next(self._objections(op_type, opset, attributes or {}, sure=True), None)
        return found.reason.partition(" where ")[0] if found else None

    def avoids(self, operator: Operator, opset: int) -> str | None:
        """Why an operator, perhaps only with certain attributes, is to be avoided on this target, or None."""
        return self.objection(operator.op_type, opset, operator.attributes)

    def asks(self, op_type: str) -> bool:
        """Whether the verdict on an operator depends on its facts, which take time to find."""
        return op_type in self._by_operator or op_type in self._short_of_types

    @cached_property
    def _short_of_types(self) -> frozenset[str]:
        """The operators that do not run in some element type."""
        return frozenset().union(*(ops for table in self.types.values() for ops in table.values()))

    @property
    def is_rough(self) -> bool:
        """Whether the engine is known to run some nodes roughly."""
        return any(row.verdict == "rough" for row in self.rows)

    def has_better_form(self, op_type: str, opset: int, facts: Mapping[str, Any]) -> bool:
        """Whether the engine is known to run a node faster in another form; if it is to be `exact`, or nearer."""
        verdicts = BETTER if self.exact else ("slow",)
        rows = self._by_operator.get(op_type, ())
        return any(row.verdict in verdicts and row.matches(opset, facts) for row in rows)

    @cached_property
    def _by_operator(self) -> dict[str, list[Row]]:
        table: dict[str, list[Row]] = {}
        for row in self.rows:
            table.setdefault(row.op_type, []).append(row)
        return table

    def _objections(self, op_type: str, opset: int, facts: Mapping[str, Any], sure: bool) -> Iterator[Objection]:
        first = first_opset(op_type)
        if first is None or opset < first:
            yield Objection("refused", f"needs opset {first} or later" if first else "is no ONNX operator")
        for row in self._by_operator.get(op_type, ()):
            if row.verdict not in BETTER and (row.matches if sure else row.may_match)(opset, facts):
                if row.verdict in PASSED:
                    break
                where = f" where {row.condition}" if row.condition else ""
                yield Objection(row.verdict, f"{row.verdict} on {self.name}{where}", row.source or self.how)
        for verdict, operators in self.types.get(facts.get("type", ""), {}).items():
            if op_type in operators:
                yield Objection(verdict, f"{verdict} on {self.name} where type={facts['type']}", self.how)


BFLOAT16_OPSET = 22
"""The opset from which on convolutions, poolings and many others have bfloat16."""


_ARITHMETIC = ("Cast", "Add", "Sub", "Mul", "Div", "Less", "Greater", "Equal")


def choose_opset(from_keywords: int | None, target: Target, *, at_least: int = MIN_OPSET) -> int:
    """The opset of the file.

    Args:
        from_keywords: What the caller asked for.
        target: The engine, which has a preferred opset.
        at_least: The first opset that has what the file holds; taken where the target prefers an earlier one, and
            takes it.

    Raises:
        CompatError: Neither this package nor the target takes the one that was asked for, or it is no whole number.
    """
    if from_keywords is not None and (isinstance(from_keywords, bool) or not isinstance(from_keywords, int)):
        raise ArgumentError(
            f"opset_version={from_keywords!r} is a {type(from_keywords).__name__}; wanted an int, such as "
            f"{target.opset}."
        )
    low, high = max(MIN_OPSET, target.opsets[0]), target.opsets[1]
    preferred = max(target.opset, min(at_least, high))
    opset = preferred if from_keywords is None else from_keywords
    if not low <= opset <= high:
        raise ArgumentError(f"opset_version={opset}: target {target.name!r} takes {low}..{high}; choose one of these.")
    return opset


def _fits(fact: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return fact not in wanted["not"]
    return fact in wanted if isinstance(wanted, (list, tuple)) else fact == wanted


def _describe(name: str, wanted: Any) -> str:
    values = wanted["not"] if isinstance(wanted, Mapping) else wanted if isinstance(wanted, list) else [wanted]
    return f"{name}{'!=' if isinstance(wanted, Mapping) else '='}{'|'.join(map(str, values))}"


def first_opset(op_type: str) -> int | None:
    """The opset that introduced an operator of the default domain; None if there is no such operator."""
    return _first_opsets().get(op_type)


@cache
def _first_opsets() -> dict[str, int]:
    import onnx  # not at the top: the command line reads profiles, and is to start fast

    first: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            first[schema.name] = min(schema.since_version, first.get(schema.name, schema.since_version))
    return first
