"""What Python code does on the side that the example does not take: the file is right on all sides, or there is none.

Nothing is proven here, so whatever is refused is refused for what it does, and not for what it computes on some inputs.
"""

from functools import partial

import pytest

from fuzz.aliases import first_difference, make_aliases, run_sides
from fuzz.effects import ALL, make_effects
from fuzz.kinds import SHAPES, make_kinds
from fuzz.programs import fresh_model, write_program
from fuzz.size_arithmetic import SHAPES as MANY_SHAPES
from fuzz.size_arithmetic import make_sizes
from torch_onnx_compat import CompatError, export_compat

SEEDS = range(30)
KINDS = (3, 10, 11, 35, 37, 40, 51, 54, 145, *range(2000, 2010))
"""The first ones were wrong before what they ask was answered by mechanism."""
SIZES = [
    *((seed, "torchscript") for seed in (1008, 1010, 1020)),
    *((seed, "dynamo") for seed in (1000, 1015, 1018, 1017, 1025, 1030)),
]
COMBINED = range(1000, 1010)
EFFECTS = [
    *((seed, "torchscript") for seed in range(0, len(ALL), 2)),
    *((seed, "dynamo") for seed in range(1, len(ALL), 8)),
    *(pytest.param(seed, "torchscript", marks=pytest.mark.slow) for seed in range(1, len(ALL), 2)),
    *((seed, exporter) for seed in COMBINED for exporter in ("torchscript", "dynamo")),
]


def judge(program, exporter, folder, shapes=((4, 3),)):
    """Whether there is a file; it is compared with eager torch on all sides."""
    make = partial(fresh_model, program, write_program(program, folder))
    sides = run_sides(make, shapes)
    if not sides or sides[0][1].any():
        pytest.skip("eager torch refuses it on the example")
    x, flags, _ = sides[0]
    dynamic = {one.name: one.dynamic for one in program.inputs if one.dynamic}
    try:
        session = export_compat(make(), (x, flags), exporter=exporter, dynamic=dynamic, verify=False).session()
    except CompatError:
        return False
    difference = first_difference(session, sides)
    assert not difference, f"{difference}\n{program.source}"
    return True


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", SEEDS)
def test_second_names(seed, exporter, tmp_path):
    judge(make_aliases(seed), exporter, tmp_path)


@pytest.mark.one_exporter
@pytest.mark.parametrize(("seed", "exporter"), EFFECTS)
def test_what_branches_change(seed, exporter, tmp_path):
    judge(make_effects(seed), exporter, tmp_path)


@pytest.mark.one_exporter
@pytest.mark.parametrize("seed", KINDS)
def test_kinds_of_values(seed, exporter, tmp_path):
    judge(make_kinds(seed), exporter, tmp_path, SHAPES)


@pytest.mark.parametrize(("seed", "exporter"), SIZES)
def test_arithmetic_on_sizes(seed, exporter, tmp_path):
    assert judge(make_sizes(seed), exporter, tmp_path, MANY_SHAPES)


def test_most_ways_to_decide_are_exported(tmp_path):
    """Those that are refused are the smaller part, so that a refusal of everything would be seen."""
    right = [seed for seed in range(2, len(ALL), 8) if judge(make_effects(seed), "torchscript", tmp_path)]
    assert len(right) > len(ALL) / 8 * 0.5


def test_eager_torch_accepts_the_programs(tmp_path):
    """A program that it refuses would be skipped."""
    for seed in SEEDS:
        program = make_aliases(seed)
        sides = run_sides(partial(fresh_model, program, write_program(program, tmp_path)))
        assert sides, program.source
        assert not sides[0][1].any()
