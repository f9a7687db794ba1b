"""The search for decisions ends when two rounds agree: what one round learns must not rename the decisions after it."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.control_flow import survey


def is_broadcast(x, y):
    for axis in range(x.dim() - 1):
        one, other = x.size(axis), y.size(axis)
        if one == other or one == 1 or other == 1:
            continue
        raise ValueError("cannot be broadcast")


class Filters(nn.Module):
    """One line decides for every filter, on sizes that vary and on sizes that do not."""

    def __init__(self, filters):
        super().__init__()
        self.kernels = nn.Parameter(torch.randn(filters, 1, 1, 5))

    def forward(self, x):
        for kernel in self.kernels:
            is_broadcast(x, kernel[None])
            x = x * kernel.sum()
            if x.size(0) > 3 and (x.size(1) > 100 or x.size(2) > 7):
                x = x + 1
        return x


@pytest.fixture
def traces(monkeypatch):
    made = []
    trace = survey._trace

    def note(job, inputs, *args, **options):
        made.append(inputs.sizes())
        return trace(job, inputs, *args, **options)

    monkeypatch.setattr(survey, "_trace", note)
    return made


@pytest.mark.parametrize("filters", [2, 8])
def test_many_decisions_of_one_line_take_no_more_rounds_than_few(traces, filters):
    model, x = Filters(filters).eval(), torch.randn(2, 4, 6, 5)
    result = export_compat(model, (x,), dynamic={"x": {0: "n", 2: "h"}}, exporter="torchscript")
    assert len(traces) <= 14
    for n, h in ((1, 6), (3, 8), (4, 7), (5, 8), (7, 1)):
        other = torch.randn(n, 4, h, 5)
        torch.testing.assert_close(result(other)[0], model(other))
