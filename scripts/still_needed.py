"""Lists the entries that the installed torch has made superfluous.

Each entry says for which exporters it is needed; its tests leave it out and expect stock torch to fail or to err. Where
an entry's rows all do without it on an exporter, the entry, or that exporter in its `needed_on`, can go.

    python scripts/still_needed.py                 # all; about twenty minutes
    python scripts/still_needed.py remainder roll  # entries whose names hold one of these
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import torch  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import track  # noqa: E402


def rows() -> list[Any]:
    """The rows of the catalogue's tests."""
    spec = importlib.util.spec_from_file_location("entry_tests", ROOT / "tests" / "test_entries.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.EXAMPLES)


def superfluous(words: list[str]) -> dict[str, dict[str, str]]:
    """By entry and exporter, why it is not needed: where that holds of every row that claims the need."""
    verdicts: dict[tuple[str, str], list[str]] = defaultdict(list)
    chosen = [row for row in rows() if not words or any(word in row.entry for word in words)]
    for row in track(chosen, "entries", console=Console(stderr=True)):
        for exporter in row.claimed_on():
            try:
                row.assert_still_needed(exporter)
                verdicts[row.entry, exporter].append("")
            except AssertionError as error:
                verdicts[row.entry, exporter].append(str(error).partition("\n")[0])
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for (entry, exporter), told in verdicts.items():
        if all(told):
            found[entry][exporter] = told[0]
    return found


def main() -> int:
    """Prints a line for each; 1 where there is one."""
    warnings.simplefilter("ignore")
    found = superfluous(sys.argv[1:])
    for entry, exporters in sorted(found.items()):
        for exporter, why in exporters.items():
            print(f"{entry}: not needed on {exporter}: {why}")
    if not found:
        print(f"torch {torch.__version__}: every entry is needed.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
