"""What has no equivalent is refused, with its place and the reason; nothing is written."""

import pytest
import torch

from control_flow.refused_programs import REFUSED
from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import UnsupportedError

CASES = [pytest.param(name, e, id=f"{name}-{e}") for name, (*_, exporters) in REFUSED.items() for e in exporters]


@pytest.mark.parametrize(("name", "which"), CASES)
def test_refused(name, which, tmp_path):
    model, message, dynamic, _ = REFUSED[name]
    with pytest.raises(UnsupportedError, match=message) as error:
        export_compat(model, torch.rand(3, 4) + 0.1, tmp_path / "m.onnx", exporter=which, dynamic=dynamic)
    assert len(str(error.value)) < 1500
    assert not list(tmp_path.iterdir())
