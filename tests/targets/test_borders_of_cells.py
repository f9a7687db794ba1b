"""Resizing by mode nearest where an output stands on the border of two cells."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.engines import EngineProcess, find_engine


class Nearest(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return F.interpolate(x, scale_factor=self.scale)


@pytest.mark.parametrize("scale", [1.7, 1.3, 3])
@pytest.mark.parametrize("target", ["mnn", "opencv"])
def test_cells_are_those_of_eager_torch(target, scale, tmp_path):
    model, x, path = Nearest(scale), torch.randn(1, 3, 12, 13), tmp_path / "model.onnx"
    result = export_compat(model, x, path, target=target)
    assert ("Resize" in result.nodes) == (scale != 1.7) or target == "opencv"
    engine = find_engine(target)
    if engine.interpreter() is None:
        pytest.skip(f"{target} is not installed")
    with EngineProcess(engine) as process:
        (found,) = process.run(path, {"x": x.numpy()}, ["output"]).outputs
    assert torch.equal(torch.from_numpy(found), model(x))


def test_what_has_no_other_form_is_refused():
    x = torch.randn(1, 3, 12, 13)
    with pytest.raises(CompatError, match=r"Gather wrong on ncnn"):
        export_compat(Nearest(1.7), x, target="ncnn")
    assert export_compat(Nearest(1.3), x, target="ncnn").nodes["Resize"] == 1
