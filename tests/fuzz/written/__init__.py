"""Programs written by hand, in the ways of real model code, that decide on sizes and values."""

import importlib

from fuzz.written.program import Written

SUBJECTS = (
    "sizes",
    "sequences",
    "detections",
    "values",
    "language",
    "keys",
    "stand_ins",
    "whole_numbers",
    "states",
    "indexing",
    "layers",
    "means",
    "choices",
    "rare_branches",
    "python_numbers",
    "fraction_sizes",
    "numbers_in_tensors",
    "numbers_to_operators",
    "few_sizes",
    "sized_operators",
    "protocols",
    "nested_sizes",
    "layouts",
    "repositories",
    "halving",
    "blocks",
    "complex_numbers",
    "replaced_calls",
    "codebases",
    "old_code",
    "selections",
    "shared_parts",
)


def all_programs() -> dict[str, Written]:
    """Every program by name, ``sizes.ResizedPositions``."""
    found: dict[str, Written] = {}
    for subject in SUBJECTS:
        module = importlib.import_module(f"fuzz.written.{subject}")
        found |= {f"{subject}.{written.kind.__name__}": written for written in module.PROGRAMS}
    return found
