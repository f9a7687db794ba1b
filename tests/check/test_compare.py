"""How outputs are judged."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torch_onnx_compat.check.compare import (
    Comparison,
    calmest_slice,
    compare,
    comparison_lines,
    is_close,
    judge_by_noise,
)

VALUES = torch.tensor([1.0, -2.0, 3.0, 0.0])


def compare_outputs(found, wanted):
    return compare("case", "output", np.asarray(found), wanted)


def test_rounding_is_allowed_and_more_is_not():
    assert compare_outputs(VALUES.numpy() * (1 + 1e-6), VALUES).ok
    row = compare_outputs(VALUES.numpy() * 1.01, VALUES)
    assert not row.ok
    assert row.max_abs == pytest.approx(0.03, rel=1e-3)
    assert row.detail.startswith("3 of 4 values differ")


def test_small_values_beside_large_ones_are_judged_by_themselves():
    """A score that is off by 0.06 is wrong, even where boxes of hundreds of pixels stand in the same tensor."""
    wanted = torch.tensor([640.0, 320.0, 0.31, 0.02, 0.5, 0.4, 0.3, 0.1])
    found = wanted.numpy().copy()
    found[2] += 0.06
    assert not compare_outputs(found, wanted).ok


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_are_equal_or_wrong(dtype):
    wanted = torch.tensor([0, 1, 1], dtype=dtype)
    assert compare_outputs(wanted.numpy(), wanted).ok
    assert compare_outputs(np.array([0, 1, 0], wanted.numpy().dtype), wanted).detail == "1 of 3 values differ"


def test_special_values_have_their_places():
    wanted = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0])
    assert compare_outputs(wanted.numpy().copy(), wanted).ok
    for wrong in ([1.0, np.inf, -np.inf, 1.0], [np.nan, -np.inf, -np.inf, 1.0], [np.inf, np.inf, -np.inf, 1.0]):
        assert not compare_outputs(np.array(wrong, np.float32), wanted).ok


def test_beside_an_infinity_nothing_else_is_near():
    wanted = np.array([np.inf, -np.inf, np.nan, 1.0], np.float32)
    assert is_close(wanted.copy(), wanted).all()
    most = np.finfo(np.float32).max
    found = np.array([most, np.inf, 0.0, np.inf], np.float32)
    assert not is_close(found, wanted).any()
    assert is_close(np.array([5.0, most], np.float32), np.array([5.0, most], np.float32)).all()


def test_shapes_and_types_count():
    assert compare_outputs(np.zeros((4, 1), np.float32), VALUES).detail == "shape (4, 1), wanted (4,)"
    assert compare_outputs(VALUES.double().numpy(), VALUES).detail == "element type float64, wanted float32"
    assert compare_outputs(np.zeros((0, 3), np.float32), torch.zeros(0, 3)).ok


def test_complex_values_are_pairs():
    wanted = torch.complex(VALUES, VALUES)
    assert compare_outputs(torch.view_as_real(wanted).numpy(), wanted).ok


def test_zeros_may_carry_rounding():
    assert compare_outputs(np.full(4, 1e-7, np.float32), torch.zeros(4)).ok
    assert not compare_outputs(np.full(4, 1e-2, np.float32), torch.zeros(4)).ok


def test_a_file_no_worse_than_eager_is_not_blamed():
    exact = torch.tensor([1.0, 2.0, 3.0, 1e-3], dtype=torch.float64)
    wanted = (exact + 1e-3).float()
    found = (exact - 2e-3).numpy().astype(np.float32)
    row = compare_outputs(found, wanted)
    assert not row.ok
    assert judge_by_noise(row, found, wanted, exact).ok
    assert not judge_by_noise(row, (exact + 0.1).numpy().astype(np.float32), wanted, exact).ok


def test_noise_is_no_excuse_when_it_drowns_the_values():
    exact = torch.ones(3, dtype=torch.float64)
    wanted = torch.full((3,), 1.5)
    found = np.full(3, 1.2, np.float32)
    row = compare_outputs(found, wanted)
    assert not judge_by_noise(row, found, wanted, exact).ok
    assert judge_by_noise(row, found, wanted, exact, limit=np.inf).ok
    assert not judge_by_noise(row, np.full(3, 9, np.float32), wanted, exact, limit=np.inf).ok


def test_the_calmest_slice_counts():
    noise = np.full((20, 4), 1e-6)
    noise[:, 1] = 5.0
    calm = calmest_slice(noise)
    assert (calm[:, 0] == 1e-6).all()
    assert (calm[:, 1] == 5.0).all()
    noise[7] = 2.0  # a row of four says too little
    assert calmest_slice(noise)[0].tolist() == [2.0, 5.0, 2.0, 2.0]
    assert calmest_slice(np.array([1.0, 2.0])).tolist() == [2, 2]
    assert calmest_slice(np.zeros((0, 3))).shape == (0, 3)


def test_noise_of_one_column_excuses_no_other():
    exact = torch.ones(20, 4, dtype=torch.float64)
    wanted = (exact + torch.tensor([5e-3, 0, 0, 0])).float()
    for column, is_right in ((0, True), (1, False)):
        found = exact.numpy().astype(np.float32)
        found[:, column] += 8e-3
        row = compare_outputs(found, wanted)
        assert not row.ok
        assert judge_by_noise(row, found, wanted, exact).ok is is_right


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_what_numpy_does_not_know_is_said(dtype):
    row = compare_outputs(np.zeros(4, np.uint8), VALUES.to(dtype))
    assert not row.ok
    assert row.detail == f"{str(dtype).removeprefix('torch.')} values cannot be compared"


def test_the_largest_numbers_have_a_typical_magnitude():
    wanted = torch.tensor([1.5e308, 1.7e308, -1.6e308, 1.4e308], dtype=torch.float64)
    assert compare_outputs(wanted.numpy() * (1 - 1e-12), wanted).ok
    assert not compare_outputs(wanted.numpy() * 0.9, wanted).ok


def test_a_number_that_masks_most_values_excuses_none():
    wanted = torch.full((4, 20), -1e9)
    wanted[:, ::4] = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    found = wanted.numpy().copy()
    assert compare_outputs(found * np.float32(1 + 1e-6), wanted).ok
    found[:, ::4] *= 1.5
    assert not compare_outputs(found, wanted).ok


def test_a_column_of_small_values_is_judged_by_its_own():
    """Places in pixels, and a confidence."""
    rows = torch.rand(17, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1280.0, 720.0, 1.0])
    found = rows.numpy().copy()
    assert compare_outputs(found * np.float32(1 + 1e-6), rows).ok
    found[:, 2] *= 0.99
    assert not compare_outputs(found, rows).ok


def test_a_channel_of_small_values_is_judged_by_its_own():
    maps = torch.rand(1, 2, 8, 8, generator=torch.Generator().manual_seed(0)) * torch.tensor([5000.0, 1.0]).view(
        2, 1, 1
    )
    found = maps.numpy().copy()
    found[:, 1] *= 0.9
    assert not compare_outputs(found, maps).ok


def test_what_is_left_of_large_values_may_be_off_by_their_rounding():
    wanted = torch.cat([torch.full((16, 1), 100.0), torch.full((16, 1), 1e-7)], 1)
    assert compare_outputs(wanted.numpy() + np.float32([0, 3e-6]), wanted).ok


@pytest.mark.parametrize("wanted", [torch.arange(20000.0, 20032.0), torch.arange(32) * 40 + 0.5])
def test_whole_numbers_and_halves_held_as_floats(wanted):
    assert compare_outputs(wanted.numpy() * np.float32(1 + 1e-7), wanted).ok
    assert not compare_outputs(wanted.numpy() + np.float32(0.5), wanted).ok


def test_the_caller_s_tolerance_is_of_the_whole():
    wanted = torch.tensor([[1000.0, 1.0]] * 16)
    found = wanted.numpy() + np.float32([0, 5])
    assert not compare_outputs(found, wanted).ok
    assert compare("case", "output", found, wanted, atol=1e-2).ok
    assert not compare("case", "output", found, wanted, atol=1e-3).ok


def test_a_long_table_is_cut_to_what_tells_most():
    rows = [Comparison(f"case {i}", "y", 0.1, i / 1000, "1", True) for i in range(40)]
    rows += [Comparison(f"wrong {i}", "y", 1.0, 1.0, "1", False, "off") for i in range(3)]
    lines = comparison_lines(tuple(rows))
    cases = [line.split("  ")[1] for line in lines[1:-1]]
    assert cases == ["case 0", *(f"case {i}" for i in range(32, 40)), "wrong 0", "wrong 1", "wrong 2"]
    assert lines[-1] == "  and 31 more rows, all ok (`table` in Python and --json have them)"
    many = comparison_lines(tuple(replace(row, ok=False) for row in rows))
    assert len(many) == 1 + len(rows), "what is wrong is never left out"
