"""The report as one HTML file that asks for nothing from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any
from urllib.parse import quote

from torch_onnx_compat.report.html import document, scrolling, section, table
from torch_onnx_compat.report.markdown import (
    ERROR_COLUMNS,
    KEPT_COLUMNS,
    LAYER_COLUMNS,
    TRIAL_COLUMNS,
    operator_columns,
    verdict_of,
)
from torch_onnx_compat.report.picture import draw
from torch_onnx_compat.report.plot import plot
from torch_onnx_compat.report.whole import pack

Facts = dict[str, Any]


def page(facts: Facts) -> str:
    """Writes the report as HTML: light and dark, for a phone, a desk and A4 paper."""
    parts = (_header(facts), *_why(facts), *_what(facts), _whole(facts), *_proof(facts))
    body = "\n".join(part for part in parts if part)
    return document(f"{facts['title']}: {facts['verdict']}", body, _script() if facts["whole"] else "")


def _header(facts: Facts) -> str:
    kind, sign = ("good", "\u2713") if facts["ok"] else ("bad", "\u2717")
    cells = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts["summary"].items())
    return (
        f"<header><h1>{escape(facts['title'])}</h1>"
        f'<p class="verdict {kind}"><span aria-hidden="true">{sign}</span> {escape(facts["verdict"])}</p>'
        f"<dl>{cells}</dl></header>"
    )


def _why(facts: Facts) -> list[str]:
    parts = []
    if facts["message"]:
        parts.append(section("What happened", scrolling("The error", f"<pre>{escape(facts['message'])}</pre>")))
    told = "".join(
        f"<li><strong>{escape(d['cause'])}.</strong> {escape(d['action'])}.</li>" for d in facts["diagnoses"][:3]
    )
    if told:
        parts.append(section("What to do", f"<ul>{told}</ul>"))
    if facts["difference"]:
        parts.append(section("Where", f"<p>{escape(facts['difference'])}</p>"))
    return parts


def _what(facts: Facts) -> list[str]:
    tensors = [
        (side, v["name"], v["type"], " \u00d7 ".join(map(str, v["shape"])))
        for side, values in (("input", facts["inputs"]), ("output", facts["outputs"]))
        for v in values
    ]
    applied = [(e["entry"], e["what"], _places(e["places"]), e["reason"] or e["exactness"]) for e in facts["applied"]]
    declined = [(e["entry"], _places(e["places"]), e["reason"]) for e in facts["declined"]]
    notes = "".join(f"<li>{escape(note)}</li>" for note in facts["notes"])
    changes = "".join(_change(change) for change in facts["changes"])
    return [
        _table_of("Inputs and outputs", ("", "name", "type", "shape"), tensors),
        _table_of("What was changed", ("entry", "what", "where", "how exact"), applied),
        section("The changes", f"<p>{escape(facts['stock'])}</p>{changes}") if changes or facts["stock"] else "",
        section("Rewritten source", scrolling("Rewritten source", _diff(facts["source"]))) if facts["source"] else "",
        _table_of("What was left alone", ("entry", "where", "why"), declined),
        _table_of("Tried before", ("exporter", "why it lost"), list(facts["rejected"].items())),
        section("Notes", f"<ul>{notes}</ul>") if notes else "",
    ]


def _change(change: Facts) -> str:
    """One entry: the graph around its first place before and after, and its code."""
    told = f"{change['entry']} at {change['place']}"
    sides = []
    for side in ("before", "after"):
        if change.get(side) is not None:
            there = f"{side.capitalize()}: {change[side]['there']} nodes there; where they differ most"
            sides.append((there, draw(change[side], f"{told}, {side}")))
    shown = "".join(f"<div><h4>{name}</h4>{body}</div>" for name, body in sides)
    shown = f'<div class="sides">{shown}</div>' if shown else ""
    if change.get("seen"):
        shown = f"<p>The picture at {escape(change['place'])} above shows this, too.</p>"
    code = scrolling(f"Code of {change['entry']}", f"<pre><code>{escape(change['code'])}</code></pre>")
    details = f"<details><summary>Code of {escape(change['entry'])}</summary>{code}</details>" if change["code"] else ""
    return f"<h3>{escape(told)}</h3>{shown}{details}"


def _diff(text: str) -> str:
    """A unified diff; its signs tell what its colours do."""
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    lines = (
        f'<span class="{kinds[line[0]]}">{escape(line)}</span>' if line[:1] in kinds else escape(line)
        for line in text.splitlines()
    )
    return f"<pre><code>{chr(10).join(lines)}</code></pre>"


def _proof(facts: Facts) -> list[str]:
    rows = [
        (r["case"], r["output"], f"{r['max_abs']:.2g}", f"{r['max_rel']:.2g}", r["tolerance"], verdict_of(r))
        for r in facts["table"]
    ]
    columns = operator_columns(facts)
    operators = [tuple(o[key] for key in columns) for o in facts["operators"]]
    seconds = [(step, f"{spent:.2f}") for step, spent in facts["seconds"].items()]
    code = f"<pre><code>{escape(facts['snippet'])}</code></pre>"
    return [
        _table_of("Verification", ("case", "output", "max abs", "max rel", "tolerance", "verdict"), rows),
        _table_of("Kept in float32", KEPT_COLUMNS, facts["kept"]),
        _table_of("Errors against eager float64", ERROR_COLUMNS, facts["errors"]),
        _table_of("Loss in eight bits", TRIAL_COLUMNS, facts["trials"]),
        _table_of("Layers in eight bits", LAYER_COLUMNS, facts["quantized"]),
        section("Error per layer", plot(facts["layers"])) if facts["layers"] else "",
        section("How to run it", scrolling("Code", code)) if facts["snippet"] else "",
        _table_of("Operators", tuple(columns.values()), operators),
        _table_of("Time", ("step", "seconds"), seconds),
    ]


def _whole(facts: Facts) -> str:
    """The graph, which a script draws from data in the page; and the way to Netron."""
    if not facts["whole"]:
        return ""
    name = escape(facts["title"])
    file = f'<a href="{escape(quote(facts["file"]))}">{name}</a>' if facts["file"] else name
    return section(
        "The graph",
        '<div id="whole"><noscript><p>A script draws the graph; this browser runs none.</p></noscript></div>'
        f'<script type="application/octet-stream" id="whole-data">{pack(facts["whole"])}</script>'
        f"<p>Netron shows every attribute and weight: <code>netron {name}</code>, or put {file} into "
        '<a href="https://netron.app">netron.app</a>, which keeps it in the browser.</p>',
    )


def _script() -> str:
    """What draws the graph: the layout, then the view."""
    folder = resources.files("torch_onnx_compat.report")
    layout, view = (folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in ("layout", "view"))
    return f"{layout}{view}"


def _places(places: Sequence[str]) -> str:
    more = f" and {len(places) - 8} more" if len(places) > 8 else ""
    return ", ".join(places[:8]) + more


def _table_of(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    body = table(title, head, rows)
    return section(title, body) if body else ""
