"""Converts random ONNX graphs and broken files, and writes a row for each; goes on where an earlier run ended.

    python scripts/fuzz_files.py --first-seed 1000 --count 2000 --out files.jsonl [--broken] [--seed N]

The verdicts: converted, refused (one clear error, nothing written), wrong, crash (any other error), none (no graph).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from fuzz.file_judge import judge_broken, judge_seed  # noqa: E402

from torch_onnx_compat.files.runner import Runner  # noqa: E402


def main() -> None:
    """Runs the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--broken", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    judge = judge_broken if options.broken else judge_seed
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


if __name__ == "__main__":
    main()
