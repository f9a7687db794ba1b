"""A fixed set of random programs: no file that is accepted computes something else than its program."""

import warnings

import pytest

from fuzz.judge import export_stock, judge_file, judge_program
from fuzz.programs import (
    Input,
    Program,
    example_inputs,
    fresh_model,
    make_errors,
    make_far,
    make_indices,
    make_kinds,
    make_layouts,
    make_pieces,
    make_positions,
    make_program,
    make_results,
    make_rounds,
    make_tables,
    make_texts,
    write_program,
)
from torch_onnx_compat.catalogue.entry import EXPORTERS

SEEDS = range(16)
LONG = {("dynamo", 0)}
"""They take a quarter of a minute to more than one."""
FROZEN = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * len(x.tolist())
"""


def assert_not_wrong(program, exporter, folder, *, eager_may_refuse=False):
    judged = judge_program(program, write_program(program, folder), exporter)
    good = ("right", "rounding", "refused", *(["eager-refuses"] if eager_may_refuse else []))
    assert judged.verdict in good, f"{judged.detail}\n{program.source}"


@pytest.mark.one_exporter
@pytest.mark.parametrize(("exporter", "seed"), [(e, s) for e in EXPORTERS for s in SEEDS if (e, s) not in LONG])
def test_accepted_file_is_right(seed, exporter, tmp_path):
    assert_not_wrong(make_program(seed), exporter, tmp_path, eager_may_refuse=True)


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", [*range(3), 109, 157])
def test_who_asks_for_kinds_is_answered(seed, exporter, tmp_path):
    """Of the last two, files were wrong that had been verified."""
    assert_not_wrong(make_kinds(seed), exporter, tmp_path, eager_may_refuse=True)


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", [*range(3), 28, 50, 182, 294])
def test_who_catches_errors_goes_its_own_way(seed, exporter, tmp_path):
    """Of the last four, files were wrong that had been verified."""
    assert_not_wrong(make_errors(seed), exporter, tmp_path, eager_may_refuse=True)


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", [*range(3), 144])
def test_who_asks_for_layouts_is_answered(seed, exporter, tmp_path):
    """Of the last one, files were wrong that had been verified."""
    assert_not_wrong(make_layouts(seed), exporter, tmp_path, eager_may_refuse=True)


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", [*range(3), 50, 62, 65, 75, 94])
def test_what_changes_far_from_the_example(seed, exporter, tmp_path):
    """Of the first and the last five, files were wrong that had been verified."""
    assert_not_wrong(make_far(seed), exporter, tmp_path, eager_may_refuse=True)


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", [*range(3), 34, 36, 38, 41])
def test_loops_with_as_many_rounds_as_the_input_says(seed, exporter, tmp_path):
    assert_not_wrong(make_rounds(seed), exporter, tmp_path)


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", range(8))
def test_results_of_one_kind_or_another(seed, exporter, tmp_path):
    assert_not_wrong(make_results(seed), exporter, tmp_path)


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", range(8))
def test_rows_by_whole_numbers(seed, exporter, tmp_path):
    assert_not_wrong(make_indices(seed), exporter, tmp_path, eager_may_refuse=True)


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", [*range(4), 29, 5102])
def test_tables_of_positions(seed, exporter, tmp_path):
    """Of the last two, files were wrong that had been verified."""
    assert_not_wrong(make_positions(seed), exporter, tmp_path, eager_may_refuse=True)


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", [*range(6), 29, 32])
def test_pieces_of_an_axis(seed, exporter, tmp_path):
    program = make_pieces(seed)
    judged = judge_program(program, write_program(program, tmp_path), exporter)
    good = ("right", "rounding") if exporter == "torchscript" else ("right", "rounding", "refused")
    assert judged.verdict in good, f"{judged.detail}\n{program.source}"


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", range(6))
def test_texts(seed, exporter, tmp_path, capsys):
    assert_not_wrong(make_texts(seed), exporter, tmp_path, eager_may_refuse=True)


@pytest.mark.parametrize("seed", [*range(3), 28, 41, 54, 111])
def test_tables(seed, tmp_path):
    """Through TorchScript: torch.export takes no size for a key. Of the last four, files were wrong and verified."""
    program = make_tables(seed)
    judged = judge_program(program, write_program(program, tmp_path), "torchscript")
    assert judged.verdict in ("right", "rounding", "refused", "eager-refuses"), f"{judged.detail}\n{program.source}"


def test_programs_are_the_same_each_time_and_mostly_legal(tmp_path):
    legal = 0
    for seed in range(100):
        program = make_program(seed)
        assert program == make_program(seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fresh_model(program, write_program(program, tmp_path))(*example_inputs(program))
        except Exception:  # a random program raises what it likes
            continue
        legal += 1
    assert legal >= 90


def test_judge_finds_a_frozen_size(tmp_path):
    program = Program(0, FROZEN, (Input("x", (3, 4), {0: "batch"}),))
    path = write_program(program, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        judged = judge_file(program, path, export_stock(program, path, "torchscript"))
    assert judged.verdict == "WRONG"
    assert "sizes {'batch': 1}" in judged.detail
