"""Draws are like the example, at its size and at others."""

import pytest
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.inputs.draws import draw_beside, draw_like, is_one_number
from torch_onnx_compat.inputs.dynamic import with_axes
from torch_onnx_compat.inputs.inputs import bind


def draw(example, *shape, seed=0):
    (drawn,) = draw_like([example], [shape or example.shape], seed)
    assert drawn.dtype == example.dtype
    assert tuple(drawn.shape) == (shape or tuple(example.shape))
    return drawn


def ties(x):
    return x.numel() - len(x.unique())


SEEDED = torch.Generator().manual_seed(3)
NUMBERS = torch.randn(20, 400, generator=SEEDED)


@pytest.mark.parametrize("shape", [(20, 400), (33, 700), (1, 5)])
def test_numbers_have_the_range_and_no_ties(shape):
    assert not ties(NUMBERS)
    drawn = draw(NUMBERS, *shape)
    assert not ties(drawn)
    assert NUMBERS.min() <= drawn.min()
    assert drawn.max() <= NUMBERS.max() + 1e-5
    assert float(drawn.sum()) != float(NUMBERS.sum())
    if drawn.numel() > 1000:
        assert abs(float(drawn.std()) - 1) < 0.1


def test_draws_differ_by_seed_and_repeat_with_it():
    assert torch.equal(draw(NUMBERS, seed=1), draw(NUMBERS, seed=1))
    assert not torch.equal(draw(NUMBERS, seed=1), draw(NUMBERS, seed=2))
    assert abs(float(draw(NUMBERS, seed=1).sum() - draw(NUMBERS, seed=2).sum())) > 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_element_types(dtype):
    drawn = draw(NUMBERS.to(dtype), 7, 9)
    assert drawn.isfinite().all()


@pytest.mark.parametrize(
    "example",
    [
        torch.tensor([[1.0, 0, 0, 1], [0, 0, 1, 1]]),
        torch.tensor([[0.0, -torch.inf], [0.0, 0.0]]),
        torch.randint(0, 256, (30, 40), generator=SEEDED).to(torch.uint8),
        torch.randint(0, 256, (30, 40), generator=SEEDED).float(),
        torch.randint(5, 9, (30, 4), generator=SEEDED),
        torch.tensor([[True, False, True]] * 4),
    ],
    ids=["mask", "attention mask", "bytes", "pixels", "ids", "booleans"],
)
def test_few_kinds_keep_their_values(example):
    for shape in (example.shape, (2 * example.shape[0], example.shape[1] + 3)):
        assert torch.isin(draw(example, *shape).float(), example.float()).all()


def test_whole_numbers_that_differ_stay_different():
    example = torch.tensor([[40, 7, 12], [3, 99, 8]])
    drawn = draw(example)
    assert torch.isin(drawn, example).all()
    assert all(not ties(row) for row in drawn)
    assert all(not ties(row) for row in draw(example, 5, 9))


def test_permutations_become_permutations():
    example = torch.randperm(9, generator=SEEDED)
    for size in (9, 14, 1):
        assert draw(example, size).sort().values.tolist() == list(range(size))
    assert not torch.equal(draw(example), example)


@pytest.mark.parametrize(
    "example",
    [
        torch.arange(6).expand(3, 6),
        torch.tensor([0, 2, 5, 6]),
        torch.tensor([0, 0, 1, 1, 2, 5]),
        torch.tensor([[-1.0, 0.3, 0.5], [-7, -6, 4.5]]),
        torch.linspace(-1, 1, 11),
    ],
    ids=["positions", "offsets", "segments", "boundaries", "grid"],
)
def test_sorted_rows_stay_sorted(example):
    for size in (example.shape[-1], example.shape[-1] + 3, 1):
        drawn = draw(example, *example.shape[:-1], size)
        assert (drawn[..., :-1] <= drawn[..., 1:]).all()
        if not any(map(ties, example.reshape(-1, example.shape[-1]))):
            assert (drawn[..., :-1] < drawn[..., 1:]).all()
    assert draw(example.flip(-1)).flip(-1).diff().min() >= 0


def test_positions_stay_positions():
    assert draw(torch.arange(6), 9).tolist() == list(range(9))


def test_a_column_of_whole_numbers_keeps_its_own():
    boxes = torch.cat((torch.tensor([0.0, 2.0, 2.0, 0.0])[:, None], torch.rand(4, 4, generator=SEEDED) * 50), 1)
    drawn = draw(boxes, 40, 5)
    assert set(drawn[:, 0].tolist()) == {0.0, 2.0}
    assert not ties(drawn[:, 1:])


@pytest.mark.parametrize("size", [5, 8, 3])
def test_symmetric_matrices_stay_so(size):
    a = torch.randn(2, 5, 5, generator=SEEDED)
    positive, symmetric = a @ a.mT + torch.eye(5), a + a.mT
    positive = (positive + positive.mT) / 2
    for example in (positive, symmetric):
        drawn = draw(example, 2, size, size)
        assert torch.equal(drawn, drawn.mT)
    drawn = draw(positive, 2, size, size)
    torch.linalg.cholesky(drawn)
    assert (drawn[0] - drawn[1]).abs().max() > 0.1


@pytest.mark.parametrize("shape", [(1, 4), (9, 4), (4, 1), (2, 9)], ids=str)
def test_a_symmetric_example_may_be_drawn_with_axes_of_different_lengths(shape):
    (drawn,) = draw_like((torch.eye(4) + 0.5,), (shape,), 0)
    assert drawn.shape == shape


def test_an_identity_matrix_is_an_example_of_a_batch_of_rows(exporter):
    export_compat(torch.nn.Linear(4, 2), (torch.eye(4),), exporter=exporter, dynamic="batch")


def test_constants_become_noise():
    drawn = draw(torch.full((3, 4), 0.5), 5, 4)
    assert not ties(drawn)
    assert draw(torch.full((3,), 7), 5).tolist() == [7] * 5
    assert draw(torch.zeros(0, 3), 2, 3).tolist() == [[0, 0, 0]] * 2


def test_at_other_sizes_the_example_is_drawn_from_not_its_repetition():
    x, order = torch.randn(4, 3), torch.randperm(4)

    class Model(torch.nn.Module):
        def forward(self, x, order):
            return x[order]

    inputs = with_axes(bind(Model(), (x, order), None, None), {"x": {0: "n"}, "order": {0: "n"}}, None, None, ())
    for grown in (inputs.at_sizes({"n": 9}), inputs.at_sizes({"n": 2}).at_sizes({"n": 9})):
        assert ties(grown.tensors[0])
        drawn = grown.redrawn(1)
        assert [t.shape for t in drawn.tensors] == [(9, 3), (9,)]
        assert not ties(drawn.tensors[0])
        assert drawn.tensors[1].sort().values.tolist() == list(range(9))


NARROW = (torch.float8_e4m3fn, torch.bfloat16, torch.float16, torch.float32, torch.uint16, torch.uint8, torch.int64)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("numbers", [(0.0, 2.0, 5.0, 9.0), (9.0, 5.0, 2.0, 0.0)])
def test_what_is_sorted_stays_so_with_its_ends(dtype, numbers):
    ends = torch.tensor(numbers).to(dtype)
    inputs = with_axes(bind(torch.nn.Identity(), (ends,), None, None), {"input": {0: "n"}}, None, None, ())
    for size in (2, 3, 7):
        (found,) = inputs.at_sizes({"n": size}).tensors
        assert found.dtype == dtype
        found = found.float()
        assert (found[0], found[-1]) == (numbers[0], numbers[-1])
        assert found.tolist() == sorted(found.tolist(), reverse=numbers[0] > numbers[-1])


@pytest.mark.parametrize(
    ("example", "kinds"),
    [
        (torch.ones(4, 50, dtype=torch.int64), {0, 1}),
        (torch.zeros(4, 50, dtype=torch.uint8), {0, 1}),
        (torch.full((4, 50), 255, dtype=torch.uint8), {0, 1, 254, 255}),
        (torch.full((4, 50), -100), {-101, -100, -99}),
        (torch.full((4, 50), -128, dtype=torch.int8), {-128, -127}),
        (torch.ones(4, 50, dtype=torch.bool), {False, True}),
    ],
)
def test_beside_one_number_there_are_others(example, kinds):
    assert is_one_number(example)
    drawn = draw_beside(example, 0)
    assert (drawn.dtype, drawn.shape) == (example.dtype, example.shape)
    assert set(drawn.unique().tolist()) == kinds
    steps = drawn.long().diff(dim=-1)
    assert (steps <= 0).all() or (steps >= 0).all()


@pytest.mark.parametrize(("number", "other"), [(0, 1), (1, 0), (6, 5), (-1, 0)])
def test_beside_a_single_number_there_is_another(number, other):
    assert draw_beside(torch.tensor(number), 0) == other
    assert draw_beside(torch.tensor([number]), 0).tolist() == [other]


def test_zero_may_be_left_out():
    assert set(draw_beside(torch.full((60,), 6), 0, has_zero=False).tolist()) == {1, 5, 6}


def test_what_is_not_one_number():
    assert not any(map(is_one_number, (torch.arange(3), torch.ones(3), torch.zeros(0, dtype=torch.int64))))
