"""The report as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Facts = dict[str, Any]


KEPT_COLUMNS = ("where", "node", "why", "loss alone", "largest value")
ERROR_COLUMNS = ("case", "output", "file", "rounded at each node", "eager float32", "eager half", "verdict")
TRIAL_COLUMNS = ("layers in float32", "loss of the file", "rounded at each pair", "verdict")
LAYER_COLUMNS = ("where", "node", "effect alone", "rounding", "range", "why in float32")


def markdown(facts: Facts) -> str:
    """Writes the report as Markdown."""
    parts = [f"# {facts['title']}: {facts['verdict']}", _table(("", ""), facts["summary"].items())]
    if facts["message"]:
        parts.append("```text\n" + facts["message"] + "\n```")
    parts += [f"**Why:** {d['cause']}. **What to do:** {d['action']}." for d in facts["diagnoses"][:3]]
    if facts["difference"]:
        parts.append(f"**Where:** {facts['difference']}")
    tensors = [(v["name"], v["type"], _shape(v["shape"])) for v in (*facts["inputs"], *facts["outputs"])]
    changes = [(e["entry"], e["what"], ", ".join(e["places"]), e["reason"]) for e in facts["applied"]]
    declined = [(e["entry"], ", ".join(e["places"]), e["reason"]) for e in facts["declined"]]
    rows = [
        (r["case"], r["output"], f"{r['max_abs']:.2g}", f"{r['max_rel']:.2g}", r["tolerance"], verdict_of(r))
        for r in facts["table"]
    ]
    layers = [(x["module"], f"{x['error']:.2g}", f"{x['tolerance']:.2g}") for x in facts["layers"]]
    columns = operator_columns(facts)
    operators = [[o[key] for key in columns] for o in facts["operators"]]
    sections: list[tuple[str, Sequence[str], Sequence[Sequence[Any]]]] = [
        ("Inputs and outputs", ("name", "type", "shape"), tensors),
        ("Applied", ("entry", "what", "where", "why"), changes),
        ("Declined", ("entry", "where", "why"), declined),
        ("Verification", ("case", "output", "max abs", "max rel", "tolerance", "verdict"), rows),
        ("Kept in float32", KEPT_COLUMNS, facts["kept"]),
        ("Errors against eager float64", ERROR_COLUMNS, facts["errors"]),
        ("Loss in eight bits", TRIAL_COLUMNS, facts["trials"]),
        ("Layers in eight bits", LAYER_COLUMNS, facts["quantized"]),
        ("Error per layer", ("module", "relative error", "explained by rounding"), layers),
        ("Operators", tuple(columns.values()), operators),
        ("Time", ("step", "seconds"), list(facts["seconds"].items())),
        ("Tried before", ("exporter", "why it lost"), list(facts["rejected"].items())),
    ]
    parts += [f"## {title}\n\n{_table(head, lines)}" for title, head, lines in sections if lines]
    if facts["stock"]:
        parts.append(facts["stock"])
    if facts["source"]:
        parts.append(f"## Rewritten source\n\n```diff\n{facts['source']}\n```")
    if facts["notes"]:
        parts.append("## Notes\n\n" + "\n".join(f"* {note}" for note in facts["notes"]))
    if facts["snippet"]:
        parts.append(f"## How to run it\n\n```{facts['language']}\n{facts['snippet']}```")
    return "\n\n".join(parts) + "\n"


def operator_columns(facts: Facts) -> dict[str, str]:
    """The keys of the rows of operators that there is something to tell of, with their headings."""
    target = facts["summary"].get("target", "the target")
    columns = {"operator": "operator", "before": "nodes before", "count": "nodes", "verdict": f"on {target}"}
    if any(row.get("before") is None for row in facts["operators"]):
        del columns["before"]
    return columns


def verdict_of(row: Facts) -> str:
    """One row's verdict in words."""
    verdict = "ok" if row["ok"] else "wrong"
    return f"{verdict}: {row['detail']}" if row["detail"] else verdict


def _shape(shape: Sequence[Any]) -> str:
    return " x ".join(map(str, shape)) or "scalar"


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
