"""Small linear systems, in rows; against eager torch at every size and option; what is declined."""

import itertools
import warnings

import pytest
import torch
from torch import linalg
from torch.torch_version import TorchVersion
from torch_onnx_compat.symbolics import elimination

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_same_outputs, assert_still_needed

EYE = torch.eye(3)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.triangular_solve(EYE, EYE)  # deprecated, which torch says once in a process


def matrices(batch, *sizes):
    """Random ones, far from singular, with zeros where elimination begins."""
    m = torch.randn(batch, *sizes) / 4
    for i in range(min(sizes)):
        m[:, i, sizes[1] - 1 - i] += 2
    m[:, 0, 0] = 0
    return m


def row(name, model, broken=None, rows=3):
    inputs, samples = (matrices(2, rows, 3),), [(matrices(5, rows, 3),)]
    return Example(name, model, inputs, broken, samples=samples, leaves=lambda x: x @ x.transpose(1, 2))


def solutions(x):
    b = x[..., :2] + 1
    return (
        linalg.solve(x, b),
        linalg.solve(x, b[..., 0]),
        linalg.solve(x, b.transpose(1, 2), left=False),
        linalg.solve(x, b[0]),
        linalg.solve(x[0], b),
        linalg.solve(x[0], b[0, :, 1]),
        linalg.solve(x, b[0, :, 1]),
    )


def triangular_solutions(x):
    x, b = x + 3 * EYE, x[..., :2]
    return (
        linalg.solve_triangular(x.tril(), b, upper=False),
        linalg.solve_triangular(x.triu(), b, upper=True),
        linalg.solve_triangular(x, b, upper=True, unitriangular=True),
        linalg.solve_triangular(x.tril(), b.transpose(1, 2), upper=False, left=False),
        linalg.solve_triangular(x[0].tril(), b, upper=False),
    )


def old_triangular_solutions(x):
    x, b = x + 3 * EYE, x[..., :2]
    return (
        torch.triangular_solve(b, x).solution,
        torch.triangular_solve(b, x, upper=False, transpose=True)[0],
        torch.triangular_solve(b, x, unitriangular=True)[0],
    )


def cholesky_factors(x):
    x = x @ x.transpose(1, 2) + EYE
    return (
        linalg.cholesky(x + x.triu(1)),
        linalg.cholesky(x + x.tril(-1), upper=True),
        linalg.cholesky(x[0]),
    )


def cholesky_factors_with_info(x):
    x = x @ x.transpose(1, 2) + EYE
    return linalg.cholesky_ex(x).L, linalg.cholesky_ex(x, upper=True)[0], linalg.cholesky_ex(x - 4 * EYE).info


def orthogonal_factors(x):
    return (
        *linalg.qr(x),
        *linalg.qr(x, mode="complete"),
        linalg.qr(x.transpose(1, 2), "r").R,
        linalg.qr(x[:, :3]).Q,
    )


def least_squares(x):
    """Of matrices far from singular, whatever is drawn for x."""
    x = 2 * torch.eye(5)[:, :3].flip(1) + x.clamp(-1, 1) / 4
    b = x[:, :, 1:] ** 2
    return linalg.lstsq(x, b).solution, linalg.lstsq(x, b, driver="gels")[0]


def all_regular(A, *, check_errors=False):
    inverse, info = elimination.inv_ex_to_elimination(A)
    return torch.return_types.linalg_inv_ex((inverse, torch.zeros_like(info)))


def other_sign(A=None, *, input=None):
    sign, logarithm = elimination.slogdet_to_elimination(A, input=input)
    return torch.return_types.linalg_slogdet((-sign, logarithm))


EXAMPLES = [
    Example(
        "det_to_elimination",
        lambda x: (torch.det(x), linalg.det(x[:, :2, :2]), x[:, :3, :3].det()),
        (torch.randn(3, 4, 4, dtype=torch.float64),),
        broken=lambda A=None, *, input=None: -elimination.det_to_elimination(A, input=input),
        leaves=lambda x: torch.det(x.float()),
    ),
    row(
        "slogdet_to_elimination",
        lambda x: (*linalg.slogdet(x), *torch.slogdet(x / 1e20), x[0].slogdet().logabsdet),
        other_sign,
    ),
    row(
        "logdet_to_elimination",
        lambda x: (torch.logdet(x), torch.logdet((x @ x.transpose(1, 2) + EYE) / 1e20), (-x).logdet()),
        lambda input: elimination.slogdet_to_elimination(input)[1],
    ),
    row(
        "inv_to_elimination",
        lambda x: (linalg.inv(x), torch.inverse(x), x[0].inverse(), linalg.inv(x[:, None] + EYE)),
        lambda A=None, *, input=None: (input if A is None else A).transpose(-2, -1),
    ),
    row("inv_ex_to_elimination", lambda x: (linalg.inv_ex(x).inverse, linalg.inv_ex(x - x[:, :1])[1]), all_regular),
    row("solve_to_elimination", solutions),
    row(
        "solve_triangular_to_substitution",
        triangular_solutions,
        lambda input, B, *, upper, left=True, unitriangular=False: elimination.solve_triangular_to_substitution(
            input, B, upper=upper, left=left
        ),
    ),
    row(
        "triangular_solve_to_substitution",
        old_triangular_solutions,
        lambda b, A, upper=True, transpose=False, unitriangular=False: elimination.triangular_solve_to_substitution(
            b, A, upper, False, unitriangular
        ),
    ),
    row(
        "cholesky_to_columns",
        cholesky_factors,
        lambda input, *, upper=False: elimination.cholesky_to_columns(input),
    ),
    row(
        "cholesky_ex_to_columns",
        cholesky_factors_with_info,
        lambda input, *, upper=False: elimination.cholesky_ex_to_columns(input, upper=not upper),
    ),
    row(
        "cholesky_inverse_to_substitution",
        lambda x: (torch.cholesky_inverse(x + 3 * EYE), torch.cholesky_inverse(x + 3 * EYE, upper=True)),
        lambda L, upper=False: elimination.cholesky_inverse_to_substitution(L),
    ),
    row(
        "cholesky_solve_to_substitution",
        lambda x: (
            torch.cholesky_solve(x, x.tril() + 3 * EYE),
            torch.cholesky_solve(x[0], x + 3 * EYE, upper=True),
        ),
        lambda B, L, upper=False: elimination.cholesky_solve_to_substitution(B, L),
    ),
    row(
        "qr_to_reflections",
        orthogonal_factors,
        lambda A, mode="reduced": torch.return_types.linalg_qr([-x for x in elimination.qr_to_reflections(A, mode)]),
        rows=4,
    ),
    row(
        "lstsq_to_qr",
        least_squares,
        rows=5,
    ),
    Example(
        "factorisation_outside",
        lambda x: (linalg.lu_factor(x)[0], linalg.matrix_rank(x)),
        (torch.randn(2, 3, 3),),
        leaves=lambda x: x @ x,
        declines="factorisation_outside declined: ONNX has no operator for this factorisation; solve",
    ),
]


def plus_identity(x, times):
    return x + times * torch.eye(x.shape[-1])


def two_columns(x):
    return torch.cat((x[..., :1] + 1, x[..., -1:] ** 2), -1)


def half(x):
    """Half of the columns and one more."""
    return x[:, :, : x.shape[2] // 2 + 1]


def without_row(x):
    """The first three without their first row, and so singular."""
    return torch.cat((torch.zeros_like(x[:3, :1]), x[:3, 1:]), 1)


def degenerate(x):
    """Nothing at all, nothing in the first column, nothing below the diagonal."""
    return torch.stack((x[0] * 0, x[1] * (torch.arange(x.shape[2]) > 0), x[2].triu(), *x[3:]))


def positive_definite(x):
    return plus_identity(x @ x.mT, 1)


def lower(x):
    return plus_identity(x.tril(), 2)


def of_one_triangle(A, B, *, upper, **options):
    """The body may be given the other triangle too, and leaves it unread."""
    return linalg.solve_triangular(A.triu() if upper else A.tril(), B, upper=upper, **options)


OPTIONS = [
    {"upper": upper, "left": left, "unitriangular": unit}
    for upper, left, unit in itertools.product((True, False), repeat=3)
]
CALLS = {
    "det_to_elimination": (linalg.det, lambda f, x: f((x * 4).round().clamp(-1, 1))),
    "slogdet_to_elimination": (linalg.slogdet, lambda f, x: (f(x), f(without_row(x)))),
    "logdet_to_elimination": (torch.logdet, lambda f, x: (f(x), f(x.mT @ x))),
    "inv_to_elimination": (linalg.inv, lambda f, x: f(x)),
    "inv_ex_to_elimination": (linalg.inv_ex, lambda f, x: f(x)),
    "solve_to_elimination": (
        linalg.solve,
        lambda f, x: (
            f(x, two_columns(x)),
            f(x, x[..., 0] + 1),
            f(x, two_columns(x).mT, left=False),
            f(x[0], two_columns(x)),
        ),
    ),
    "solve_triangular_to_substitution": (
        of_one_triangle,
        lambda f, x: [f(plus_identity(x, 3), x, **options) for options in OPTIONS],
    ),
    "triangular_solve_to_substitution": (
        torch.triangular_solve,
        lambda f, x: [
            f(x, plus_identity(x, 3), *flags)[0]
            for flags in ((True, False), (False, True), (True, True), (False, False, True))
        ],
    ),
    "cholesky_to_columns": (
        linalg.cholesky,
        lambda f, x: (f(positive_definite(x)), f(positive_definite(x), upper=True)),
    ),
    "cholesky_ex_to_columns": (linalg.cholesky_ex, lambda f, x: f(positive_definite(x))),
    "cholesky_inverse_to_substitution": (torch.cholesky_inverse, lambda f, x: (f(lower(x)), f(lower(x).mT, True))),
    "cholesky_solve_to_substitution": (torch.cholesky_solve, lambda f, x: (f(x, lower(x)), f(x, lower(x).mT, True))),
    "qr_to_reflections": (
        linalg.qr,
        lambda f, x: [
            f(m, mode)
            for m in (degenerate(x), half(degenerate(x)), half(degenerate(x).mT).mT)
            for mode in ("reduced", "complete", "r")
        ],
    ),
    "lstsq_to_qr": (linalg.lstsq, lambda f, x: (f(x, x)[0], f(half(x), x)[0])),
}
"""The torch function, and what a test calls it and the entry's body with: of each entry."""


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("name", CALLS)
def test_equals_eager(name, size):
    function, call = CALLS[name]
    x = plus_identity(matrices(20, size, size).double(), 1 / 8)
    torch.testing.assert_close(call(catalogue()[name].body, x), call(function, x), equal_nan=True)


@pytest.mark.parametrize(("size", "reason"), [(9, "must have 1 to 8 rows, got 9"), (0, "got 0")])
@pytest.mark.parametrize("name", CALLS)
def test_declines_large_and_empty_matrices(name, size, reason):
    _, call = CALLS[name]
    with pytest.raises(Declined, match=reason):
        call(catalogue()[name].body, torch.ones(3, size, size, dtype=torch.float64))


def test_lstsq_declines_wide_matrices_and_rcond():
    body, x = catalogue()["lstsq_to_qr"].body, torch.ones(2, 2, 3)
    with pytest.raises(Declined, match="as many rows as columns at least, got 2 x 3"):
        body(x, x)
    with pytest.raises(Declined, match="rcond must be None"):
        body(x, x, 0.5)


@pytest.mark.one_exporter
@pytest.mark.parametrize("name", CALLS)
def test_is_written_out(name, exporter):
    row = next(row for row in EXAMPLES if row.entry == name)
    result = assert_same_outputs(row.model, row.inputs, exporter, dynamic="batch", verify=False, uses=(name,))
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.skipif(TorchVersion(torch.__version__) < "2.10", reason="an older LAPACK counts on after the first 0")
def test_info_of_inverse_is_that_of_lapack():
    x = torch.randn(200, 4, 4, dtype=torch.float64)
    x[:50, :, 2], x[50:80, :, 0] = 0, 0
    wanted, found = linalg.inv_ex(x), elimination.inv_ex_to_elimination(x)
    assert found.info.dtype == torch.int32
    assert torch.equal(found.info, wanted.info)
    regular = found.info == 0
    torch.testing.assert_close(found.inverse[regular], wanted.inverse[regular])
    assert not found.inverse[~regular].isfinite().all(-1).all(-1).any()


def test_info_of_cholesky_is_that_of_lapack():
    x = torch.randn(200, 4, 4, dtype=torch.float64)
    x = plus_identity(x + x.mT, 3)
    wanted, found = linalg.cholesky_ex(x), elimination.cholesky_ex_to_columns(x)
    assert torch.equal(found.info, wanted.info)
    regular = found.info == 0
    torch.testing.assert_close(found.L[regular], wanted.L[regular])


@pytest.mark.parametrize("left", [True, False])
def test_complex_systems(exporter, left):
    def model(x):
        z = torch.complex(x.sin() / 4 + 2 * EYE, x.flip(-1).sin() / 4)
        return torch.view_as_real(linalg.solve(z, z + 1, left=left).resolve_conj()), linalg.inv(z).imag

    uses = ("solve_to_elimination", "inv_to_elimination")
    assert_same_outputs(model, (matrices(2, 3, 3),), exporter, dynamic="batch", uses=uses)


def filtered(points):
    """A filter of Kalman's with two numbers each, which is corrected only where a point is no outlier."""
    move, see = torch.eye(4), torch.eye(2, 4)
    move[0, 2] = move[1, 3] = 1.0
    state, spread, states = torch.cat([points[0], torch.zeros(2)]), torch.eye(4), []
    for point in points:
        state, spread = move @ state, move @ spread @ move.T + torch.eye(4) * 0.01
        rest, seen = point - see @ state, see @ spread @ see.T + torch.eye(2) * 0.1
        if rest @ linalg.solve(seen, rest) < 9.49:
            gain = spread @ see.T @ linalg.inv(seen)
            state, spread = state + gain @ rest, spread - gain @ see @ spread
        states.append(state)
    return torch.stack(states), linalg.cholesky(spread)


def test_systems_in_rounds():
    """The calls of the rounds have no numbers; all of a line are of one size."""
    samples = [(torch.randn(number, 2) * 4,) for number in (1, 2, 9)]
    options = {"dynamic": {"points": {0: "number"}}, "samples": samples}
    uses = ("solve_to_elimination", "inv_to_elimination", "cholesky_to_columns")
    assert_same_outputs(filtered, (torch.randn(6, 2),), "torchscript", uses=uses, **options)


def growing(x):
    total = x.sum()
    for number in range(x.shape[0]):
        total = total + linalg.inv(torch.eye(number + 1) * 2 + x[: number + 1].mean()).sum()
    return total


def test_systems_that_grow_from_round_to_round_are_refused():
    with pytest.raises(CompatError, match="the size of the matrix must be fixed"):
        assert_same_outputs(growing, (torch.rand(6, 2),), "torchscript", dynamic={"x": {0: "number"}})


def test_stock_lacks_other_factorisations(exporter):
    row = EXAMPLES[-1]
    assert_still_needed(row.entry, row.model, row.inputs, exporter)
