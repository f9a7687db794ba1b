"""Medians, products, integrals and losses of what a mask or a slice leaves, which may be nothing."""

import pytest
import torch
from torch.nn import functional

from torch_onnx_compat import export_compat


def medians(x):
    return x[x > 0.5].median(), x[x > 0.5].nanmedian()


def products_and_integrals(x):
    return x[2:].long().prod(0), torch.trapezoid(x[2:], dim=0)


def losses(x):
    labels = (x[:, 0] * 100).long() % 3
    kept = x[:, 0] > 0.5
    return (
        functional.cross_entropy(x[kept], labels[kept]),
        functional.cross_entropy(x[kept], labels[kept], label_smoothing=0.1, reduction="sum"),
    )


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("model", [medians, products_and_integrals, losses])
def test_what_torch_makes_of_nothing(model, exporter):
    torch.manual_seed(0)
    result = export_compat(model, 3 * torch.rand(6, 4), dynamic={"x": {0: "n"}}, exporter=exporter)
    for x in (3 * torch.rand(5, 4), torch.rand(1, 4) / 2, torch.rand(2, 4) / 2, torch.zeros(4, 4)):
        torch.testing.assert_close(tuple(result(x)), model(x), equal_nan=True, rtol=1e-4, atol=1e-5)
