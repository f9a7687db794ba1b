"""grid_sample and affine_grid, in rows; against eager torch at every mode, size and coordinate."""

import itertools
import warnings

import onnx
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_onnx_compat.symbolics.grid_sampling import FAR_OUTSIDE, MODES, PADDINGS, ROWS_FROM

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, UnsupportedError
from torch_onnx_compat.targets import Target
from torch_onnx_compat.targets.target import Row
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

WITHOUT_GRID_SAMPLE = Target("without_grid_sample", rows=(Row("GridSample", "refused"),))
OPSET = 13  # GridSample is new in 16
INF, NAN = float("inf"), float("nan")
ALL = tuple(itertools.product(MODES, PADDINGS, (False, True)))
OF_VOLUMES = tuple(case for case in ALL if case[0] != "bicubic")
# Each mode, padding and alignment with each other's values, since a dynamo export of all takes minutes.
COVER = (
    ("bilinear", "zeros", False),
    ("bilinear", "border", True),
    ("nearest", "reflection", False),
    ("nearest", "zeros", True),
    ("bicubic", "reflection", True),
)
THETA = torch.eye(2, 3) + torch.randn(3, 2, 3) / 5
THETA_3D = torch.eye(3, 4) + torch.randn(3, 3, 4) / 5
MAPS = {"theta": {0: "n"}, "solid": {0: "n"}, "x": {0: "n", 2: "height", 3: "width"}}


def samples_of(cases):
    return lambda image, grid: tuple(F.grid_sample(image, grid, *case) for case in cases)


def sample(image, grid):
    return F.grid_sample(image, grid, align_corners=False)


def example(spatial=2, channels=3, batch=2):
    sizes = ((6, 7), (4, 5, 6))[spatial - 2]
    outputs = ((5, 4), (3, 5, 4))[spatial - 2]
    # Most samples lie inside, and no cell is near 0: tolerances are relative to the values.
    return torch.rand(batch, channels, *sizes) + 0.5, torch.rand(batch, *outputs, spatial) * 2.6 - 1.3


def all_dynamic(spatial=2):
    image = {0: "batch", **{2 + k: f"size_{k}" for k in range(spatial)}}
    return {"image": image, "grid": {0: "batch", **{1 + k: f"output_{k}" for k in range(spatial)}}}


def grids(theta, solid, x):
    """Sizes in numbers and of another tensor."""
    n, _, height, width = x.shape
    sizes = ((theta, (n, 1, 6, 5)), (solid, (n, 1, 2, 3, 4)), (theta, x.shape), (solid, (n, 1, 2, height, width)))
    return tuple(F.affine_grid(*size, align_corners=corners) for corners in (False, True) for size in sizes)


def of_any_size(theta, solid, x):
    n, _, height, width = x.shape
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Since version 1.3.0")  # of an axis of one cell with align_corners
        return (
            F.affine_grid(theta, (n, 1, 1, 5), align_corners=True),
            F.affine_grid(theta, x.shape, align_corners=True),
            F.affine_grid(solid, (n, 1, 2, height, width), align_corners=True),
            F.affine_grid(theta, x.shape, align_corners=False),
        )


def every_dimension(image, grid, volume, volume_grid):
    return (
        *(torch.grid_sampler_2d(image, grid, mode, 1, True) for mode in (0, 1, 2)),
        *(torch.grid_sampler_3d(volume, volume_grid, mode, 2, False) for mode in (0, 1)),
    )


def body(name):
    return catalogue()[name].body


def otherwise_aligned(name):
    return lambda *args: body(name)(*args[:-1], not args[-1])


EXAMPLES = [
    Example(
        "affine_grid_of_any_size",
        of_any_size,
        (THETA, THETA_3D, torch.randn(3, 2, 4, 7)),
        broken=lambda theta, size, align_corners=None: body("affine_grid_of_any_size")(theta, size, False),
        dynamic=MAPS,
        leaves=lambda theta, solid, x: (
            F.affine_grid(theta, (*x.shape[:2], 4, 5), align_corners=True),
            F.affine_grid(theta, x.shape, align_corners=False),
        ),
        options={"opset": 20},
    ),
    Example(
        "affine_grid_to_sum",
        grids,
        (THETA, THETA_3D, torch.randn(3, 2, 4, 7)),
        broken=lambda theta, size, align_corners=None: body("affine_grid_to_sum")(theta, size, not align_corners),
        dynamic=MAPS,
        leaves=lambda theta, solid, x: F.grid_sample(x, x[:, :, :, :2].movedim(1, 2), align_corners=True),
        options={"opset": 17},
    ),
    # Armed by include= only, or needed for what no comparison shows; see "GridSample" below.
    Example("grid_sampler", samples_of(ALL), example(), dynamic=all_dynamic(), options={"opset": 20}),
    Example("grid_sampler_16", samples_of(ALL), example(), dynamic=all_dynamic(), exporters=("torchscript",)),
    Example(
        "grid_sample_3d_to_gather",
        lambda image, grid: (sample(image, grid), F.grid_sample(image, grid, "nearest", "reflection", True)),
        example(3),
        broken=lambda input, grid, *rest: body("grid_sample_3d_to_gather")(input, grid.flip(-1), *rest),
        dynamic=all_dynamic(3),
        options={"opset": 16},
    ),
    *(
        Example(
            "grid_sample_to_gather",
            samples_of(cases),
            example(),
            broken=otherwise_aligned("grid_sample_to_gather"),
            dynamic=all_dynamic(),
            exporters=(exporter,),
            options={"opset": OPSET},
        )
        for exporter, cases in (("torchscript", ALL), ("dynamo", COVER[::2]))
    ),
    Example(
        "grid_sampler_nd_to_grid_sampler",
        lambda image, grid, volume, volume_grid: (
            torch.grid_sampler_2d(image, grid, 1, 1, True),
            torch.grid_sampler_3d(volume, volume_grid, 1, 2, False),
        ),
        (*example(), *example(3)),
        broken=otherwise_aligned("grid_sampler_nd_to_grid_sampler"),
        dynamic=None,
        options={"opset": 20},
    ),
]


# affine_grid


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("height", "width"), [(5, 4), (1, 3), (2, 1)])
def test_affine_grid_equals_eager(height, width, align_corners):
    for theta, size in ((THETA, (3, 1, height, width)), (THETA_3D, (3, 1, 4, height, width))):
        wanted = F.affine_grid(theta, size, align_corners=align_corners)
        torch.testing.assert_close(body("affine_grid_to_sum")(theta, size, align_corners), wanted)


def test_affine_grid_of_other_sizes_is_the_operator():
    def model(theta, x):
        fixed = F.affine_grid(theta, (3, 1, 4, 5), align_corners=True)
        return fixed, F.affine_grid(theta, x.shape, align_corners=False)

    result = assert_same_outputs(model, (THETA, torch.randn(3, 2, 1, 7)), "torchscript", opset=20)
    assert result.nodes["AffineGrid"] == 2
    assert not result.applied


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_affine_grid_of_one_cell_is_no_operator():
    model = lambda theta: F.affine_grid(theta, (3, 1, 1, 5), align_corners=True)  # noqa: E731
    result = assert_same_outputs(model, (THETA,), "torchscript", opset=20, uses=("affine_grid_of_any_size",))
    assert "AffineGrid" not in result.nodes


def test_affine_grid_takes_nine_nodes():
    model = lambda theta: F.affine_grid(theta, (3, 1, 6, 5), align_corners=False)  # noqa: E731
    result = assert_same_outputs(model, (THETA,), "torchscript", opset=17, uses=("affine_grid_to_sum",))
    assert result.nodes.total() - result.nodes["Constant"] <= 9


# GridSample


@pytest.mark.one_exporter
@pytest.mark.parametrize(
    ("name", "opset", "spatial", "cases"),
    [
        ("grid_sampler", 20, 2, ALL),
        ("grid_sampler", 22, 3, OF_VOLUMES),
        ("grid_sampler_16", 16, 2, ALL),
        ("grid_sampler_16", 17, 2, ALL[:1]),
        ("grid_sampler_16", 19, 2, ALL[:1]),
    ],
)
def test_operator(exporter, name, opset, spatial, cases):
    options = {"opset": opset, "include": [name], "dynamic": all_dynamic() if spatial == 2 else None}
    result = assert_entry(name, samples_of(cases), example(spatial), exporter, **options)
    assert result.nodes["GridSample"] == len(cases)


@pytest.mark.parametrize(("name", "opset"), [("grid_sampler", 20), ("grid_sampler_16", 17)])
def test_wrong_operator_is_caught(exporter, name, opset):
    row = Example(name, sample, example(), options={"opset": opset, "include": [name]}, dynamic=None)
    row.assert_bites(exporter)


def test_stock_writes_the_same_operator(exporter):
    """When this fails, grid_sampler is needed on the exporter."""
    stock = assert_same_outputs(samples_of(ALL), example(), exporter, opset=20)
    ours = assert_entry("grid_sampler", samples_of(ALL), example(), exporter, opset=20, include=["grid_sampler"])
    assert not stock.applied
    assert _attributes(ours) == _attributes(stock)


def _attributes(result):
    nodes = onnx.load_from_string(result.model_bytes).graph.node
    return [{a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} for node in nodes]


def test_stock_dynamo_writes_an_operator_for_volumes_that_its_opset_does_not_have():
    """When this fails, grid_sampler_16 is needed no more."""
    exclude = ["grid_sampler_16", "grid_sample_3d_to_gather"]
    stock = assert_same_outputs(sample, example(3), "dynamo", opset=17, exclude=exclude)
    assert stock.nodes["GridSample"] == 1


def test_operator_of_volumes_needs_opset_20(exporter):
    options = {"include": ["grid_sampler_16"], "exclude": ["grid_sample_3d_to_gather"]}
    with pytest.raises(UnsupportedError, match=r"of a volume needs opset 20 or later, got 1[78]; raise opset_version"):
        assert_same_outputs(sample, example(3), exporter, opset=17, **options)


def test_operators_of_each_dimension_become_the_operator(exporter):
    result = assert_same_outputs(every_dimension, (*example(), *example(3)), exporter, opset=20)
    assert "grid_sampler_nd_to_grid_sampler" in {note.entry for note in result.applied}
    assert result.nodes["GridSample"] == 5


@pytest.mark.parametrize(
    ("function", "spatial", "exporter"),
    [
        (torch.grid_sampler_2d, 2, "torchscript"),
        (torch.grid_sampler_3d, 3, "torchscript"),
        (torch.grid_sampler_3d, 3, "dynamo"),
    ],
)
def test_stock_lacks_the_operators_of_each_dimension(function, spatial, exporter):
    model = lambda x, grid: function(x, grid, 0, 0, False)  # noqa: E731
    with pytest.raises(CompatError, match=function.__name__):
        assert_same_outputs(model, example(spatial), exporter, opset=20, exclude=["grid_sampler_nd_to_grid_sampler"])


def test_operators_of_each_dimension_keep_every_bit(exporter):
    model = lambda image, grid: torch.grid_sampler_2d(image, grid, 1, 0, True)  # noqa: E731
    assert_same_outputs(model, example(), exporter, uses=("grid_sampler_nd_to_grid_sampler",))


# Volumes by gathers, where GridSample has none


def test_volumes_up_to_opset_19(exporter):
    for opset, function in ((16, torch.grid_sampler_3d), (19, torch.grid_sampler)):
        model = lambda image, grid, function=function: function(image, grid, 1, 2, True)  # noqa: E731
        result = assert_entry("grid_sample_3d_to_gather", model, example(3), exporter, opset=opset)
        assert "GridSample" not in result.nodes
    result = assert_entry("grid_sample_3d_to_gather", sample, example(3), exporter, opset=20)
    assert result.nodes["GridSample"] == 1


def test_images_are_declined_where_volumes_are_gathered(exporter):
    result = assert_same_outputs(sample, example(), exporter, opset=17)
    assert result.nodes["GridSample"] == 1
    assert [note.reason for note in result.declined] == ["wanted a volume (N, C, D, H, W), got 4 axes"]


@pytest.mark.parametrize(
    ("exporter", "reason"),
    [("torchscript", "GridSample with 5D volumetric input"), ("dynamo", "needs opset 20 or later")],
)
def test_volumes_without_gathers(exporter, reason):
    with pytest.raises(CompatError, match=reason):
        assert_same_outputs(sample, example(3), exporter, opset=17, exclude=["grid_sample_3d_to_gather"])


# Gathers


def assert_gathers(cases, args, exporter, **options):
    options = {"opset": OPSET, **options}
    result = assert_entry("grid_sample_to_gather", samples_of(cases), args, exporter, **options)
    assert "GridSample" not in result.nodes
    return result.nodes


def test_few_channels_are_read_as_elements(exporter):
    assert "GatherElements" in assert_gathers(COVER[:1], example(), exporter, dynamic=all_dynamic())


def test_many_channels_are_read_as_rows(exporter):
    cases, args = COVER if exporter == "torchscript" else COVER[1::2], example(channels=ROWS_FROM)
    assert "GatherElements" not in assert_gathers(cases, args, exporter, dynamic=all_dynamic())


@pytest.mark.parametrize("channels", [3, ROWS_FROM])
def test_volumes(exporter, channels):
    cases = OF_VOLUMES if exporter == "torchscript" else COVER[:1]
    assert_gathers(cases, example(3, channels), exporter, dynamic=all_dynamic(3))


def test_fixed_sizes(exporter):
    nodes = assert_gathers(COVER[:3], example(), exporter)
    assert exporter == "torchscript" or "Shape" not in nodes


@pytest.mark.parametrize("opset", [11, 20])
def test_other_opsets(exporter, opset):
    cases = COVER[3:4] if exporter == "dynamo" else COVER
    assert_gathers(cases, example(), exporter, dynamic=all_dynamic(), opset=opset, target=WITHOUT_GRID_SAMPLE)


def test_every_spelling(exporter):
    def spellings(image, grid):
        return (
            F.grid_sample(image, grid, align_corners=False),
            torch.grid_sampler(image, grid, 1, 1, True),
            torch.grid_sampler_2d(image, grid, 0, 2, False),
        )

    result = assert_entry("grid_sample_to_gather", spellings, example(), exporter, opset=OPSET)
    assert not result.declined


def test_coordinates_that_are_not_finite(exporter):
    image, grid = example()
    wild = torch.cartesian_prod(*[torch.tensor([NAN, INF, -INF, 1e9, -1e9, 0.3])] * 2).reshape(1, 6, 6, 2)
    samples, dynamic = [(image, wild.expand(2, -1, -1, -1))], {"grid": {1: "rows", 2: "columns"}}
    cases = (("bilinear", "border", False), ("nearest", "zeros", True))
    assert_gathers(cases, (image, grid), exporter, dynamic=dynamic, samples=samples)


def test_the_operator_is_kept_where_it_works(exporter):
    result = assert_entry("grid_sample_to_gather", samples_of(COVER), example(), exporter, opset=16)
    assert result.nodes["GridSample"] == len(COVER)


def test_without_gathers(exporter):
    with pytest.raises(CompatError, match=r"(?i)grid_?sample"):
        assert_same_outputs(sample, example(), exporter, opset=OPSET, exclude=["grid_sample_to_gather"])


# The body of grid_sample_to_gather against eager torch


def assert_equals_eager(image, grid, case, tolerance=1e-5):
    mode, padding, align = case
    found = body("grid_sample_to_gather")(image, grid, MODES.index(mode), PADDINGS.index(padding), align)
    wanted = F.grid_sample(image, grid, *case)
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


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
    assert_equals_eager(image, grid, case)


@pytest.mark.parametrize(
    ("case", "spatial"), [*((case, 2) for case in ALL), *((case, 3) for case in OF_VOLUMES)], ids=str
)
def test_equals_eager_on_extreme_coordinates(case, spatial):
    coordinates = torch.tensor([NAN, INF, -INF, 1e9, -1e9, 1e5, FAR_OUTSIDE, -1.0, 1.0, 0.25])
    grid = torch.cartesian_prod(*[coordinates] * spatial).reshape(*[1] * spatial, -1, spatial)
    for sizes in [(4, 5, 6), (1, 1, 1), (2, 1, 4)]:
        assert_equals_eager(torch.rand(1, 2, *sizes[:spatial]), grid, case)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_cells_that_are_nan_stay_where_they_are(case):
    image, grid = example()
    image[..., 0], image[..., -1, :] = NAN, NAN
    assert_equals_eager(image, grid, case)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_halves_round_to_the_same_cell(case):
    grid = torch.cartesian_prod(*[torch.arange(-16, 17) / 8] * 2).reshape(1, 33, 33, 2)
    assert_equals_eager(torch.rand(1, 2, 4, 8), grid, case)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float16, 2e-2)])
def test_other_types(dtype, tolerance):
    image, grid = (tensor.to(dtype) for tensor in example())
    for case in (("bilinear", "zeros", False), ("bicubic", "border", True)):
        assert_equals_eager(image, grid, case, tolerance)
