"""Models written after the code stood."""

import pytest

from control_flow.fresh_programs import FRESH, REFUSED
from control_flow.test_programs import check
from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import UnsupportedError


@pytest.mark.parametrize("name", [name for name in FRESH if name not in REFUSED])
def test_right_on_every_branch(name, exporter):
    check(FRESH[name], exporter)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, exporter):
    program = FRESH[name]
    with pytest.raises(UnsupportedError, match=REFUSED[name]):
        export_compat(program.model, program.example, exporter=exporter, dynamic=program.dynamic)
