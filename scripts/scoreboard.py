"""Writes docs/scoreboard.md and docs/scoreboard.html from the rows in docs/scoreboard/*.jsonl, and sorts those.

The rows come from sweeps of the models that scripts/scoreboard_models.py chose:

    torch-onnx-compat sweep @docs/scoreboard/timm.txt --stock --time-limit 900 --memory-limit 9000 \
        --output docs/scoreboard/timm.jsonl
    python scripts/scoreboard.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from torch_onnx_compat.sweep import Row, read_rows  # noqa: E402
from torch_onnx_compat.sweep.page import COUNTED, count_verdicts, page, told_when  # noqa: E402
from torch_onnx_compat.sweep.summary import FAILED, TITLES, causes_of_failure, group_rows  # noqa: E402

FOLDER = ROOT / "docs" / "scoreboard"
PAGE = ROOT / "docs" / "scoreboard.md"
HTML = ROOT / "docs" / "scoreboard.html"
ENGINES = FOLDER / "engines"
"""Rows of other targets, a file each, of the models in its dense.txt."""
SHOWN = 6
"""Models named with a cause."""

INTRODUCTION = """\
# The scoreboard

All models of torchvision; all architectures of transformers that the zoo has; of every family of timm, ultralytics and
smp the smallest; as *timm_random* 300 more of timm, drawn by seed 1 from those of up to 500 million parameters, 60 of
them by torch's TorchScript exporter too; and architectures and transforms of torchaudio, which needs torch 2.11, most
of them with a dynamic length as well. With random weights and batch norms that normalise, exported with a dynamic batch
from an example of batch 1: by `export_compat`, by `torch.onnx.export` with its defaults, and by
`torch.onnx.export(dynamo=False)`. Every file, whoever wrote it, is run in onnxruntime against eager torch at the
example, on other values and at other batches, within the tolerances of `check/compare.py`; each export is a process of
its own with one thread. Its limits were 15 minutes and 9 GB, for the ten largest 25 minutes and 16 GB; 2 minutes and 6
GB for the older rows of timm, and 4 minutes and 6 GB for stock torch. A reason names the limit.

*verified*: the file computes what the model computes. *wrong*: there is a file, and it does not, or onnxruntime does
not run it at another batch. *refused*: no file, and a reason. *other*: the process crashed or hit a limit, or the zoo
did not build the model. Medians are over the verified; memory is the peak of the whole process, imports included.
Processes shared two cores with other work, so times are for comparison within a line at best, and some of the models
that ran out of time would not on a machine of their own. Lines of one list compare only where they count the same
models: what is missing is listed.

Written by `python scripts/scoreboard.py` from the rows in [scoreboard/](scoreboard), one file a list;
[sweep.md](sweep.md) says how they are made. [scoreboard.html](scoreboard.html) has every model.
"""

DENSE = """
## Dense models in other engines

Models whose outputs are pictures or one row for each cell: segmentation, depth, optical flow, super-resolution, and
ultralytics' detectors at their smallest ([list](scoreboard/engines/dense.txt)). Exported by `export_compat` for that
target, with a dynamic batch as above, and verified in onnxruntime and in that engine.
"""


def rows_of(path: Path) -> list[Row]:
    """The rows of a file by name; of a model measured twice, with other versions or code, the later."""
    found = {row.name: row for row in read_rows(path)}
    return [found[name] for name in sorted(found)]


def rows() -> list[Row]:
    """All committed rows."""
    return [row for path in sorted(FOLDER.glob("*.jsonl")) for row in rows_of(path)]


def listed() -> dict[str, list[str]]:
    """The models that are to be measured, by list."""
    return {
        path.stem: [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted(FOLDER.glob("*.txt"))
    }


def markdown(everything: Sequence[Row]) -> str:
    """docs/scoreboard.md."""
    lines = [INTRODUCTION, told_when(everything), "", "## Lists", ""]
    lists = {spec: title for title, specs in listed().items() for spec in specs}
    lines += _table(COUNTED, count_verdicts(everything, lambda row: lists.get(row.spec, row.zoo)))
    lines += _unfinished(everything)
    ours = [row for row in everything if row.by == "ours"]
    lines += ["", "## What export_compat does not do", "", *_failure(ours)]
    lines += _in_engines()
    for by in ("torch", "torchscript"):
        causes = causes_of_failure(row for row in everything if row.by == by)
        lines += ["", f"## What {TITLES[by]} does not do", ""]
        cells = [(str(len(held)), v, _plain(reason), _named(held)) for v, reason, held in causes]
        lines += _table(("models", "verdict", "reason", "which"), cells)
    for source, held in group_rows(everything, lambda row: row.zoo).items():
        lines += ["", f"## Families of {source}", ""]
        lines += _table(COUNTED, count_verdicts(held, lambda row: row.family))
    return "\n".join([*lines, ""])


def _unfinished(everything: Sequence[Row]) -> list[str]:
    """What the lists name and no row tells."""
    there = {(row.spec, row.by) for row in everything}
    missing = []
    for name, specs in listed().items():
        for by, title in TITLES.items():
            lacking = [spec for spec in specs if (spec, by) not in there]
            if lacking:
                missing.append(f"* {name}, {title}: {len(lacking)} of {len(specs)}, e.g. {', '.join(lacking[:3])}")
    return ["", "Not measured yet, for lack of time:", "", *missing] if missing else []


def _in_engines() -> list[str]:
    """What was exported for other targets and verified in them."""
    lines = [DENSE]
    for path in sorted(ENGINES.glob("*.jsonl")):
        held = rows_of(path)
        lines += [f"### {path.stem}", "", told_when(held), ""]
        lines += [*_table(COUNTED, count_verdicts(held, lambda row: row.zoo)), "", *_failure(held), ""]
    return lines[:-1]


def _failure(rows: Iterable[Row]) -> list[str]:
    failed = sorted((row for row in rows if row.verdict in FAILED), key=lambda row: row.spec)
    return [f"* `{row.spec}`: {row.verdict}: {_plain(row.reason)}" for row in failed] or ["Nothing."]


def _named(held: Sequence[Row]) -> str:
    specs = ", ".join(row.spec.rpartition(":")[2] for row in held[:SHOWN])
    return specs + (f" and {len(held) - SHOWN} more" if len(held) > SHOWN else "")


def _plain(text: str) -> str:
    """Text that Markdown leaves alone."""
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return text


def _table(head: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    body = [f"| {' | '.join(line)} |" for line in cells]
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *body] if body else ["None."]


def html(everything: Sequence[Row]) -> str:
    """docs/scoreboard.html, with the rows of other targets."""
    engines = [row for path in sorted(ENGINES.glob("*.jsonl")) for row in rows_of(path)]
    return page([*everything, *engines], title="The scoreboard")


def main() -> None:
    for path in (*FOLDER.glob("*.jsonl"), *ENGINES.glob("*.jsonl")):
        path.write_bytes(b"".join(row.to_line() for row in rows_of(path)))
    everything = rows()
    PAGE.write_text(markdown(everything), encoding="utf-8")
    HTML.write_text(html(everything), encoding="utf-8")
    print(f"{PAGE.name}, {HTML.name}: {len(everything)} rows")


if __name__ == "__main__":
    main()
