"""NumPy's functions on sizes and on numbers of the inputs, as the padding of window attention computes it."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import CompatError, export_compat

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
SIZES = ((4, 6), (3, 5), (5, 1), (1, 7), (9, 20), (30, 30))


class Windows(nn.Module):
    """Rows in windows of four."""

    def forward(self, x):
        rows = int(np.ceil(x.shape[0] / 4)) * 4
        return F.pad(x, (0, 0, 0, rows - x.shape[0])).reshape(-1, 4, x.shape[1]).mean(1)


class Scale(nn.Module):
    def forward(self, x):
        return x * np.prod(x.shape) / np.sqrt(x.shape[1]) + np.log(x.shape[0]) + np.exp(1 / x.shape[0])


class Part(nn.Module):
    def forward(self, x):
        count = int(np.floor(x.shape[1] * 0.7 + 0.01))
        return x[:, : max(count, 1)] * np.round(x.shape[0] / 3)


class Logarithm(nn.Module):
    def forward(self, x):
        count = math.prod(x.shape)
        return x.reshape(-1)[: int(np.log2(count * 1.0) + 0.01)] + count


class Extremes(nn.Module):
    def forward(self, x):
        return x * np.maximum(x.shape[0], x.shape[1]) - np.minimum(x.shape[0], 5) + np.trunc(x.shape[1] / 2)


class OfArrays(nn.Module):
    """NumPy's own arrays stay NumPy's, beside a decision on the inputs."""

    def forward(self, x):
        k, m = np.ceil(np.array([1.5, 2.5])).sum(), np.prod((2, 3))
        y = x if x.sum() > 0 else x * 2
        return y * float(k) * int(m) * np.ceil(x.shape[0] / 2) + np.round(1.26, 1) + np.maximum(1, 2)


class OfValues(nn.Module):
    """Numbers that values decide."""

    def forward(self, x):
        return x + np.ceil(x.max().item()) + np.floor(x.min().item()) * np.rint(x.sum().item() / 3)


@pytest.mark.parametrize("kind", [Windows, Scale, Part, Logarithm, Extremes, OfArrays])
def test_on_sizes(kind, exporter):
    model = kind().eval()
    session = export_compat(model, X, dynamic={"x": {0: "rows", 1: "columns"}}, exporter=exporter).session()
    for rows, columns in SIZES:
        for x in (torch.rand(rows, columns), -torch.rand(rows, columns)):
            (found,) = session.run(None, {"x": x.numpy()})
            wanted = model(x).numpy()
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


class Rounds(nn.Module):
    """NumPy rounds whole numbers to whole numbers, and the rest to float64."""

    def forward(self, x):
        whole = x.long() * np.ceil(x.shape[0]) + np.round(x.shape[0])
        return whole * 2 + (x.long() * np.floor(x.shape[0] / 2)).to(whole.dtype)


def test_what_numpy_rounds_has_its_type(exporter):
    model = Rounds().eval()
    session = export_compat(model, 3 * X, dynamic={"x": {0: "b"}}, exporter=exporter).session()
    for rows in (1, 3, 7):
        x = 3 * torch.randn(rows, 6, generator=torch.Generator().manual_seed(rows))
        (found,) = session.run(None, {"x": x.numpy()})
        wanted = model(x).numpy()
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_on_values(exporter):
    model = OfValues().eval()
    session = export_compat(model, X, exporter=exporter).session()
    for seed in range(6):
        x = 3 * torch.randn(4, 6, generator=torch.Generator().manual_seed(seed))
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], model(x).numpy(), rtol=1e-5, atol=1e-5)


def test_a_tensor_is_no_number(exporter):
    """NumPy would compute with the example's values."""

    class OfTensor(nn.Module):
        def forward(self, x):
            return x + float(np.ceil(x.detach()).sum())

    with pytest.raises(CompatError):
        export_compat(OfTensor(), X, exporter=exporter)


class Halves(nn.Module):
    """divmod of sizes, both ways round, and of a number that values give."""

    def forward(self, x):
        half, odd = divmod(x.shape[1], 2)
        times, rest = divmod(17, x.shape[1])
        parts, left = divmod(int((x > 0).sum()), 4)
        if odd:
            x = x[:, 1:]
        return x[:, :half] * times - x[:, half:] * rest, x.sum() * parts + left


def test_divmod(exporter):
    before = vars(torch.SymInt).get("__divmod__"), vars(torch.Tensor).get("__divmod__")
    model = Halves().eval()
    session = export_compat(model, X, dynamic={"x": {0: "rows", 1: "columns"}}, exporter=exporter).session()
    assert (vars(torch.SymInt).get("__divmod__"), vars(torch.Tensor).get("__divmod__")) == before
    for rows, columns in ((4, 6), (3, 5), (2, 17), (1, 30)):
        x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(columns))
        for found, wanted in zip(session.run(None, {"x": x.numpy()}), model(x), strict=True):
            np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-4, atol=1e-4)


def of_a_list_of_sizes(x):
    """numpy asks a list for a method first, and catches the error: that is numpy's way, not the model's."""
    sizes = list(x.shape)
    return torch.reshape(x, [int(np.prod(sizes[:-1])), *sizes[-1:]])


def of_halves(x):
    count = int(np.prod((x.shape[0] // 2, x.shape[1] // 2)))
    return x.flatten()[:count] * count


@pytest.mark.parametrize("function", [of_a_list_of_sizes, of_halves])
def test_products_outside_of_decisions(function, exporter):
    result = export_compat(function, torch.randn(2, 4, 6), dynamic={"x": {0: "b", 1: "t"}}, exporter=exporter)
    for shape in ((1, 4, 6), (3, 5, 6), (4, 2, 6)):
        x = torch.randn(shape)
        torch.testing.assert_close(torch.as_tensor(result(x)[0]), function(x))
