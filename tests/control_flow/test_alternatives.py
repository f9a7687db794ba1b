"""Decisions on sizes between two ways to compute the same, one of which runs at some sizes only."""

import torch
from torch import nn

from torch_onnx_compat import export_compat

DYNAMIC = {"x": {0: "batch", 1: "length"}}


class Windows(nn.Module):
    """Attention in windows of four rows, or in one if that is all there is: the bias fits a window only."""

    def __init__(self, factor=1.0):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(4, 4))
        self.factor = factor

    def attend(self, x):
        return ((x @ x.transpose(1, 2)) + self.bias).softmax(-1) @ x

    def forward(self, x):
        if x.shape[1] == 4:
            return self.attend(x) * self.factor
        batch, length, channels = x.shape
        pad = (4 - length % 4) % 4
        x = nn.functional.pad(x, (0, 0, 0, pad))
        x = self.attend(x.reshape(-1, 4, channels)).reshape(batch, length + pad, channels)
        return x[:, :length]


def test_the_way_that_serves_every_size_is_taken(exporter):
    samples = [(torch.randn(2, n, 3),) for n in (3, 4, 5, 8, 9)]
    result = export_compat(Windows().eval(), torch.randn(2, 16, 3), exporter=exporter, dynamic=DYNAMIC, samples=samples)
    assert "If" not in result.nodes


def test_verified_where_both_ways_run():
    result = export_compat(Windows().eval(), torch.randn(2, 32, 3), exporter="torchscript", dynamic=DYNAMIC)
    assert any(row.case.endswith("length=4") for row in result.table)


def test_of_ways_that_differ_the_file_has_both():
    torch.manual_seed(0)
    model = Windows(1.01).eval()
    result = export_compat(model, torch.randn(2, 16, 3), exporter="torchscript", dynamic=DYNAMIC)
    for length in (3, 4, 5, 8, 16):
        x = torch.randn(3, length, 3)
        torch.testing.assert_close(result(x)[0], model(x), rtol=1e-4, atol=1e-5)


def test_answers_that_agree_by_chance_are_no_ways_to_compute_the_same():
    """No random values equal ones: both ways answer no at 16 rows, where one of them asks, and it runs nowhere else."""

    def holds(x):
        return x.shape[0] == 16 and bool((x == torch.ones(16, 4)).all())

    def model(x):
        return x * 2 if holds(x) else x - 1

    for rows in (4, 16):
        result = export_compat(model, torch.rand(rows, 4), exporter="torchscript", dynamic={"x": {0: "rows"}})
        for x in (torch.ones(16, 4), torch.rand(16, 4), torch.ones(4, 4)):
            torch.testing.assert_close(result(x)[0], model(x))
