"""A sweep as one HTML file that asks for nothing from outside."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.report.html import Markup, document, section, table
from torch_onnx_compat.sweep.against import Change
from torch_onnx_compat.sweep.chart import count_shared, image
from torch_onnx_compat.sweep.job import Row
from torch_onnx_compat.sweep.summary import TITLES, Count, best_of_stock, causes_of_failure, count, group_rows


def write_page(path: str | os.PathLike[str], rows: Sequence[Row], changed: Sequence[Change] = ()) -> Path:
    """Writes the page.

    Args:
        path: Where to.
        rows: What it shows.
        changed: What has changed since an earlier sweep.

    Raises:
        CompatError: The file cannot be written.
    """
    destination = Path(path)
    try:
        destination.write_text(page(rows, changed), encoding="utf-8")
    except OSError as error:
        raise CompatError(f"{destination}: cannot be written: {error.strerror or error}.") from error
    return destination


def page(rows: Sequence[Row], changed: Sequence[Change] = (), title: str = "Sweep") -> str:
    """The page: counts by zoo and family, what has changed, failures by cause, and every model.

    Args:
        rows: What it shows. Where they are of several targets, the counts are of the one with the most rows, and each
            of them has a column in a table of the models.
        changed: What has changed since an earlier sweep.
        title: Its heading.
    """
    targets = [target for target, _ in Counter(row.target for row in rows).most_common()]
    main = [row for row in rows if row.target == targets[0]]
    several = len(targets) > 1
    shared = count_shared(main)
    parts = [
        f"<header><h1>{escape(title)}</h1><p>{escape(told_when(rows))}</p></header>",
        image(shared) if len(shared) > 1 else "",
        _section(
            "Zoos", COUNTED, _linked(count_verdicts(main, lambda row: row.zoo), "zoo", targets[0] if several else "")
        ),
    ]
    if several:
        parts.append(_section("Engines", ("model", *targets), _by_target(rows, targets)))
    if changed:
        cells = [(c.kind, c.spec, TITLES[c.by], c.text) for c in changed]
        parts.append(_section("Changes", ("change", "model", "exported by", "what"), cells))
    causes = [
        (v, TITLES[held[0].by], str(len(held)), reason, _links(held))
        for by in group_rows(main, lambda row: row.by).values()
        for v, reason, held in causes_of_failure(by)
    ]
    parts.append(_section("Failures", ("verdict", "exported by", "models", "reason", "which"), causes))
    parts += [
        _section(
            f"{source}: families",
            COUNTED,
            _linked(count_verdicts(held, lambda row: row.family), "family", targets[0] if several else ""),
        )
        for source, held in group_rows(main, lambda row: row.zoo).items()
    ]
    ordered = sorted(rows, key=lambda row: row.name)
    data = [
        {"zoo": r.zoo, "family": r.family, "by": TITLES[r.by], "verdict": r.verdict}
        | ({"target": r.target} if several else {})
        for r in ordered
    ]
    models = table(
        "Models", _columns(several), (_model(row, several) for row in ordered), attributes=data, sortable=True
    )
    parts.append(section("Models", models or "<p>None.</p>", "models"))
    script = resources.files("torch_onnx_compat.report").joinpath("tables.js").read_text(encoding="utf-8")
    return document(title, "\n".join(parts), script, wide=True)


def told_when(rows: Sequence[Row]) -> str:
    """Days, targets and versions of the rows."""
    days = sorted({row.date for row in rows if row.date})
    packages = sorted({package for row in rows for package in row.versions.split(", ") if package})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "never"
    targets = ", ".join(sorted({row.target for row in rows}))
    return f"Measured {when} for {targets}, with {', '.join(packages)}."


COUNTED = (
    "of",
    "exported by",
    "models",
    "verified",
    "wrong",
    "refused",
    "other",
    "median s",
    "median nodes",
    "median MB",
)
"""Columns of `count_verdicts`."""


def count_verdicts(rows: Iterable[Row], key: Callable[[Row], str]) -> list[tuple[str, ...]]:
    """One line for each group and exporter, and one for the best of torch's two."""
    lines: list[tuple[str, ...]] = []
    for name, held in group_rows(rows, key).items():
        lines += [(name, *_cells(c)) for c in count(held)]
        best = list(best_of_stock(held).values())
        if best:
            good, wrong, refused = (best.count(v) for v in ("verified", "wrong", "refused"))
            other = len(best) - good - wrong - refused
            cells = (str(len(best)), str(good), str(wrong), str(refused), str(other), "", "", "")
            lines.append((name, "torch.onnx.export, better of both", *cells))
    return lines


def _cells(c: Count) -> tuple[str, ...]:
    known = [c.verdicts.get(v, 0) for v in ("verified", "wrong", "refused")]
    numbers = [str(n) for n in (c.total, *known, c.total - sum(known))]
    return (TITLES[c.by], *numbers, f"{c.export_s:.1f}", f"{c.nodes:.0f}", f"{c.memory:.0f}")


_MODELS = ("model", "size", "exported by", "verdict", "exporter", "opset", "nodes", "s", "MB", "reason")
_SHOWN = 12
"""Models named with a cause; the list of models has the others."""


def _columns(several: bool) -> tuple[str, ...]:
    return (*_MODELS[:2], "target", *_MODELS[2:]) if several else _MODELS


def _model(row: Row, several: bool) -> tuple[str, ...]:
    numbers = (str(row.opset or ""), str(row.nodes or ""), f"{row.export_s:.1f}", str(row.memory))
    target = (row.target,) if several else ()
    return (row.spec, row.size, *target, TITLES[row.by], row.verdict, row.exporter, *numbers, row.reason)


def _by_target(rows: Sequence[Row], targets: Sequence[str]) -> list[list[str]]:
    """What became of export_compat's files, for each model that was exported for several targets; first the counts."""
    ours = [row for row in rows if row.by == "ours"]
    held = {model: of for model, of in group_rows(ours, lambda row: f"{row.spec} {row.size}").items() if len(of) > 1}
    found = {model: {row.target: row.verdict for row in of} for model, of in held.items()}
    lines = [["verified of those here", *(_share(found.values(), target) for target in targets)]]
    for model, verdicts in found.items():
        spec = held[model][0].spec
        links = (_link(verdicts[t], {"model": spec, "target": t}) if t in verdicts else "" for t in targets)
        lines.append([model, *links])
    return lines


def _share(found: Iterable[Mapping[str, str]], target: str) -> str:
    verdicts = [one[target] for one in found if target in one]
    return f"{verdicts.count('verified')} of {len(verdicts)}"


def _linked(lines: Iterable[Sequence[str]], key: str, target: str = "") -> list[list[str]]:
    """The counts of `count_verdicts` as links to their models; those of the better of two exporters have no models."""
    verdicts = dict(zip(COUNTED, COUNTED, strict=True)) | {"models": ""}
    found = []
    for name, by, *cells in lines:
        counts = zip(COUNTED[2:], cells, strict=True)
        linked = [
            _link(text, {key: name, "by": by, "verdict": verdicts[column], "target": target})
            if column in ("models", "verified", "wrong", "refused") and text != "0" and by in TITLES.values()
            else text
            for column, text in counts
        ]
        found.append([name, by, *linked])
    return found


def _links(held: Sequence[Row]) -> Markup:
    shown = ", ".join(_link(row.spec, {"model": row.spec}) for row in held[:_SHOWN])
    return Markup(shown + (f" and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""))


def _link(text: str, chosen: dict[str, str]) -> Markup:
    """A link to the list of models; a script shows only those that were chosen."""
    told = "".join(f' data-{name}="{escape(value)}"' for name, value in chosen.items() if value)
    return Markup(f'<a href="#models"{told}>{escape(text)}</a>')


def _section(title: str, head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return section(title, table(title, head, lines, sortable=True) or "<p>None.</p>")
