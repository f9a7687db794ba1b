"""Which conditions on sizes, that torch.export takes for granted, are held against a file."""

import re

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends import dynamo
from torch_onnx_compat.backends.backend import ExportFailed
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_same_outputs

X = torch.randn(4, 6)


def by_batch(x, y):
    return x + y if x.numel() == y.numel() else x - y.sum()


def by_width(x, y):
    return x.sum(1) + y.sum(1) if x.shape[1] == y.shape[1] else x.sum(1)


def test_axes_of_one_name_are_equally_long():
    axes = {0: "batch"}
    assert_same_outputs(by_batch, (X, X + 1), "dynamo", dynamic={"x": axes, "y": axes}, control_flow=False)
    assert "If" not in assert_same_outputs(by_batch, (X, X + 1), "dynamo", dynamic={"x": axes, "y": axes}).nodes


def test_axes_of_two_names_need_not_be():
    dynamic = {"x": {0: "batch", 1: "width"}, "y": {0: "batch", 1: "height"}}
    samples = [(X, torch.randn(4, 5))]
    assert_same_outputs(by_width, (X, X + 1), "dynamo", dynamic=dynamic, samples=samples)


def test_a_bound_on_an_axis_says_what_to_do():
    def call(x):
        return x * 2 if x.shape[0] < 64 else x

    with pytest.raises(ExportFailed, match="sizes up to 63 only") as error:
        assert_same_outputs(call, (X[:2],), "dynamo", dynamic="batch", control_flow=False)
    assert "dynamic_shapes={'x': {0: torch.export.Dim('batch', max=63)}}" in str(error.value)
    shapes = {"x": {0: torch.export.Dim("batch", max=63)}}
    assert_same_outputs(call, (X[:2],), "dynamo", dynamic_shapes=shapes, control_flow=False, samples=[(X,)])


def test_a_slice_may_end_beyond_the_example():
    def call(x):
        return torch.addr(x[:5, :1], x[:5, 0], x[0])

    assert_same_outputs(call, (X[:2],), "dynamo", dynamic="batch", samples=[(X,), (X.repeat(3, 1),)])


class Positions(nn.Module):
    """A table of positions, which is as long as the model takes."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.register_buffer("table", torch.randn(1, 20, 3))
        self.register_buffer("numbers", torch.arange(20)[None])

    def forward(self, x):
        if self.kind == "slice":
            return x + self.table[:, : x.shape[1]]
        return x + nn.functional.embedding(self.numbers[:, : x.shape[1]], self.table[0]) + x.mean(1, keepdim=True)


@pytest.mark.parametrize("kind", ["slice", "embedding"])
@pytest.mark.parametrize("verify", [True, False])
def test_a_bound_of_the_models_own_is_no_obstacle(kind, verify):
    model, x = Positions(kind).eval(), torch.randn(2, 5, 3)
    result = export_compat(model, x, dynamic={"x": {1: "n"}}, exporter="dynamo", verify=verify)
    for length in (1, 2, 19, 20):
        x = torch.randn(2, length, 3)
        torch.testing.assert_close(torch.from_numpy(result.session().run(None, {"x": x.numpy()})[0]), model(x))


class TakesMultiples(nn.Module):
    """Beyond the table only multiples of 8 are taken: the bound is none of the model's."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(1, 20, 3))

    def forward(self, x):
        if x.shape[1] <= 20:
            return x + self.table[:, : x.shape[1]]
        return x.reshape(x.shape[0], 8, -1).reshape(x.shape) * 2


@pytest.mark.parametrize("verify", [True, False])
def test_a_bound_beyond_which_some_sizes_are_taken_is_not_the_models_own(verify):
    model, x = TakesMultiples().eval(), torch.randn(2, 5, 3)
    with pytest.raises(CompatError):
        export_compat(model, x, dynamic={"x": {1: "n"}}, exporter="dynamo", verify=verify)


def takes_few(x, y):
    if x.shape[1] > 20:
        raise ValueError("too long")
    return x * 2 + y


def test_the_model_is_asked_once_for_an_axis_of_two_inputs(monkeypatch):
    asked = []
    monkeypatch.setattr(dynamo, "_takes_no_more", lambda job, axis, most: not asked.append((axis.name, most)))
    x = torch.randn(2, 5, 3)
    result = export_compat(takes_few, (x, x), dynamic={"x": {1: "n"}, "y": {1: "n"}}, exporter="dynamo")
    assert asked == [("n", 20)]
    assert [note for note in result.notes if "up to 20 long" in note]


def rows_of_half(x, y):
    """Where the example has three rows, half of them is one: torch takes it for one everywhere."""
    n = x.shape[0] // 2
    return torch.zeros(n, 1) + x[:n] + y.sum()


def test_a_size_of_one_that_the_model_computes():
    assert_same_outputs(rows_of_half, (X[:3], X), "dynamo", dynamic={"x": {0: "n"}})


def test_an_axis_that_is_fixed_at_the_examples_size_only(exporter):
    """Without three rows, four are one, for which torch.export fixes the axis."""
    y = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    assert_same_outputs(lambda y: y[3:] * 2, (y,), exporter, dynamic={"y": {0: "n"}})


class Hidden(nn.Module):
    """A size that is 1 on the example, beside a decision that shows in large values only."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 2, 3, stride=2, padding=1), nn.Conv2d(2, 2, 2, 2)

    def forward(self, x):
        x = self.first(x)
        if x.shape[2] > 3:
            x = x * 2
        half = self.second(x)
        if half.shape[-2:] != (3, 2):
            half = nn.functional.interpolate(half, size=(3, 2))
        x = x.cumsum(-1)
        return x.masked_fill(x < 50, 0.25)


def test_a_longer_example_goes_the_way_of_the_example():
    model = Hidden().eval()
    nn.init.constant_(model.first.weight, 0.01)
    dynamic = {"x": {2: "height", 3: "width"}}
    try:
        result = export_compat(model, (torch.randn(1, 2, 5, 33),), dynamic=dynamic, exporter="dynamo")
    except CompatError:
        return
    for height in (5, 7, 9):
        x = torch.full((1, 2, height, 33), 1e3)
        torch.testing.assert_close(result(x)[0], model(x))


def of_every_few(x):
    return x[:: max(x.shape[0] // 8, 1)][:8]


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_bound_is_tried_beyond_its_edge(exporter):
    """torch.export takes the rows for fewer than 8; there are 8 at 8, 16 and 32, where the file is right by chance."""
    try:
        result = export_compat(of_every_few, (torch.randn(6, 4),), dynamic="batch", exporter=exporter)
    except CompatError as error:
        if exporter == "torchscript" or not re.search("torch.export asks whether|for sizes up to 7 only", str(error)):
            raise
        return
    for size in (1, 6, 8, 16, 17, 31, 257):
        x = torch.randn(size, 4)
        assert torch.equal(result(x)[0], of_every_few(x))


def centred(x):
    if x.shape[0] > 1:
        x = x - x.mean(0)
    return x * 3


def test_a_decision_on_a_size_of_one_without_a_proof(exporter):
    """A capture notes that the size is not 1, of which no case of a proof would tell."""
    result = export_compat(centred, torch.randn(5, 3), dynamic="batch", exporter=exporter, verify=False)
    for size in (1, 2, 6):
        x = torch.randn(size, 3)
        torch.testing.assert_close(result(x)[0], centred(x))
