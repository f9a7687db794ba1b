"""Runs the rows of tests/test_entries.py in eager torch with their entries in force: which entries mend others?

    python scripts/nested_entries.py

A body's own calls are mended by the other entries (decision 28). This finds the pairs that come about, and where a
value is another one then: draws and the order of ties are, which are the exporters' matter.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from test_entries import EXAMPLES  # noqa: E402

from torch_onnx_compat.candidates import patched_subject  # noqa: E402
from torch_onnx_compat.catalogue.catalogue import catalogue  # noqa: E402
from torch_onnx_compat.catalogue.entry import Exporter, Rewrite  # noqa: E402
from torch_onnx_compat.observe import Observation  # noqa: E402
from torch_onnx_compat.plan import make_plan  # noqa: E402
from torch_onnx_compat.prepare import prepare  # noqa: E402
from torch_onnx_compat.rewrite import watched_functions  # noqa: E402
from torch_onnx_compat.targets import choose_opset, load_target  # noqa: E402
from torch_onnx_compat.testing import Example  # noqa: E402

PAIRS: Counter[tuple[str, str]] = Counter()
_running: list[str] = []
_run = Rewrite.run


def note(entry: Rewrite, *args: Any, **kwargs: Any) -> Any:
    """Runs an entry's body, and counts it where another one's is running."""
    _running.append(entry.name)
    try:
        result = _run(entry, *args, **kwargs)
    finally:
        _running.pop()
    if _running and result is not NotImplemented:
        PAIRS[_running[-1], entry.name] += 1
    return result


def differs(row: Example, exporter: Exporter) -> bool:
    """Whether a row's model computes something else with its entries in force."""
    options = {"dynamic": row.dynamic, **row.options}
    target = load_target(options.get("target", "onnxruntime"))
    prepared = prepare(row.model, row.inputs, kwargs=options.get("kwargs"), dynamic=options["dynamic"])
    observation = Observation(prepared)
    plan = make_plan(
        catalogue().with_entries([*options.get("symbolics", ()), *options.get("rewrites", ())]),
        exporter=exporter,
        opset=choose_opset(options.get("opset"), target),
        target=target,
        include=options.get("include", ()),
        exclude=options.get("exclude", ()),
        allow_approximate=options.get("allow_approximate", False),
    )
    inputs = observation.trace_inputs()
    wanted = observation.reference("row", inputs).outputs
    facts = observation.size_facts(watched_functions(plan.rewrites()), inputs)
    with torch.no_grad():
        found = patched_subject(prepared, plan, facts)(*[x.clone() for x in inputs.tensors])
    return any(
        w.shape != f.shape
        or w.dtype != f.dtype
        or not torch.allclose(w.double(), f.double(), rtol=1e-2, atol=1e-3, equal_nan=True)
        for w, f in zip(wanted, found, strict=True)
    )


def main() -> None:
    """Prints the pairs, and the rows that differ or fail."""
    warnings.simplefilter("ignore")
    Rewrite.run = note  # type: ignore[method-assign]
    count = 0
    for row in EXAMPLES:
        for exporter in row.exporters:
            try:
                count += 1
                if differs(row, exporter):
                    print(f"differs: {row.entry}, {exporter}")
            except Exception as error:  # rows that show what an entry declines fail in eager torch, too
                print(f"fails: {row.entry}, {exporter}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
    for (outer, inner), times in sorted(PAIRS.items()):
        print(f"{outer}: {inner}, {times} times")
    print(f"{count} runs, {len(PAIRS)} pairs")


if __name__ == "__main__":
    main()
