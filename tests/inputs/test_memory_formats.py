"""A model may ask how its input lies in memory: that of every case lies as the example does."""

import torch

from torch_onnx_compat import export_compat

X = torch.randn(2, 3, 8, 9)
AXES = {"x": {0: "batch", 2: "height"}}


def model(x):
    if x.is_contiguous(memory_format=torch.channels_last):
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)
    return x.flatten(1) - 1


def test_an_example_whose_channels_come_last(exporter):
    result = export_compat(model, (X.to(memory_format=torch.channels_last),), dynamic=AXES, exporter=exporter)
    for batch, height in ((2, 8), (1, 3), (5, 11)):
        x = torch.randn(batch, 3, height, 9).to(memory_format=torch.channels_last)
        torch.testing.assert_close(result(x)[0], model(x))


def test_an_example_row_by_row(exporter):
    result = export_compat(model, (X,), dynamic=AXES, exporter=exporter)
    for batch, height in ((2, 8), (1, 3), (5, 11)):
        x = torch.randn(batch, 3, height, 9)
        torch.testing.assert_close(result(x)[0], model(x))


def test_a_second_input_stays_as_it_is(exporter):
    def with_a_view(x, y):
        return model(x) + y.sum()

    result = export_compat(
        with_a_view, (X.to(memory_format=torch.channels_last), torch.randn(4, 5).t()), exporter=exporter
    )
    x, y = torch.randn(2, 3, 8, 9).to(memory_format=torch.channels_last), torch.randn(5, 4)
    torch.testing.assert_close(result(x, y)[0], with_a_view(x, y))
