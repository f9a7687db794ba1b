import itertools

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.grid_sample import FAR_OUTSIDE, MODES, PADDINGS, ROWS_FROM
from torch_onnx_compat.targets import Target
from torch_onnx_compat.targets.target import Row
from torch_onnx_compat.testing import assert_same_outputs

NAME = "grid_sample_to_gather"
OPSET = 13  # GridSample is new in 16
WITHOUT_GRID_SAMPLE = Target("without_grid_sample", rows=(Row("GridSample", "refused"),))
INF, NAN = float("inf"), float("nan")
ALL = tuple(itertools.product(MODES, PADDINGS, (False, True)))
# Each mode, padding and alignment with each other's values, since a dynamo export of all takes minutes.
COVER = (
    ("bilinear", "zeros", False),
    ("bilinear", "border", True),
    ("nearest", "reflection", False),
    ("nearest", "zeros", True),
    ("bicubic", "reflection", True),
)


class Samples(nn.Module):
    def __init__(self, cases):
        super().__init__()
        self.cases = cases

    def forward(self, image, grid):
        return tuple(F.grid_sample(image, grid, mode, padding, align) for mode, padding, align in self.cases)


def example(spatial=2, channels=3, batch=2):
    sizes = ((6, 7), (4, 5, 6))[spatial - 2]
    outputs = ((5, 4), (3, 5, 4))[spatial - 2]
    # Most samples lie inside, and no cell is near 0: tolerances are relative to the values.
    return torch.rand(batch, channels, *sizes) + 0.5, torch.rand(batch, *outputs, spatial) * 2.6 - 1.3


def all_dynamic(spatial=2):
    image = {0: "batch", **{2 + k: f"size_{k}" for k in range(spatial)}}
    return {"image": image, "grid": {0: "batch", **{1 + k: f"output_{k}" for k in range(spatial)}}}


def body(image, grid, mode, padding, align):
    return catalogue()[NAME].body(image, grid, MODES.index(mode), PADDINGS.index(padding), align)


def same(one, other, tolerance=1e-5):
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_matches_images(exporter):
    cases = Samples(ALL if exporter == "torchscript" else COVER[::2])
    result = assert_same_outputs(cases, example(), exporter, dynamic=all_dynamic(), opset=OPSET, uses=(NAME,))
    assert "GatherElements" in result.nodes


def test_matches_images_of_many_channels(exporter):
    cases, args = Samples(COVER if exporter == "torchscript" else COVER[1::2]), example(channels=ROWS_FROM)
    result = assert_same_outputs(cases, args, exporter, dynamic=all_dynamic(), opset=OPSET, uses=(NAME,))
    assert "GatherElements" not in result.nodes


@pytest.mark.parametrize("channels", [3, ROWS_FROM])
def test_matches_volumes(exporter, channels):
    cases = Samples([case for case in ALL if case[0] != "bicubic"] if exporter == "torchscript" else COVER[:1])
    args, dynamic = example(3, channels), all_dynamic(3)
    assert_same_outputs(cases, args, exporter, dynamic=dynamic, opset=OPSET, uses=(NAME,))


def test_matches_fixed_sizes(exporter):
    result = assert_same_outputs(Samples(COVER[:3]), example(), exporter, opset=OPSET, uses=(NAME,))
    if exporter == "dynamo":
        assert "Shape" not in result.nodes


@pytest.mark.parametrize("opset", [11, 20])
def test_matches_at_other_opsets(exporter, opset):
    cases = Samples(COVER[3:4] if exporter == "dynamo" else COVER)
    result = assert_same_outputs(
        cases, example(), exporter, dynamic=all_dynamic(), opset=opset, target=WITHOUT_GRID_SAMPLE, uses=(NAME,)
    )
    assert "GridSample" not in result.nodes


def test_takes_every_spelling(exporter):
    def spellings(image, grid):
        return (
            F.grid_sample(image, grid, align_corners=False),
            torch.grid_sampler(image, grid, 1, 1, True),
            torch.grid_sampler_2d(image, grid, 0, 2, False),
        )

    result = assert_same_outputs(spellings, example(), exporter, opset=OPSET, uses=(NAME,))
    assert not result.declined


def test_matches_where_coordinates_are_not_finite(exporter):
    image, grid = example()
    wild = torch.cartesian_prod(*[torch.tensor([NAN, INF, -INF, 1e9, -1e9, 0.3])] * 2).reshape(1, 6, 6, 2)
    samples = [(image, wild.expand(2, -1, -1, -1))]
    dynamic = {"grid": {1: "rows", 2: "columns"}}
    cases = Samples([("bilinear", "border", False), ("nearest", "zeros", True)])
    assert_same_outputs(cases, (image, grid), exporter, dynamic=dynamic, opset=OPSET, samples=samples, uses=(NAME,))


@given(
    case=st.sampled_from(ALL),
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=3),
    channels=st.sampled_from([1, 2, ROWS_FROM]),
    batch=st.integers(0, 3),
    points=st.integers(0, 9),
    seed=st.integers(0, 99),
)
@settings(max_examples=200, deadline=None)
def test_equals_eager(case, sizes, channels, batch, points, seed):
    torch.manual_seed(seed)
    if case[0] == "bicubic" and len(sizes) == 3:
        case = ("nearest", *case[1:])
    image = torch.rand(batch, channels, *sizes)
    grid = torch.rand(batch, *[1] * (len(sizes) - 1), points, len(sizes)) * 6 - 3
    same(body(image, grid, *case), F.grid_sample(image, grid, *case))


@pytest.mark.parametrize(
    ("case", "spatial"), [(case, 2) for case in ALL] + [(case, 3) for case in ALL if case[0] != "bicubic"], ids=str
)
def test_equals_eager_on_extreme_coordinates(case, spatial):
    coordinates = torch.tensor([NAN, INF, -INF, 1e9, -1e9, 1e5, FAR_OUTSIDE, -1.0, 1.0, 0.25])
    grid = torch.cartesian_prod(*[coordinates] * spatial).reshape(*[1] * spatial, -1, spatial)
    for sizes in [(4, 5, 6), (1, 1, 1), (2, 1, 4)]:
        image = torch.rand(1, 2, *sizes[:spatial])
        same(body(image, grid, *case), F.grid_sample(image, grid, *case))


@pytest.mark.parametrize("case", ALL, ids=str)
def test_cells_that_are_nan_stay_where_they_are(case):
    image, grid = example()
    image[..., 0], image[..., -1, :] = NAN, NAN
    same(body(image, grid, *case), F.grid_sample(image, grid, *case))


@pytest.mark.parametrize("case", ALL, ids=str)
def test_halves_round_to_the_same_cell(case):
    image = torch.rand(1, 2, 4, 8)
    grid = torch.cartesian_prod(*[torch.arange(-16, 17) / 8] * 2).reshape(1, 33, 33, 2)
    same(body(image, grid, *case), F.grid_sample(image, grid, *case))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float16, 2e-2)])
def test_other_types(dtype, tolerance):
    image, grid = (tensor.to(dtype) for tensor in example())
    for case in (("bilinear", "zeros", False), ("bicubic", "border", True)):
        same(body(image, grid, *case), F.grid_sample(image, grid, *case), tolerance)


def test_sentinel(exporter):
    @rewrite(torch.grid_sampler, name=NAME, avoids=("GridSample",), registry=None)
    def broken(input, grid, interpolation_mode, padding_mode, align_corners):
        return body(input, grid, "bilinear", PADDINGS[padding_mode], not align_corners)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Samples(COVER[:1]), example(), exporter, opset=OPSET, rewrites=[broken])


def test_is_not_applied_where_the_operator_works(exporter):
    result = assert_same_outputs(Samples(COVER), example(), exporter, opset=16)
    assert result.nodes["GridSample"] == len(COVER)
    assert NAME not in {note.entry for note in result.applied}


def test_still_needed(exporter):
    with pytest.raises(CompatError, match=r"(?i)grid_?sample"):
        assert_same_outputs(Samples(COVER[:1]), example(), exporter, opset=OPSET, exclude=[NAME])
