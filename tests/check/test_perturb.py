"""Runs in which the original rounds otherwise, or breaks ties otherwise."""

import itertools

import pytest
import torch
from torch import nn

from torch_onnx_compat.check.perturb import TERMS, BreakTies, RoundOtherwise

EPS = torch.finfo(torch.float32).eps


def changes(function, *tensors, step=1.0, seeds=8):
    wanted = function(*tensors)
    found = []
    for seed in range(seeds):
        with RoundOtherwise(step, seed):
            found.append(function(*tensors))
    return torch.stack([(f - wanted).abs() for f in found]).amax(0), wanted


X = torch.randn(6, 200, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "function",
    [torch.exp, torch.sigmoid, lambda x: x * 1.1, lambda x: x.clone().mul_(1.1), lambda x: x @ x.T, nn.LayerNorm(200)],
)
def test_what_rounds_is_off_by_a_few_roundings_at_every_value(function):
    with torch.no_grad():
        change, wanted = changes(function, X)
    assert (change > 0).float().mean() > 0.95
    assert float(change.max()) < 1e-4 * float(wanted.abs().max())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.relu(),
        lambda x: x.sort().values,
        lambda x: torch.cat([x, x.flip(0)]),
        lambda x: x[:, :3].clone(),
        lambda x: (x > 0).sum(1).float() / 2,
        lambda x: torch.arange(7.0) + 0.5,
        lambda x: x.max(1).values,
        lambda x: torch.embedding(x, torch.tensor([1, 2])),
        lambda x: x.round() * 3,
    ],
)
def test_what_is_exact_stays(function):
    assert not changes(function, X)[0].any()


def test_cancelled_terms_are_off_by_their_own_rounding():
    """The sum is near zero, its terms are thousands."""
    terms = torch.cat([1000 * X, -1000 * X + 1e-3], 1)
    change, wanted = changes(lambda x: x.sum(1), terms)
    assert (change > 1e-5).all()
    assert float(wanted.abs().max()) < 1


FACTORED = {
    "eigvalsh": lambda a, b: torch.linalg.eigvalsh(a @ a.mT),
    "svdvals": lambda a, b: torch.linalg.svdvals(a),
    "det": lambda a, b: torch.linalg.det(a),
    "solve": lambda a, b: torch.linalg.solve(a + 3 * torch.eye(4, dtype=a.dtype), b),
    "inv": lambda a, b: torch.linalg.inv(a + 3 * torch.eye(4, dtype=a.dtype)),
    "cholesky": lambda a, b: torch.linalg.cholesky(a @ a.mH + torch.eye(4, dtype=a.dtype)),
    "solve_triangular": lambda a, b: torch.linalg.solve_triangular(a.abs() + 0.1, b, upper=True),
    "qr": lambda a, b: torch.linalg.qr(a).R.abs(),
    "lstsq": lambda a, b: torch.linalg.lstsq(a.repeat(2, 1), b.repeat(2, 1)).solution,
}
MATRICES = {
    "any": X[:4, :4],
    "of few digits": torch.tensor([[1.0, 2, 3, 4], [2, 5, 1, 0], [0, 1, 3, 2], [4, 0, 1, 3]]),
    "nearly singular": torch.full((4, 4), 0.7) + 1e-5 * X[:4, :4],
    "of several magnitudes": X[:4, :4] * torch.tensor([1e3, 1, 1e-3, 10]),
}


@pytest.mark.parametrize(
    ("function", "matrix"),
    [pair for pair in itertools.product(FACTORED, MATRICES) if pair != ("lstsq", "nearly singular")],  # of any rank
)
def test_a_factorisation_is_off_by_a_rounding_of_the_matrix(function, matrix):
    """As far as it is from what float64 computes, which is zero for many values of which float32 has a rounding."""
    a, b = MATRICES[matrix], X[:4, 4:6]
    change, found = changes(FACTORED[function], a, b, seeds=16)
    exact = FACTORED[function](a.double(), b.double())
    assert ((found - exact).abs() <= 8 * change + 2e-7 * exact.abs()).all()


@pytest.mark.parametrize("length", [60, 650, 3000])
@pytest.mark.parametrize("kind", ["bilinear", "bicubic", "linear", "grid"])
def test_a_long_picture_is_resized_with_the_rounding_of_its_places(length, kind):
    """As far as float32 is from float64, whose places are exact; beside large cells small ones are as far off."""
    x = torch.randn(1, 2, length, 4, generator=torch.Generator().manual_seed(0))
    x[:, :, ::3] *= 0.01
    grid = torch.rand(1, length, 4, 2, generator=torch.Generator().manual_seed(1)) * 2 - 1

    def resize(x):
        if kind == "grid":
            return nn.functional.grid_sample(x, grid.to(x), align_corners=False)
        small = x[..., 0] if kind == "linear" else x
        return nn.functional.interpolate(small, scale_factor=0.7, mode=kind, align_corners=True)

    change, found = changes(resize, x, seeds=8)
    assert ((found - resize(x.double())).abs() <= 4 * change + 1e-6).float().mean() > 0.999


COMPLEX = X[:4, :4] + 1j * X[:4, 6:10]


@pytest.mark.parametrize("function", ["svdvals", "det", "solve", "inv", "cholesky", "qr"])
@pytest.mark.parametrize("matrix", [COMPLEX, COMPLEX * torch.tensor([10, 1, 0.1, 3])], ids=["any", "magnitudes"])
def test_a_factorisation_of_complex_numbers(function, matrix):
    b = X[:4, 4:6] + 1j * X[:4, 10:12]
    change, found = changes(FACTORED[function], matrix, b, seeds=16)
    exact = FACTORED[function](matrix.to(torch.complex128), b.to(torch.complex128))
    assert change.max() > 0
    assert ((found - exact).abs() <= 8 * change + 2e-7 * exact.abs()).all()


def test_what_is_infinite_in_a_matrix_stays_so():
    with RoundOtherwise(1.0, 0):
        inverse = torch.linalg.inv_ex(torch.tensor([[3e38, 0.1], [-0.1, torch.finfo(torch.float32).max]])).inverse
    assert inverse.isfinite().all()


def test_equal_values_have_no_exact_eigenvalues():
    change, _ = changes(torch.linalg.eigvalsh, torch.full((3, 3), 0.5))
    assert (change > 1e-8).all()


@pytest.mark.parametrize("inplace", [False, True])
def test_small_sigmoids_are_off_by_a_rounding_of_one_half(inplace):
    """Engines compute 1/2 + ..., as onnxruntime does; near 1/2 the change is a rounding as everywhere."""
    change, wanted = changes((lambda x: x.clone().sigmoid_()) if inplace else torch.sigmoid, -X.abs() - 12)
    assert float(wanted.max()) < 1e-5
    assert (change > 5e-9).float().mean() > 0.95
    assert float(change.max()) < 1.3e-7
    change, _ = changes(nn.functional.silu, -X.abs() - 12)
    assert 1e-7 < float(change.median()) < float(change.max()) < 2e-6


@pytest.mark.parametrize("x", [X.t(), X[:, ::2], X.unfold(0, 5, 2), torch.randn(2, 1100000)[:, 1:], X[0].expand(7, -1)])
def test_values_in_any_order_of_memory(x):
    """Each value changes by a rounding of its own, whatever gaps are between them; what is expanded, as one."""
    change, wanted = changes(torch.exp, x)
    assert change.shape == x.shape
    assert (change <= 2 * EPS * wanted).all()
    assert (change > 0).float().mean() > 0.9
    summed, wanted = changes(lambda y: y.sum(0), x)
    assert (summed > 0).float().mean() > 0.9
    assert (summed <= (2 * TERMS + len(x)) * EPS * x.abs().sum(0)).all()


def test_a_transform_of_numbers_of_few_digits_is_inexact():
    """Its sines have all digits: a constant's spectrum is 0 but for one place, and rounding there."""
    for x in (torch.ones(3, 24), torch.ones(3, 24, dtype=torch.float64)):
        change, _ = changes(lambda x: torch.view_as_real(torch.fft.rfft(x)), x)
        assert (change[..., 1:, :] > 0).float().mean() > 0.9
        assert float(change.max()) < 24 * 2 * TERMS * torch.finfo(x.dtype).eps
    with RoundOtherwise(1.0, 0):
        assert torch.fft.fft(torch.full((4,), torch.inf))[0].real == torch.inf


def test_the_largest_numbers_stay_finite():
    x = torch.full((100001,), torch.finfo(torch.float32).max)
    with RoundOtherwise(4.0, 0):
        changed = x * 1.0
    assert changed.isfinite().all()
    assert (changed != x).any()
    with RoundOtherwise(4.0, 0):
        assert torch.equal(torch.full((9,), -torch.inf) * 1.0, torch.full((9,), -torch.inf))


def test_inputs_and_weights_stay_as_they_are():
    model, x = nn.Linear(200, 3), X.clone()
    before = model.weight.detach().clone()
    with torch.no_grad(), RoundOtherwise(1.0, 0):
        model(x)
    assert torch.equal(x, X)
    assert torch.equal(model.weight, before)


def test_other_element_types():
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        change, wanted = changes(lambda x: (x.exp() * 1.1).double(), X.to(dtype), step=2.0)
        assert 0 < float(change.max()) < 5 * torch.finfo(dtype).eps * float(wanted.max())
    with RoundOtherwise(1.0, 0):
        z = torch.fft.fft(X)
    assert z.is_complex()
    assert 0 < float((z - torch.fft.fft(X)).abs().max()) < 1e-3


TIED = torch.tensor([[3.0, 1, 3, 2, 3, 1], [0, 0, 0, 0, 0, 0]])


def broken(function, *, lowest_first, x=TIED):
    mode = BreakTies(lowest_first=lowest_first)
    with mode:
        result = function(x)
    return result, mode.has_ties


def test_ties_go_by_place():
    (values, indices), was_broken = broken(lambda x: x.topk(2), lowest_first=True)
    assert was_broken
    assert values.tolist() == [[3, 3], [0, 0]]
    assert indices.tolist() == [[0, 2], [0, 1]]
    assert broken(lambda x: x.topk(2).indices, lowest_first=False)[0].tolist() == [[4, 2], [5, 4]]
    assert broken(lambda x: x.topk(2, largest=False).indices, lowest_first=True)[0].tolist() == [[1, 5], [0, 1]]
    assert broken(lambda x: x.sort().indices, lowest_first=True)[0][0].tolist() == [1, 5, 3, 0, 2, 4]
    assert broken(lambda x: x.sort(descending=True).indices, lowest_first=False)[0][0].tolist() == [4, 2, 0, 3, 5, 1]
    assert broken(lambda x: x.argsort(0), lowest_first=True)[0].shape == TIED.shape
    values, indices = broken(lambda x: x.kthvalue(1), lowest_first=False)[0]
    assert (values.tolist(), indices.tolist()) == ([1, 0], [5, 5])
    values, indices = broken(lambda x: x.median(0), lowest_first=True, x=torch.zeros(3, 2))[0]
    assert (values.tolist(), values.dtype) == ([0, 0], torch.float32)


def test_promised_orders_and_distinct_values_stay():
    assert broken(lambda x: x.argmax(1).tolist(), lowest_first=False)[0] == [0, 0]
    (_, indices), was_broken = broken(lambda x: x.sort(stable=True, dim=1), lowest_first=False)
    assert (indices[1].tolist(), was_broken) == ([0, 1, 2, 3, 4, 5], False)
    assert not broken(lambda x: x.topk(3), lowest_first=False, x=X)[1]
    assert broken(lambda x: x.topk(1), lowest_first=True, x=torch.tensor(1.0))[0].values == 1


def test_suppressed_boxes_go_by_place():
    from torchvision.ops import nms

    boxes = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 10.1], [50, 50, 60, 60]])
    scores = torch.tensor([0.5, 0.5, 0.9])
    keep = {broken(lambda s: tuple(nms(boxes, s, 0.5).tolist()), lowest_first=o, x=scores)[0] for o in (True, False)}
    assert keep == {(2, 0), (2, 1)}
