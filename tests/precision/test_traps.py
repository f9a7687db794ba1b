"""Traps in float16 on both exporters: right on inputs that no export saw, in onnxruntime and as an engine computes."""

import importlib.util
import io
import math
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.graph.rendering import render
from torch_onnx_compat.graph.stream import write_model
from torch_onnx_compat.session import open_session

_spec = importlib.util.spec_from_file_location("precision_traps", Path(__file__).with_name("traps.py"))
assert _spec is not None
assert _spec.loader is not None
traps = importlib.util.module_from_spec(_spec)
sys.modules["precision_traps"] = traps
_spec.loader.exec_module(traps)

LIMIT = 0.02


def relative_error(found, exact):
    """The root mean square of the difference over that of the values, eager float64's."""
    worst = 0.0
    for a, b in zip(found, exact, strict=True):
        finite = np.isfinite(b)
        if a.shape != b.shape or not np.isfinite(a[finite]).all():
            return math.inf
        scale = math.sqrt(float(np.mean(b[finite] ** 2))) or 1.0
        worst = max(worst, math.sqrt(float(np.mean((a[finite].astype(np.float64) - b[finite]) ** 2))) / scale)
    return worst


def eager(model, args, dtype):
    """Eager torch in an element type; None where it does not run in it."""
    try:
        with torch.no_grad():
            output = model.to(dtype)(*(a.to(dtype) if a.is_floating_point() else a for a in args))
    except RuntimeError:
        return None
    return [output.double().numpy()]


def ways(model):
    """The file in onnxruntime, with and without its optimisations, and its rendering."""
    buffer = io.BytesIO()
    write_model(render(ir.from_proto(onnx.load_model_from_string(model))), buffer)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return open_session(model), open_session(model, sess_options=options), open_session(buffer.getvalue())


def check(trap, exporter):
    result = export_compat(
        trap.model(), trap.args(1), dynamic=trap.dynamic or None, exporter=exporter, precision="float16"
    )
    sessions = ways(result.model_bytes)
    for seed in (11, 12):
        args = trap.args(seed)
        exact = eager(trap.model(), args, torch.float64) or eager(trap.model(), args, torch.float32)
        half = eager(trap.model(), args, torch.float16)
        by_half = relative_error(half, exact) if half is not None else 0.0
        allowed = max(LIMIT, 2 * by_half if by_half < 0.05 else 0.0)
        for session in sessions:
            feeds = {value.name: arg.numpy() for value, arg in zip(session.get_inputs(), args, strict=True)}
            assert relative_error(session.run(None, feeds), exact) <= allowed
    return result


@pytest.mark.one_exporter
@pytest.mark.parametrize("trap", traps.FROM_RESEARCH, ids=lambda trap: trap.name)
def test_the_traps_of_the_research(trap, exporter):
    check(trap, exporter)


@pytest.mark.slow
@pytest.mark.parametrize("trap", traps.OWN, ids=lambda trap: trap.name)
def test_the_other_traps(trap, exporter):
    check(trap, exporter)


@pytest.mark.parametrize("name", ["a loop of small steps", "a branch that overflows", "attention with large logits"])
def test_some_of_the_other_traps(name):
    check(next(trap for trap in traps.OWN if trap.name == name), "torchscript")


def test_a_trap_is_one():
    """With every node in float16, the sine of positions is wrong: the comparison above can fail."""
    trap = traps.FROM_RESEARCH[0]
    half = eager(trap.model(), trap.args(11), torch.float16)
    assert relative_error(half, eager(trap.model(), trap.args(11), torch.float64)) > 0.1
