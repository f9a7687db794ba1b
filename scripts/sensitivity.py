"""Which of a few hundred planted faults the verification finds: a table, and every fault that it does not.

python scripts/sensitivity.py [--small] [--per-kind 4] [--model resnet18 ...]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fuzz.sensitivity import LARGE, SMALL, run, table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="only the models that need no library of models")
    parser.add_argument("--per-kind", type=int, default=3, help="faults of one kind in one model")
    parser.add_argument("--model", nargs="*", help="names of models")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    subjects = [s for s in (*SMALL, *(() if options.small else LARGE)) if not options.model or s.name in options.model]
    verdicts = []
    for verdict in run(subjects, options.per_kind):
        verdicts.append(verdict)
        if verdict.word != "found":
            print(
                f"{verdict.word}: {verdict.model}, {verdict.fault.kind} at {verdict.fault.place}: {verdict.change:.2g} "
                f"roundings, {verdict.tolerances:.2g} tolerances {verdict.why}",
                flush=True,
            )
    print(table(verdicts))
    return int(any(verdict.word == "MISSED" for verdict in verdicts))


if __name__ == "__main__":
    raise SystemExit(main())
