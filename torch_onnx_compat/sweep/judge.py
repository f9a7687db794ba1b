"""Judges a file, whoever wrote it, by the numbers: as `export_compat` verifies, but on other values."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from torch_onnx_compat.check.cases import Case, Cases
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.rounding import compare_outputs
from torch_onnx_compat.check.verify import open_to_verify, run_session
from torch_onnx_compat.memory import trim
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import Prepared, export_conditions

BUDGET_S = 120.0
"""Seconds that may be spent on telling an error from noise: no file is called wrong for want of time."""

SEED = 1000
"""Of the values that a file is judged on; export_compat verified on others."""


def judge(path: Path, prepared: Prepared, how: Verify) -> str:
    """Runs a file in onnxruntime against the model: the example, other values, other sizes of each dynamic axis.

    Args:
        path: The file.
        prepared: The model and its inputs.
        how: How outputs are compared.

    Returns:
        What is wrong with it; empty if nothing.
    """
    how = replace(how, seed=how.seed + SEED)
    with export_conditions():
        observation = Observation(prepared)
        trim()
        try:
            session = open_to_verify(path)
        except Exception as error:  # whatever onnxruntime raises is a verdict on the file
            return f"onnxruntime does not load the file: {error}"
        trim()
        names = [value.name for value in session.get_outputs()]
        for case in Cases(observation, how):
            if len(names) != len(case.reference.outputs):
                return f"{len(names)} outputs, wanted {len(case.reference.outputs)}"
            try:
                found = run_session(session, case.inputs)
            except Exception as error:  # likewise
                return f"fails in onnxruntime at {_describe(case)}: {error}"
            # A file that is as near to float64 as eager torch is not wrong, however far off both are: export_compat
            # refuses it, as nothing is proven, but what nobody can tell is held against no exporter.
            rows = compare_outputs(names, found, case, how, observation, limit=math.inf, budget=BUDGET_S)
            bad = [row for row in rows if not row.ok]
            if bad:
                return f"{bad[0].output} is off at {_describe(case)}: {bad[0].detail}"
    return ""


def _describe(case: Case) -> str:
    return f"the {case.label}" if case.label == "example" else case.label
