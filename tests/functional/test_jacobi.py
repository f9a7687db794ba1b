"""Rotations against float64, for every size and for spectra that are hard on them."""

import pytest
import torch

from torch_onnx_compat.functional import jacobi

SIZES = range(1, 9)
COUNT = 300


def _spectra(size):
    kinds = {
        "normal": torch.randn(COUNT, size),
        "graded": 10.0 ** (-6 * torch.rand(COUNT, size)),
        "repeated": torch.randint(-1, 2, (COUNT, size)).float(),
        "close": 1 + 1e-4 * torch.randn(COUNT, size),
        "zero": torch.zeros(COUNT, size),
        "huge": 1e25 * torch.randn(COUNT, size),
        "tiny": 1e-25 * torch.randn(COUNT, size),
    }
    turn = torch.linalg.qr(torch.randn(COUNT, size, size, dtype=torch.float64))[0]
    for values in kinds.values():
        matrix = turn @ torch.diag_embed(values.double()) @ turn.mT
        yield ((matrix + matrix.mT) / 2).float()
    yield torch.ones(COUNT, size, size)


def _scaled(x, matrix):
    return x / matrix.double().abs().amax((-2, -1), keepdim=True).clamp(min=1e-300)


@pytest.mark.parametrize("size", SIZES)
def test_eigh(size):
    for matrix in _spectra(size):
        values, vectors = (x.double() for x in jacobi.eigh(matrix, size))
        wanted = torch.linalg.eigvalsh(matrix.double())
        assert _scaled((values - wanted)[..., None], matrix).abs().max() < 1e-5
        together = vectors @ torch.diag_embed(values) @ vectors.mT
        assert _scaled(together - matrix.double(), matrix).abs().max() < 1e-5
        assert (vectors.mT @ vectors - torch.eye(size)).abs().max() < 1e-5


@pytest.mark.parametrize("size", SIZES)
def test_svd(size):
    for matrix in (*_spectra(size), torch.randn(COUNT, size + 1, size), torch.randn(COUNT, size, size + 2)):
        u, s, v = (x.double() for x in jacobi.svd(matrix, *matrix.shape[1:]))
        assert _scaled((s - torch.linalg.svdvals(matrix.double()))[..., None], matrix).abs().max() < 1e-5
        together = (u[..., : s.shape[-1]] * s[:, None]) @ v[..., : s.shape[-1]].mT
        assert _scaled(together - matrix.double(), matrix).abs().max() < 1e-5
        for side in (u, v):
            assert (side.mT @ side - torch.eye(side.shape[-1])).abs().max() < 1e-5
