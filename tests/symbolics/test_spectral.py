"""Eigenvalues, singular values and norms, in rows; the rotations against float64, for spectra that are hard on them."""

import pytest
import torch
from torch import linalg
from torch_onnx_compat.symbolics import spectral

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

COUNT = 300
INF = torch.inf
DIAGONAL = torch.tensor([[1.0, 0.0], [0.0, 3.0]])


def well(x):
    """Matrices that are well-conditioned, and whose eigenvalues and singular values lie apart, whatever the input."""
    return DIAGONAL + x.clamp(-1, 1) / 4


def unsquared(A, full_matrices=True):
    left, values, right = spectral.svd(A, *spectral.small_sides(A))
    return torch.return_types.linalg_svd((left, values * values, right.mT))


def vectorial(A, ord=2, dim=None, keepdim=False, dtype=None):
    return linalg.vector_norm(A, 2 if ord == "fro" else ord, dim, keepdim, dtype=dtype)


def approximate(name, model, broken):
    options = {"allow_approximate": True}
    return Example(name, model, (torch.randn(3, 2, 2),), broken=broken, leaves=lambda x: x @ x, options=options)


def of_sums(name, model, broken):
    return Example(name, model, (torch.randn(2, 3, 4),), broken=broken, leaves=lambda x: linalg.vector_norm(x, 2, 1))


APPROXIMATE = [
    approximate(
        "eigh_to_rotations",
        lambda x: (linalg.eigh(well(x)).eigenvalues, linalg.eigh(well(x), UPLO="U")[1].abs()),
        lambda A, UPLO="L": torch.return_types.linalg_eigh(spectral.eigh(A, 2)),
    ),
    approximate(
        "eigvalsh_to_rotations",
        lambda x: (linalg.eigvalsh(well(x)), linalg.eigvalsh(well(x), "U")),
        lambda A, UPLO="L": spectral.eigh(A, 2)[0],
    ),
    approximate(
        "svd_to_rotations",
        lambda x: (
            linalg.svd(well(x)).S,
            linalg.svd(well(x), full_matrices=False).Vh.abs(),
            linalg.svd(well(x)[..., :1])[0].abs(),
        ),
        unsquared,
    ),
    approximate(
        "svdvals_to_rotations",
        lambda x: (linalg.svdvals(well(x)), linalg.svdvals(well(x)[:, :1])),
        lambda A: spectral.singular_values(A, *spectral.small_sides(A)),
    ),
    approximate(
        "pinv_to_rotations",
        lambda x: (linalg.pinv(well(x)), linalg.pinv(well(x)[:, :1], rtol=1e-3)),
        lambda A, rtol=0: spectral.pinv(A, *spectral.small_sides(A), atol=0.0, rtol=0.7),
    ),
    approximate(
        "matrix_norm_to_rotations",
        lambda x: (
            linalg.matrix_norm(well(x), "nuc"),
            linalg.norm(well(x), 2, (1, 2), True),
            linalg.matrix_norm(well(x), -2, (1, 2)),
        ),
        lambda A, ord, dim=(1, 2), keepdim=False: linalg.vector_norm(A, 2, dim, keepdim),
    ),
]
EXAMPLES = [
    *APPROXIMATE,
    of_sums(
        "linalg_norm_to_vector_norm",
        lambda x: (
            linalg.norm(x),
            linalg.norm(x[0]),
            linalg.norm(x, dim=-1),
            linalg.norm(x, 1, dim=1, keepdim=True),
            linalg.norm(x, "fro", dim=(1, 2)),
            linalg.norm(x, 1, dim=(1, 2)),
            linalg.norm(x, -INF, dim=(2, 1), keepdim=True),
            linalg.norm(x, INF, dim=-1),
            linalg.norm(x, 0, dim=[-1]),
            linalg.norm(x[0], INF),
            linalg.norm(x[0, 0], 3),
            linalg.norm(x, dim=(0, 1), dtype=torch.float64),
        ),
        vectorial,
    ),
    of_sums(
        "matrix_norm_to_sum",
        lambda x: (
            linalg.matrix_norm(x),
            linalg.matrix_norm(x, 1),
            linalg.matrix_norm(x, -1),
            linalg.matrix_norm(x, INF),
            linalg.matrix_norm(x, -INF),
            linalg.matrix_norm(x, 1, (2, 0), True),
            linalg.matrix_norm(x, INF, (-1, 0), dtype=torch.float64),
        ),
        lambda A, ord="fro", dim=(-2, -1), keepdim=False, dtype=None: spectral.matrix_norm(
            A, ord, (-2, -1) if keepdim else dim[::-1], keepdim, dtype
        ),
    ),
]


def body(name):
    return catalogue()[name].body


@pytest.mark.one_exporter
@pytest.mark.parametrize("row", EXAMPLES, ids=lambda row: row.entry)
def test_no_control_flow(row, exporter):
    result = assert_entry(row.entry, row.model, row.inputs, exporter, **row.options)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("row", APPROXIMATE, ids=lambda row: row.entry)
def test_waits_for_leave(row):
    with pytest.raises(CompatError, match="allow_approximate=True admits it"):
        assert_same_outputs(row.model, row.inputs, "torchscript")


@pytest.mark.parametrize("row", APPROXIMATE, ids=lambda row: row.entry)
def test_declines_large_and_complex_matrices(row):
    order = (2,) if row.entry.startswith("matrix_norm") else ()
    with pytest.raises(Declined, match="must have 1 to 8 rows"):
        body(row.entry)(torch.ones(9, 9), *order)
    with pytest.raises(Declined, match="the matrix must be real"):
        body(row.entry)(torch.ones(2, 2, dtype=torch.complex64), *order)


def test_declines_other_arguments():
    with pytest.raises(Declined, match="must have 1 to 8 rows"):
        body("svd_to_rotations")(torch.ones(9, 3))
    with pytest.raises(Declined, match="the tolerances must be numbers, got a tensor"):
        body("pinv_to_rotations")(torch.ones(2, 2), rtol=torch.ones(()))


def test_norms_are_shared_out():
    x = torch.randn(2, 3, 4)
    for order in ("nuc", 2, -2):
        assert body("linalg_norm_to_vector_norm")(x, order, (1, 2)) is NotImplemented
        assert body("matrix_norm_to_sum")(x, order) is NotImplemented
    assert body("matrix_norm_to_rotations")(x, 2, 1) is NotImplemented


# Against eager torch, and against float64


def assert_near(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=4e-5)


@pytest.mark.parametrize("size", [1, 3, 8])
def test_one_triangle_is_read(size):
    x = torch.randn(100, size, size)
    values, vectors = body("eigh_to_rotations")(x, "U")
    symmetric = x.triu() + x.triu(1).mT
    assert_near(vectors @ torch.diag_embed(values) @ vectors.mT, symmetric)
    assert_near(values, linalg.eigvalsh(symmetric))
    assert (vectors.amax(-2) >= -vectors.amin(-2)).all()
    assert_near(body("eigvalsh_to_rotations")(x), linalg.eigvalsh(x))


@pytest.mark.parametrize("sizes", [(1, 1), (3, 3), (5, 3), (2, 4), (8, 8)])
@pytest.mark.parametrize("full", [True, False])
def test_svd_takes_the_matrix_apart(sizes, full):
    x = torch.randn(100, *sizes)
    x[0], x[1], x[2, :, -1] = 0, 1, 0
    u, s, vh = body("svd_to_rotations")(x, full)
    wanted = linalg.svd(x, full)
    assert (u.shape, vh.shape) == (wanted[0].shape, wanted[2].shape)
    assert_near(s, wanted[1])
    count = s.shape[-1]
    assert_near((u[..., :count] * s[:, None]) @ vh[:, :count], x)
    for rows in (u.mT, vh):
        torch.testing.assert_close(rows @ rows.mT, torch.eye(rows.shape[-2]).expand(100, -1, -1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 3), (20, 3), (2, 30), (8, 8)])
def test_svdvals_equals_eager(sizes):
    x = torch.randn(100, *sizes)
    assert_near(body("svdvals_to_rotations")(x), linalg.svdvals(x))


@pytest.mark.parametrize("sizes", [(1, 1), (3, 3), (20, 3), (2, 30)])
@pytest.mark.parametrize("options", [{}, {"rtol": 0.3}, {"atol": 0.5}, {"atol": 0.5, "rtol": 0.1}])
def test_pinv_equals_eager(sizes, options):
    x = torch.randn(100, *sizes, dtype=torch.float64)
    x[0], x[1], x[2, :, -1] = 0, 1, 0
    found = body("pinv_to_rotations")(x, **options)
    torch.testing.assert_close(found, linalg.pinv(x, **options), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("order", ["nuc", 2, -2])
@pytest.mark.parametrize("dim", [(-2, -1), (1, 3), (2, 0)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms_equal_eager(order, dim, keepdim):
    x = torch.randn(4, 3, 5, 6)
    found = body("matrix_norm_to_rotations")(x, order, dim, keepdim)
    assert_near(found, linalg.matrix_norm(x, order, dim, keepdim))


def spectra(size):
    kinds = {
        "normal": torch.randn(COUNT, size),
        "graded": 10.0 ** (-6 * torch.rand(COUNT, size)),
        "repeated": torch.randint(-1, 2, (COUNT, size)).float(),
        "close": 1 + 1e-4 * torch.randn(COUNT, size),
        "zero": torch.zeros(COUNT, size),
        "huge": 1e25 * torch.randn(COUNT, size),
        "tiny": 1e-25 * torch.randn(COUNT, size),
    }
    turn = linalg.qr(torch.randn(COUNT, size, size, dtype=torch.float64))[0]
    for values in kinds.values():
        matrix = turn @ torch.diag_embed(values.double()) @ turn.mT
        yield ((matrix + matrix.mT) / 2).float()
    yield torch.ones(COUNT, size, size)


def assert_small(error, matrix=None):
    """The error is at most 1e-5, relative to the matrix's largest element."""
    scale = 1 if matrix is None else matrix.double().abs().amax((-2, -1), keepdim=True).clamp(min=1e-300)
    assert (error / scale).abs().max() < 1e-5


@pytest.mark.parametrize("size", range(1, 9))
def test_eigh_of_hard_spectra(size):
    for matrix in spectra(size):
        values, vectors = (x.double() for x in spectral.eigh(matrix, size))
        assert_small((values - linalg.eigvalsh(matrix.double()))[..., None], matrix)
        assert_small(vectors @ torch.diag_embed(values) @ vectors.mT - matrix.double(), matrix)
        assert_small(vectors.mT @ vectors - torch.eye(size))


@pytest.mark.parametrize("size", range(1, 9))
def test_svd_of_hard_spectra(size):
    for matrix in (*spectra(size), torch.randn(COUNT, size + 1, size), torch.randn(COUNT, size, size + 2)):
        u, s, v = (x.double() for x in spectral.svd(matrix, *matrix.shape[1:]))
        assert_small((s - linalg.svdvals(matrix.double()))[..., None], matrix)
        together = (u[..., : s.shape[-1]] * s[:, None]) @ v[..., : s.shape[-1]].mT
        assert_small(together - matrix.double(), matrix)
        for side in (u, v):
            assert_small(side.mT @ side - torch.eye(side.shape[-1]))
