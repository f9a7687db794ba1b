"""Models with loops, written after the code for loops stood."""

import pytest
import torch

from control_flow.fresh_loops import FRESH_LOOPS
from control_flow.test_programs import check
from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError

CELLS = ("HandWrittenGru", "CellByNumber")
"""TorchScript has no lowering of unsafe_chunk, which torch's cells call, where it does not know the sizes."""


@pytest.mark.parametrize("name", [name for name in FRESH_LOOPS if name not in CELLS])
def test_right_on_every_branch(name, exporter):
    check(FRESH_LOOPS[name], exporter)


@pytest.mark.parametrize("name", CELLS)
def test_cells_in_a_loop(name):
    check(FRESH_LOOPS[name], "dynamo")
    with pytest.raises(CompatError, match=r"fresh_loops.py:\d+|Split"):
        export_compat(FRESH_LOOPS[name].model, torch.randn(3, 4), dynamic="batch", exporter="torchscript")
