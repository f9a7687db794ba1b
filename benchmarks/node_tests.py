"""Converts ONNX's own node tests, every case that the onnx package makes, and judges the new files by their outputs.

    python benchmarks/node_tests.py [--opsets 11,13,17,21] [--first N] [--output benchmarks/results/node_tests.md]

Each case is converted by `files.convert` and, beside it, by onnx's version converter. The new file runs in onnxruntime,
or in onnx's reference evaluator where onnxruntime has no kernel for it, on the case's inputs; its outputs are compared
with those of the case, within the case's tolerances.

* right: every output is right.
* random: random numbers decide the values; types and shapes are right.
* refused: the converter says that it cannot, and names why.
* rejected: the new file is not equal to the original, which convert() finds, and keeps nothing.
* as the original: the engine computes the same for the original, and that is not what the case wants.
* wrong: the new file is off, and the original is right in the same engine; or the new file does not load or run.
* fails: the converter raised an error that is none of its own, or its process died.
* no judge: neither onnxruntime nor the reference evaluator runs the original.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test.case.node as node_cases
import onnx.version_converter
import onnxruntime

from torch_onnx_compat import CompatError
from torch_onnx_compat.errors import UnsupportedError, VerificationError
from torch_onnx_compat.files import convert
from torch_onnx_compat.files.random_values import random_values
from torch_onnx_compat.files.runner import Judge, Refused, Runner, flatten
from torch_onnx_compat.version import __version__

JUDGES: tuple[Judge, ...] = ("onnxruntime", "reference")
VERDICTS = ("right", "random", "refused", "rejected", "as the original", "wrong", "fails", "no judge")


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


def judge_ours(case: Case, opset: int, runner: Runner) -> tuple[str, str]:
    """The verdict on our file, and why."""
    try:
        result = convert(case.path, opset=opset, inputs=[case.feeds], runner=runner)
    except UnsupportedError as error:
        return "refused", str(error)
    except VerificationError as error:
        return "rejected", str(error)
    except CompatError as error:
        return ("refused" if case.original else "no judge"), str(error)
    except Exception as error:
        return "fails", f"{type(error).__name__}: {error}"
    assert result.model_bytes is not None
    return case.verdict(result.model_bytes), ""


def judge_onnx(case: Case, opset: int) -> str:
    """The verdict on the version converter's file."""
    data = by_onnx(case, opset)
    return "refused" if data is None else case.verdict(data)


def main() -> None:
    """Converts the cases and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opsets", default="11,13,17,21")
    parser.add_argument("--first", type=int)
    parser.add_argument("--match", default="")
    parser.add_argument("--rows", type=Path, help="a row for each case; an earlier run's are not made again")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "node_tests.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    opsets = [int(text) for text in options.opsets.split(",")]
    rows = _read(options.rows)
    done = {row["case"] for row in rows}
    cases = [c for c in node_cases.collect_testcases(None) if options.match in c.name][: options.first]
    with Runner() as runner, tempfile.TemporaryDirectory() as folder:
        for one in cases:
            if one.name in done:
                continue
            case, start = Case(one, runner, Path(folder)), time.process_time()
            row: dict[str, Any] = {"case": case.name}
            for opset in opsets:
                ours, why = judge_ours(case, opset, runner)
                row[str(opset)] = [ours, judge_onnx(case, opset), why]
            rows.append({**row, "seconds": round(time.process_time() - start, 3)})
            if options.rows:
                with options.rows.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    page = _page(rows, opsets)
    options.output.write_text(page, encoding="utf-8")
    print(page)


def _read(path: Path | None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []


def _headline(why: str) -> str:
    lines = [line.strip() for line in why.splitlines() if line.startswith("  ")]
    if not lines:
        return "the file itself" if "original.onnx" in why else why[:60]
    return lines[0].partition(",")[0]


def _page(rows: Sequence[dict[str, Any]], opsets: Sequence[int]) -> str:
    counts: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    bad = []
    for row in rows:
        for opset in opsets:
            ours, theirs, why = row[str(opset)]
            counts["files.convert", opset][ours] += 1
            counts["onnx.version_converter", opset][theirs] += 1
            if ours in ("wrong", "fails", "rejected"):
                bad.append(f"{row['case']} to {opset}, {ours}: {why}")
            if ours == "refused":
                reasons[_headline(why)] += 1
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    lines = [
        "# ONNX's node tests, converted",
        "",
        f"Measured {date} with torch_onnx_compat {__version__}, onnx {onnx.__version__}, onnxruntime "
        f"{onnxruntime.__version__}, by `python benchmarks/node_tests.py`: {len(rows)} cases, "
        f"{sum(row['seconds'] for row in rows):.0f} processor seconds besides those of the engines. The script's first "
        "lines say what the words mean.",
        "",
        f"| converter | to opset | {' | '.join(VERDICTS)} |",
        f"|---|---|{'---|' * len(VERDICTS)}",
    ]
    for name in ("files.convert", "onnx.version_converter"):
        for opset in opsets:
            numbers = " | ".join(str(counts[name, opset][verdict]) for verdict in VERDICTS)
            lines.append(f"| {name} | {opset} | {numbers} |")
    lines += ["", "What `files.convert` refuses, by the first operator that it names, cases times opsets:", ""]
    lines += [", ".join(f"{name} {n}" for name, n in reasons.most_common())]
    lines += ["", "Wrong, failed or rejected:", "", *(f"* {line}" for line in bad or ["none"])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
