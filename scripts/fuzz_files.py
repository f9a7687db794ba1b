"""Converts random ONNX graphs and broken files, and writes a row for each; goes on where an earlier run ended.

    python scripts/fuzz_files.py --first-seed 1000 --count 2000 --out files.jsonl [--broken bytes|hostile]
    python scripts/fuzz_files.py --page results/fuzz_files.md files.jsonl broken.jsonl hostile.jsonl [earlier.jsonl]

The verdicts: converted, refused (one clear error, nothing written), wrong, crash (any other error), none (no graph).
Each converted file is judged by running it and the original once more, on numbers that its proof has not seen.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from fuzz.file_judge import judge_broken, judge_seed  # noqa: E402

from torch_onnx_compat.files.runner import Runner  # noqa: E402
from torch_onnx_compat.version import __version__  # noqa: E402


def main() -> None:
    """Runs the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--broken", choices=("bytes", "hostile"), help="files with broken bytes, or hostile graphs")
    parser.add_argument(
        "--page",
        nargs="+",
        type=Path,
        help="the page; the rows of random graphs, of broken and of hostile files; and random graphs of earlier code",
    )
    options = parser.parse_args()
    if options.page:
        page, *rows = options.page
        page.write_text(write_page(*([json.loads(line) for line in path.read_text().splitlines()] for path in rows)))
        return
    warnings.simplefilter("ignore")
    judge = partial(judge_broken, kind=options.broken) if options.broken else judge_seed
    known = options.out.read_text().splitlines() if options.out and options.out.exists() else []
    rows = [json.loads(line) for line in known]
    done = {row["seed"] for row in rows}
    with Runner(limit=60) as runner, tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first_seed, options.first_seed + options.count):
            if seed in done:
                continue
            row = judge(seed, runner, Path(folder))
            rows.append(row)
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            if row["verdict"] in ("wrong", "crash"):
                print(json.dumps(row), flush=True)
    print(dict(Counter(row["verdict"] for row in rows)))
    print(dict(Counter(row["kind"] for row in rows if "kind" in row)))


def write_page(
    graphs: Sequence[dict[str, Any]],
    broken: Sequence[dict[str, Any]],
    hostile: Sequence[dict[str, Any]],
    earlier: Sequence[dict[str, Any]] = (),
) -> str:
    """The page with the counts of all."""
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    lines = [
        "# Random and broken files, converted",
        "",
        f"Measured {date} with torch_onnx_compat {__version__}, onnx {onnx.__version__}, onnxruntime "
        f"{onnxruntime.__version__}, by `python scripts/fuzz_files.py`, which says what the words mean.",
        "",
        "| files | seeds | converted | refused | wrong | crash | no graph |",
        "|---|---|---|---|---|---|---|",
    ]
    parts = {"random graphs": graphs, "random graphs, on earlier code of the day": earlier}
    for name, rows in {**parts, "broken files": broken, "hostile files": hostile}.items():
        if not rows:
            continue
        counts = Counter(row["verdict"] for row in rows)
        seeds = [row["seed"] for row in rows]
        numbers = " | ".join(str(counts[word]) for word in ("converted", "refused", "wrong", "crash", "none"))
        lines.append(f"| {name} | {_ranges(seeds)} | {numbers} |")
    ways = Counter(row["how"] for row in hostile if "how" in row)
    refused = Counter(row["how"] for row in hostile if row["verdict"] == "refused")
    graphs = [*graphs, *earlier]
    kinds = Counter(row["kind"] for row in graphs if "kind" in row)
    cut = sum(any(key in row for key in SURGERY) for row in graphs)
    operators = Counter(operator for row in graphs for operator in row.get("operators", ()))
    lines += [
        "",
        "Hostile files, refused of all: " + ", ".join(f"{way} {refused[way]} of {n}" for way, n in ways.items()) + ".",
        "",
        "Why random graphs were refused: "
        + ", ".join(f"{_KINDS.get(kind, kind)} {count}" for kind, count in kinds.most_common())
        + ".",
        "",
        f"{cut} of the graphs were cut, renamed, or got weights as inputs, and were converted to another opset or "
        f"target besides.",
        "",
        f"The graphs hold {sum(operators.values())} nodes of {len(operators)} operators, from opsets 7 to 23.",
    ]
    return "\n".join(lines) + "\n"


def _ranges(seeds: Sequence[int]) -> str:
    """Whole numbers as ranges, those of a single one included."""
    known = sorted(set(seeds))
    ends = [i for i, seed in enumerate(known) if i + 1 == len(known) or known[i + 1] != seed + 1]
    starts = [0, *(end + 1 for end in ends[:-1])]
    return ", ".join(f"{known[i]} to {known[j]}" for i, j in zip(starts, ends, strict=True))


SURGERY = ("outputs", "start", "rename", "keep_initializers_as_inputs")
_KINDS = {
    "Unsuitable": "nodes that the target does not run",
    "UnsupportedError": "operators that the opset or the option does not allow",
    "VerificationError": "the new file was not equal to the original",
    "EngineFault": "the engine did not run the new file, or not right, and the node is named where it was found",
    "CompatError": "the original does not run on any input that was drawn, or cannot be cut like this",
}

if __name__ == "__main__":
    main()
