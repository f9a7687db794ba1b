"""Converts ONNX's own node tests, every case that the onnx package makes, and judges the new files by their outputs.

    python benchmarks/node_tests.py [--opsets 11,13,17,21] [--every N [--first M]] [--output FILE]
    python benchmarks/node_tests.py --targets openvino,opencv,tract,mnn,ncnn,rknn --output benchmarks/results/...

Each case is converted by `files.convert` and, beside it, by onnx's version converter. With --targets, each case is
converted for these engines, and the new file runs there, on the case's inputs; outputs are right within the engine's
tolerance. The new file runs in onnxruntime,
or in onnx's reference evaluator where onnxruntime has no kernel for it, on the case's inputs; its outputs are compared
with those of the case, within the case's tolerances.

* right: every output is right.
* random: random numbers decide the values; types and shapes are right.
* refused: the converter says that it cannot, and names why.
* named: the engine does not run the new file, or not right, which convert() finds, and keeps nothing; the error names
  the first node at which the engine goes wrong.
* rejected: the new file is not equal to the original, which convert() finds, and keeps nothing; no node is named.
* as the original: the engine computes the same for the original, and that is not what the case wants.
* rounding: the original's own rounding, or that of its inputs to the engine's float16, decides the values, which
  convert() says in its table or in a note.
* wrong: the new file is off, and the original is right in the same engine; or the new file does not load or run.
* fails: the converter raised an error that is none of its own, or its process died.
* no judge: neither onnxruntime nor the reference evaluator runs the original.
* not run: the file was made for an engine that cannot be given values of its types.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test.case.node as node_cases
import onnx.version_converter
import onnxruntime

from torch_onnx_compat import CompatError
from torch_onnx_compat.check.on_target import tolerance_of
from torch_onnx_compat.engines import ENGINES, EngineProcess
from torch_onnx_compat.errors import UnsupportedError, VerificationError
from torch_onnx_compat.files import convert
from torch_onnx_compat.files.random_values import random_values
from torch_onnx_compat.files.runner import Judge, Refused, Runner, flatten
from torch_onnx_compat.version import __version__

JUDGES: tuple[Judge, ...] = ("onnxruntime", "reference")
VERDICTS = (
    "right",
    "random",
    "refused",
    "named",
    "rejected",
    "as the original",
    "rounding",
    "wrong",
    "fails",
    "no judge",
    "not run",
)


def array(value: Any) -> Any:
    """A value of a case as arrays."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, (list, tuple)):
        return [array(item) for item in value]
    return None if value is None else np.asarray(value)


def is_right(found: Sequence[Any], wanted: Sequence[Any], rtol: float, atol: float) -> bool:
    """Whether outputs are those that a case wants."""
    one, other = flatten(found), flatten(wanted)
    return len(one) == len(other) and all(map(lambda a, b: _is_equal(a, b, rtol, atol), one, other))


def _is_equal(a: Any, b: Any, rtol: float, atol: float) -> bool:
    if a is None or b is None:
        return a is b
    if a.shape != b.shape:
        return False
    if b.dtype.kind in "OUS":
        return bool((a.astype(object) == b.astype(object)).all())
    if b.dtype.kind not in "biufc":
        a, b = a.astype(np.float32), b.astype(np.float32)
    return bool(np.allclose(a, b, rtol, atol, equal_nan=True))


class Case:
    """A node test with who runs it.

    Args:
        case: The test.
        runner: Runs files.
        folder: Where files go.
    """

    def __init__(self, case: Any, runner: Runner, folder: Path) -> None:
        self.name, self.model, self._runner, self._folder = case.name, case.model, runner, folder
        self.rtol, self.atol = case.rtol, case.atol
        names = [value.name for value in case.model.graph.input]
        given, self.wanted = ([array(value) for value in values] for values in case.data_sets[0])
        self.feeds = {name: value for name, value in zip(names, given, strict=False) if value is not None}
        self.path = folder / "original.onnx"
        self.path.write_bytes(case.model.SerializeToString())
        runs = {judge: self.run(self.path, judge) for judge in JUDGES}
        self.original = {judge: outputs for judge, outputs in runs.items() if outputs is not None}
        self.is_random = bool(random_values(case.model.graph)) or any(
            not is_right(self.run(self.path, j) or [], o, 0, 0) for j, o in self.original.items()
        )

    def run(self, path: Path, judge: Judge) -> list[Any] | None:
        """The outputs of a file; None where it is refused."""
        try:
            self._runner.open("case", path, judge)
            return self._runner.run("case", self.feeds)
        except Refused:
            return None

    def verdict(self, data: bytes) -> str:
        """What a converted file is worth."""
        path = self._folder / "new.onnx"
        path.write_bytes(data)
        same = False
        for judge in JUDGES:
            found = self.run(path, judge)
            if found is None:
                continue
            if self.is_random:
                return "random" if _shapes(found) == _shapes(self.wanted) else "wrong"
            if is_right(found, self.wanted, self.rtol, self.atol):
                return "right"
            wanted = self.original.get(judge)
            same |= wanted is not None and is_right(found, wanted, self.rtol, self.atol)
        return "as the original" if same else "wrong" if self.original else "no judge"


def _shapes(values: Sequence[Any]) -> list[tuple[int, ...]]:
    return [np.shape(value) for value in flatten(values)]


def by_onnx(case: Case, opset: int) -> bytes | None:
    """The case converted by onnx's version converter; None where it refuses."""
    try:
        model = onnx.version_converter.convert_version(case.model, opset)
    except Exception:  # RuntimeError and ConvertError; what it says is its way of refusing
        return None
    is_done = any(o.domain in ("", "ai.onnx") and o.version == opset for o in model.opset_import)
    return model.SerializeToString() if is_done else None


def judge_ours(case: Case, wanted: int | str, runner: Runner, process: EngineProcess | None = None) -> tuple[str, str]:
    """The verdict on our file for an opset, or for a target that is an engine's name, and why."""
    options: dict[str, Any] = {"opset": wanted} if isinstance(wanted, int) else {"target": wanted}
    try:
        result = convert(case.path, inputs=[case.feeds], runner=runner, **options)
    except UnsupportedError as error:
        return "refused", str(error)
    except VerificationError as error:
        return ("named" if error.place is not None else "rejected"), str(error)
    except CompatError as error:
        return ("refused" if case.original else "no judge"), str(error)
    except Exception as error:
        return "fails", f"{type(error).__name__}: {error}"
    assert result.model_bytes is not None
    if process is None:
        return case.verdict(result.model_bytes), ""
    verdict, why = judge_in_engine(case, result.model_bytes, process, str(wanted))
    rows = [row for row in result.table if row.case.startswith("given on ")]
    is_told = any("values off where the original" in row.detail for row in rows)
    is_told |= any(note.startswith("case 'given' says nothing about") for note in result.notes)
    return ("rounding" if verdict == "wrong" and is_told else verdict), why


def judge_in_engine(case: Case, data: bytes, process: EngineProcess, engine: str) -> tuple[str, str]:
    """The verdict on a file in an engine, and why."""
    values = [*case.feeds.values(), *case.wanted]
    if not all(isinstance(value, np.ndarray) and value.dtype.kind in "biuf" for value in values):
        return "not run", ""
    outcome = process.run(data, case.feeds, [output.name for output in case.model.graph.output])
    if outcome.status != "ran":
        return "wrong", f"fails: {outcome.error}"
    rtol, atol = tolerance_of(ENGINES[engine])
    pairs = zip(outcome.outputs, case.wanted, strict=True)
    # Some engines have no scalars, and give no shape of what is empty.
    found = [np.asarray(a).reshape(np.shape(b)) if np.size(a) == np.size(b) <= 1 else a for a, b in pairs]
    if case.is_random:
        return "random", ""
    rtol, atol = max(rtol, case.rtol), max(atol, case.atol)
    if is_right(found, case.wanted, rtol, atol):
        return "right", ""
    same = any(is_right(found, outputs, rtol, atol) for outputs in case.original.values())
    return ("as the original" if same else "wrong"), ""


def judge_onnx(case: Case, opset: int) -> str:
    """The verdict on the version converter's file."""
    data = by_onnx(case, opset)
    return "refused" if data is None else case.verdict(data)


def main() -> None:
    """Converts the cases and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opsets", default="11,13,17,21")
    parser.add_argument("--targets", default="", help="engines, instead of opsets")
    parser.add_argument("--every", type=int, default=1, help="every Nth case alone")
    parser.add_argument("--first", type=int, default=0, help="number of the first of them")
    parser.add_argument("--match", default="")
    parser.add_argument("--rows", type=Path, help="a row for each case; an earlier run's are not made again")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "node_tests.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    targets = [name for name in options.targets.split(",") if name]
    wanted: list[int | str] = [*targets] or [int(text) for text in options.opsets.split(",")]
    rows = _read(options.rows)
    every = node_cases.collect_testcases(None)
    count, cases = len(every), [case for case in every if options.match in case.name][options.first :: options.every]
    with ExitStack() as stack:
        runner, folder = stack.enter_context(Runner()), stack.enter_context(tempfile.TemporaryDirectory())
        processes = {name: runner.engine(ENGINES[name]) for name in targets}
        for one in cases:
            missing = [goal for goal in wanted if str(goal) not in rows.get(one.name, {})]
            if not missing:
                continue
            case, start = Case(one, runner, Path(folder)), time.process_time()
            row: dict[str, Any] = {"case": case.name}
            for goal in missing:
                ours, why = judge_ours(case, goal, runner, processes.get(str(goal)))
                row[str(goal)] = [ours, judge_onnx(case, goal) if isinstance(goal, int) else "", why]
            row["seconds"] = round(time.process_time() - start, 3)
            _add(rows, row)
            if options.rows:
                with options.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        versions = {name: process.version for name, process in processes.items()}
    page = _page([*rows.values()], wanted, count, versions)
    options.output.write_text(page, encoding="utf-8")
    print(page)


def _read(path: Path | None) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        _add(rows, json.loads(line))
    return rows


def _add(rows: dict[str, dict[str, Any]], row: dict[str, Any]) -> None:
    """Adds what was measured of a case to what is known of it."""
    known = rows.get(row["case"], {})
    rows[row["case"]] = {**known, **row, "seconds": known.get("seconds", 0) + row["seconds"]}


_CAUSES = {
    "does not run": "does not run the new file, case '",
    "infinities": "NaN or infinities stand elsewhere",
    "shape": "of shape (",
    "values": "values differ",
    "before": "",
}
"""Causes of rejection by what the errors say, in the order in which they are looked for."""


def _cause(why: str) -> str:
    if why.startswith("the new file"):  # onnxruntime's word
        return "before"
    return next(cause for cause, text in _CAUSES.items() if text in why)


def _causes(rows: Sequence[dict[str, Any]], engines: Sequence[str]) -> list[str]:
    """The table of causes for which engines' files are rejected; nothing without engines."""
    if not engines:
        return []
    lines = ["", "Why the files for engines are rejected, with a node named or without, of which nothing is kept:", ""]
    lines += ["| engine | does not run it | infinities or NaN | another shape | other values | before the engine |"]
    lines += ["|---|---|---|---|---|---|"]
    for name in engines:
        causes = Counter(_cause(row[name][2]) for row in rows if row.get(name, [""])[0] in ("named", "rejected"))
        lines.append(f"| {name} | {' | '.join(str(causes[cause]) for cause in _CAUSES)} |")
    return lines


def _named(rows: Sequence[dict[str, Any]], engines: Sequence[str]) -> list[str]:
    """The operators at which engines were seen to go wrong; nothing without engines."""
    lines = ["", "The operators at which engines were seen to go wrong:", ""] if engines else []
    for name in engines:
        told = [row[name][2] for row in rows if row.get(name, [""])[0] == "named"]
        counts = Counter(why.rpartition(" goes wrong is ")[2].partition(" ")[0] for why in told)
        lines.append(f"* {name}: {', '.join(f'{operator} {count}' for operator, count in counts.most_common())}")
    return lines


def _headline(why: str) -> str:
    lines = [line.strip() for line in why.splitlines() if line.startswith("  ")]
    if not lines:
        return "the file itself" if "original.onnx" in why else why[:60]
    return lines[0].partition(",")[0]


def _page(rows: Sequence[dict[str, Any]], wanted: Sequence[int | str], total: int, versions: dict[str, str]) -> str:
    counts: dict[tuple[str, int | str], Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    bad = []
    for row in rows:
        for opset in wanted:
            if str(opset) not in row:
                continue
            ours, theirs, why = row[str(opset)]
            counts["files.convert", opset][ours] += 1
            counts["onnx.version_converter", opset][theirs] += 1
            if ours in ("wrong", "fails", "rejected"):
                bad.append(f"{row['case']} to {opset}, {ours}: " + re.sub(r"/tmp/[^\s\"']*/", "", why))
            if ours == "refused":
                reasons[_headline(why)] += 1
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    lines = [
        "# ONNX's node tests, converted",
        "",
        f"Measured {date} with torch_onnx_compat {__version__}, onnx {onnx.__version__}, onnxruntime "
        f"{onnxruntime.__version__}{''.join(f', {name} {v}' for name, v in versions.items())}, by "
        f"`python benchmarks/node_tests.py`: {len(rows)} of {total} cases, "
        f"{sum(row['seconds'] for row in rows):.0f} processor seconds besides those of the engines. The script's first "
        "lines say what the words mean.",
        "",
        f"| converter | to {'engine' if versions else 'opset'} | cases | {' | '.join(VERDICTS)} |",
        f"|---|---|---|{'---|' * len(VERDICTS)}",
    ]
    for name in ("files.convert", *(() if versions else ("onnx.version_converter",))):
        for opset in wanted:
            numbers = " | ".join(str(counts[name, opset][verdict]) for verdict in VERDICTS)
            lines.append(f"| {name} | {opset} | {counts[name, opset].total()} | {numbers} |")
    lines += ["", "What `files.convert` refuses, by the first operator that it names, cases times opsets:", ""]
    lines += [", ".join(f"{name} {n}" for name, n in reasons.most_common())]
    lines += _causes(rows, [*versions])
    lines += _named(rows, [*versions])
    lines += ["", "Wrong, failed or rejected:", "", *(f"* {line}" for line in bad or ["none"])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
