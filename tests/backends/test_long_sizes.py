"""Sizes whose formulas grow in each round of a loop do not slow down a capture."""

import torch

from torch_onnx_compat import export_compat


def smoothed(x):
    """Each round holds the size before it three times, in a Min or a Max each."""
    for step in (1, 2, 4, 8, 16, 32, 64):
        x = torch.cat([x[:step], x[step:] + x[:-step]])
    return x


def test_a_size_that_grows_in_rounds(exporter):
    result = export_compat(smoothed, torch.randn(100, 3), dynamic={"x": {0: ("n", 70, 300)}}, exporter=exporter)
    for size in (70, 128, 129, 300):
        x = torch.randn(size, 3)
        torch.testing.assert_close(result(x)[0], smoothed(x))
