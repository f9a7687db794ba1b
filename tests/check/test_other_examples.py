"""Examples that tell little: equal sizes, one cell on each axis; what the model asks is asked at other sizes too."""

import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat


class ComparesShapes(nn.Module):
    """Of the width it asks only where the batch is 2."""

    def forward(self, x):
        return x * 2 if tuple(x.shape) > (2, 20) else x


class FitsOrNot(nn.Module):
    """The product of the first branch fits any length while the other one is 1."""

    def forward(self, x, y):
        if x.shape[0] == y.shape[0]:
            return (x * y).sum(0)
        return x.sum(0) * y.sum(0)


def judge(model, shapes, dynamic, exporter):
    """The file is right at all these shapes, or refused."""
    args = tuple(torch.randn(shape) for shape in shapes[0])
    try:
        result = export_compat(model, args, dynamic=dynamic, exporter=exporter)
    except CompatError:
        return
    session = onnxruntime.InferenceSession(result.model_bytes)
    for shape in shapes:
        tensors = [torch.randn(one) for one in shape]
        feeds = {i.name: t.numpy() for i, t in zip(session.get_inputs(), tensors, strict=True)}
        torch.testing.assert_close(torch.from_numpy(session.run(None, feeds)[0]), model(*tensors))


@pytest.mark.parametrize("example", [(2, 2), (2, 12), (3, 3), (1, 1)])
def test_a_question_behind_another_one(example, exporter):
    shapes = [[example], *([(b, w)] for b in (1, 2, 3) for w in (1, 20, 21, 40))]
    judge(ComparesShapes().eval(), shapes, {"x": {0: "b", 1: "w"}}, exporter)


@pytest.mark.parametrize("example", [(1, 1), (4, 4), (3, 1)])
def test_branches_that_fit_by_broadcasting(example, exporter):
    shapes = [[(one, 4), (other, 4)] for one, other in (example, (5, 5), (1, 6), (6, 1), (5, 9), (128, 12))]
    judge(FitsOrNot().eval(), shapes, {"x": {0: "m"}, "y": {0: "n"}}, exporter)
