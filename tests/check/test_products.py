"""A branch for one product of sizes is tried at other sizes of that product: at one of them both branches agree."""

import onnxruntime as ort
import pytest
import sympy
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.search import Sides

H, W = sympy.symbols("h w", integer=True, positive=True)


@pytest.mark.parametrize(
    "expression",
    [sympy.Eq(H * W, 16), sympy.Ne(H * W, 16), sympy.Eq((H // 2) * (W // 2), 16), sympy.Eq(H, 3 * W)],
    ids=str,
)
def test_sizes_of_other_proportions(expression):
    question = Question("condition", expression, None, "models/net.py:1")
    sides = Sides(question, {"h": 12, "w": 20}, {})
    found = list(sides.uneven())
    assert all(sides.is_other(sizes) for sizes in found)
    longest = {max(sizes, key=lambda axis: sizes[axis]) for sizes in found}
    assert longest == ({"h"} if expression == sympy.Eq(H, 3 * W) else {"h", "w"})


def test_sizes_within_the_bounds():
    question = Question("condition", sympy.Eq(H * W, 16), False, "models/net.py:1")
    found = list(Sides(question, {"h": 12, "w": 20}, {"h": (4, 64), "w": (1, 64)}).uneven())
    assert found
    assert all(sizes["h"] >= 4 for sizes in found)


def test_axes_that_move_together_stay_within_the_bounds_of_each():
    question = Question("condition", sympy.Ne(H * W, 1), True, "models/net.py:1")
    assert not list(Sides(question, {"h": 4, "w": 4}, {"w": (2, 32)}).others())
    assert list(Sides(question, {"h": 4, "w": 4}, {}).others())


class Positions(nn.Module):
    """Its square table is resized where the picture has another number of cells."""

    def __init__(self, resize, side=4):
        super().__init__()
        self.table, self.resize = nn.Parameter(torch.randn(1, 1, side, side)), resize

    def forward(self, x):
        height, width = x.shape[1:]
        rows = x.flatten(1)
        if height * width != self.table.numel():
            return rows + self.resize(self.table, (height, width)).flatten(1)
        return rows + self.table.flatten(1)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize(
    ("resize", "side"),
    [(F.interpolate, 4), (F.adaptive_avg_pool2d, 4), (F.interpolate, 3)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_table_that_is_resized_to_its_own_size(resize, side, exporter, tmp_path):
    model = Positions(resize, side).eval()
    path = str(tmp_path / "model.onnx")
    try:
        export_compat(
            model,
            (torch.randn(2, 12, 20),),
            path,
            input_names=["x"],
            dynamic_axes={"x": {0: "batch", 1: "height", 2: "width"}},
            exporter=exporter,
        )
    except CompatError as error:
        assert "test_products.py" in str(error)
        return
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    cells = side * side
    for size in ((side, side), (2, 8), (8, 2), (1, cells), (cells, 1), (5, 6)):
        x = torch.randn(2, *size)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x).detach())
