"""interpolate, in rows; at many sizes and scales; what becomes of it, and what is declined."""

import onnxruntime
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs, assert_still_needed

IMAGE = torch.randn(2, 3, 7, 10)
SIZES = {"x": {0: "batch", 2: "height", 3: "width"}}
# torch's own kernel errs on antialiased results one cell wide, which smaller pictures have.
WIDE = {"x": {0: "batch", 2: ("height", 7, 512), 3: ("width", 7, 512)}}
OTHER = [(torch.randn(1, 3, 12, 9),)]
KINDS = [(mode, corners) for mode in ("bilinear", "bicubic") for corners in (False, True)]
# In float32, height times (20 / height) is on the other side of a whole number at 77 and 133; so is 7 / width at 23.
ROUNDED = [(torch.randn(1, 3, 77, 23),), (torch.randn(1, 3, 133, 46),)]
HEIGHTS = [(torch.randn(1, 3, height, 24),) for height in (34, 90, 112, 170)]


SIZES_OF_TWO = {"x": {0: "batch", 2: "height", 3: "width"}, "y": {2: "other_height", 3: "other_width"}}


def to_size_of_other(x, y):
    return F.interpolate(x, size=y.shape[-2:]), F.interpolate(x[:, 0], size=y.shape[-1])


def antialiased(x, size=None, mode="bilinear", align_corners=False, **kwargs):
    return F.interpolate(x, size, mode=mode, align_corners=align_corners, antialias=True, **kwargs)


def nearest_exact(x, size=None, **kwargs):
    return F.interpolate(x, size, mode="nearest-exact", **kwargs)


def area(x, size=None, **kwargs):
    return F.interpolate(x, size, mode="area", **kwargs)


def recomputed(x, mode="nearest", scale=1.7, **kwargs):
    return F.interpolate(x, scale_factor=scale, mode=mode, recompute_scale_factor=True, **kwargs)


def by_ratio(x, mode="bilinear", **kwargs):
    return F.interpolate(x, scale_factor=(20 / x.shape[2], 7 / x.shape[3]), mode=mode, **kwargs)


def keeps_an_axis(x):
    """Up to 19 cells become as many by 1.05: eager torch skips such an axis, whatever the scale."""
    return (
        *(antialiased(x, mode=mode, scale_factor=(1.05, 2)) for mode in ("bilinear", "bicubic")),
        *(antialiased(x, scale_factor=scale) for scale in (1.05, (2, 1.05))),
        antialiased(x, scale_factor=(x.shape[2] * 1.05 / x.shape[2], 1.7)),
    )


def antialiased_by_scale(x):
    """By size with align_corners and by scale, up and down, one axis kept."""
    return (
        *(
            antialiased(x, size, mode, True)
            for mode in ("bilinear", "bicubic")
            for size in ((3, 4), (12, 2), (7, 4), 5)
        ),
        *(antialiased(x, mode=mode, scale_factor=0.45) for mode in ("bilinear", "bicubic")),
        antialiased(x, scale_factor=(0.45, 1.75)),
        antialiased(x, (x.shape[2] // 2, x.shape[3]), "bicubic", True),
    )


def antialiased_anyhow(x):
    """By size and by scale, up and down, one axis kept."""
    return (
        *(antialiased(x, size, *kind) for kind in KINDS for size in ((3, 4), (12, 2), (7, 4), 5)),
        antialiased(x, scale_factor=(0.45, 1.7)),
        antialiased(x, scale_factor=0.3, recompute_scale_factor=True),
        antialiased(x, (x.shape[2] // 2, x.shape[3])),
    )


def areas(x):
    return (
        *(area(x, (3, 2)), area(x, (4, 5)), area(x, 1), area(x, (9, 16)), area(x, scale_factor=0.5)),
        *(area(x, scale_factor=(0.4, 1.5)), area(x[..., 0], 3), area(x[..., 0], 4), area(x.double(), 2)),
        *(area(x.unsqueeze(2).repeat(1, 1, 4, 1, 1), 2), area(x, scale_factor=0.6, recompute_scale_factor=True)),
    )


def nearest_cells(x):
    """By size and by scale, up and down, one axis, three axes, other types."""
    return (
        *(nearest_exact(x, (13, 4)), nearest_exact(x, (7, 5)), nearest_exact(x, scale_factor=2)),
        *(nearest_exact(x, scale_factor=(1.7, 0.6)), nearest_exact(x, scale_factor=0.5)),
        *(nearest_exact(x, scale_factor=0.3, recompute_scale_factor=True), nearest_exact(x[..., 0], 11)),
        *(nearest_exact(x[:, None], (2, 9, 5)), nn.Upsample(5, mode="nearest-exact")(x.double())),
        *(nearest_exact((x * 9).to(torch.uint8), (13, 4)), nearest_exact(x, (x.shape[2] // 2, x.shape[3] * 2))),
    )


def nearest_cells_by_scale(x):
    """Up and down, one axis, three axes, other types."""
    return (
        *(nearest_exact(x, scale_factor=(1.7, 0.6)), nearest_exact(x, scale_factor=2.5)),
        *(nearest_exact(x, scale_factor=(2, 1.3)), nearest_exact(x[..., 0], scale_factor=1.9)),
        *(nearest_exact(x[:, None], scale_factor=(1, 1.4, 1.1)), nearest_exact(x.double(), scale_factor=1.3)),
        nearest_exact((x * 9).to(torch.uint8), scale_factor=1.6),
    )


def by_recomputed_scale(x):
    return (
        *(recomputed(x), recomputed(x, "bilinear"), recomputed(x, "bicubic", align_corners=True)),
        *(recomputed(x[..., 0], "linear"), recomputed(x, "bilinear", (0.4, 2))),
        nn.Upsample(scale_factor=0.6, recompute_scale_factor=True)(x),
    )


def by_varying_scale(x):
    scales = ((1.5 * x.shape[2] + 0.7) / x.shape[2], 2 - 0.3 / x.shape[3])
    return (
        *(by_ratio(x, "nearest"), by_ratio(x)),
        F.interpolate(x, scale_factor=scales, mode="bilinear", align_corners=True),
        F.interpolate(x[..., 0], scale_factor=20 / x.shape[2], mode="linear"),
    )


def rounded(mode, recompute=None):
    """In float64, 90 * 0.7 and 170 * 0.7 are less than 63 and 119; in float32, 3 / 0.3 is less than 10."""
    return lambda x: tuple(
        F.interpolate(x, scale_factor=scale, mode=mode, recompute_scale_factor=recompute) for scale in (0.7, 0.3)
    )


def without_antialias(input, size=None, scale_factor=None, mode="nearest", align_corners=None, *_, **__):
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def by_mode_nearest(input, size=None, scale_factor=None, *_, **__):
    return F.interpolate(input.float(), size, scale_factor).to(input.dtype)


EXAMPLES = [
    Example(
        "interpolate_antialias_by_scale",
        antialiased_by_scale,
        (IMAGE,),
        broken=without_antialias,
        dynamic=WIDE,
        samples=OTHER,
        leaves=lambda x: (antialiased(x, (3, 4)), antialiased(x, scale_factor=2)),
        exporters=("dynamo", "torchscript"),
    ),
    Example(
        "interpolate_antialias_to_matmul",
        antialiased_anyhow,
        (IMAGE,),
        broken=without_antialias,
        dynamic=WIDE,
        samples=OTHER,
        leaves=lambda x: F.interpolate(x, (13, 4), mode="bilinear"),
    ),
    Example(
        "interpolate_area_to_pool",
        areas,
        (torch.randn(2, 3, 6, 8),),
        leaves=lambda x: F.interpolate(x, (3, 2)),
        exporters=("torchscript",),
        options={"exclude": [f"adaptive_avg_pool{n}d_to_matmul" for n in (1, 2, 3)]},
    ),
    Example(
        "interpolate_nearest_exact",
        nearest_cells,
        (IMAGE,),
        broken=by_mode_nearest,
        dynamic=SIZES,
        samples=OTHER,
        leaves=lambda x: F.interpolate(x, (13, 4)),
    ),
    Example(
        "interpolate_nearest_exact_by_scale",
        nearest_cells_by_scale,
        (IMAGE,),
        broken=by_mode_nearest,
        dynamic=SIZES,
        samples=[(torch.randn(1, 3, 8, 12),), (torch.randn(3, 3, 23, 31),)],
        leaves=lambda x: (
            nearest_exact(x, (13, 4)),
            nearest_exact(x, scale_factor=2),
            nearest_exact(x, scale_factor=(3.0, 1)),
        ),
        exporters=("dynamo", "torchscript"),
        claims=("torchscript",),  # through dynamo for targets without float64, which has the scale of float32
    ),
    Example(
        "interpolate_nearest_to_fixed_size",
        lambda x: F.interpolate(x, size=(2, 5)),
        (torch.randn(2, 3, 12, 16),),
        dynamic=SIZES,
        samples=[(torch.randn(1, 3, 14, 26),), (torch.randn(1, 3, 28, 60),), (torch.randn(1, 3, 104, 190),)],
        leaves=lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] * 2)),
    ),
    Example(
        "interpolate_nearest_to_varying_size",
        to_size_of_other,
        (torch.randn(2, 3, 7, 9), torch.randn(1, 1, 14, 20)),
        dynamic=SIZES_OF_TWO,
        samples=[
            (torch.randn(1, 3, size, 2 * size), torch.randn(1, 1, other, size))
            for size, other in ((28, 4), (28, 16), (28, 64), (4, 82), (25, 115), (30, 8), (101, 112))
        ],
        leaves=lambda x, y: (F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] * 3)), y),
    ),
    Example(
        "interpolate_aligned_line",
        lambda x, y: F.interpolate(x, size=y.shape[-1], mode="linear", align_corners=True),
        (torch.randn(2, 3, 7), torch.randn(1, 9)),
        dynamic={"x": {0: "batch", 2: "length"}, "y": {1: "other"}},
        samples=[(torch.randn(1, 3, size), torch.randn(1, other)) for size, other in ((7, 1), (1, 5), (1, 1), (4, 30))],
        leaves=lambda x, y: F.interpolate(x, size=5, mode="linear", align_corners=True) + y.sum(),
    ),
    Example(
        "interpolate_recomputed_scale",
        by_recomputed_scale,
        (IMAGE,),
        dynamic=SIZES,
        samples=OTHER,
        leaves=lambda x: F.interpolate(x, scale_factor=1.5),
        options={
            "verify": Verify(sizes={"height": (9, 21), "width": (11, 30)})
        },  # at 40, Resize is off by a few roundings
        exporters=("torchscript",),
    ),
    Example(
        "interpolate_varying_scale",
        by_varying_scale,
        (torch.randn(2, 3, 12, 16),),
        dynamic=SIZES,
        samples=ROUNDED,
        leaves=lambda x: F.interpolate(x, scale_factor=1.5),
    ),
    *(
        Example(entry, rounded(mode, recompute), (torch.randn(2, 3, 12, 16),), dynamic=SIZES, samples=HEIGHTS)
        for entry, mode, recompute in (
            ("interpolate_area_to_pool", "area", None),
            ("interpolate_recomputed_scale", "nearest", True),
            ("interpolate_varying_scale", "nearest", None),
        )
    ),
]


def body(name):
    return catalogue()[name].body


# Sizes that are fixed, and others


@pytest.mark.parametrize(
    ("entry", "model", "exporter"),
    [
        ("interpolate_antialias_by_scale", antialiased_by_scale, "dynamo"),
        ("interpolate_antialias_to_matmul", antialiased_anyhow, "torchscript"),
        ("interpolate_area_to_pool", areas, "torchscript"),
        ("interpolate_area_to_pool", areas, "dynamo"),
        ("interpolate_nearest_exact", nearest_cells, "torchscript"),
        ("interpolate_recomputed_scale", by_recomputed_scale, "torchscript"),
        ("interpolate_recomputed_scale", lambda x: recomputed(x, "bilinear"), "dynamo"),
    ],
)
def test_fixed_sizes(entry, model, exporter):
    assert_entry(entry, model, IMAGE, exporter, dynamic="batch")


def test_nearest_cells_are_those_of_float32(exporter):
    """6.5 * (106 / 13) is 53, and less than that in float32; both exporters, as a size at which it matters is tried."""
    samples = [(torch.randn(1, 3, height, 7),) for height in (53, 106, 212, 318)]
    model = lambda x: nearest_exact(x, (13, 4))  # noqa: E731
    assert_entry("interpolate_nearest_exact", model, IMAGE, exporter, dynamic=SIZES, samples=samples)


def test_areas_of_any_size(exporter):
    model = lambda x: (area(x, (4, 5)), area(x, 1))  # noqa: E731
    samples = [(torch.randn(1, 3, 7, 12),), (torch.randn(3, 3, 5, 4),)]
    assert_entry("interpolate_area_to_pool", model, IMAGE, exporter, dynamic=SIZES, samples=samples)


@pytest.mark.one_exporter
@pytest.mark.parametrize("recompute", [None, True])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "area"])
def test_scales_that_float32_does_not_hold(exporter, mode, recompute):
    model = rounded(mode, recompute)
    assert_same_outputs(model, torch.randn(2, 3, 12, 16), exporter, dynamic=SIZES, samples=HEIGHTS)


@pytest.mark.one_exporter
def test_varying_scales_as_models_have_them(exporter):
    # Resize rounds its places in its own way; weights of bicubic are polynomials of places that torch rounds.
    model = lambda x: (by_ratio(x, recompute_scale_factor=True), by_ratio(x, "bicubic"))  # noqa: E731
    assert_same_outputs(model, torch.randn(2, 3, 12, 16), exporter, dynamic=SIZES, samples=ROUNDED)


def by_shorter_side(x):
    return F.interpolate(x, scale_factor=24 / min(x.shape[-2:]), mode="bilinear")


def test_a_scale_that_a_decision_yields():
    image = torch.randn(2, 3, 12, 16)
    result = assert_same_outputs(by_shorter_side, image, "torchscript", dynamic=SIZES, samples=ROUNDED)
    assert {note.entry for note in result.applied} >= {"interpolate_varying_scale", "control_flow"}


def test_early_opsets():
    model = lambda x: antialiased(x, (3, 4))  # noqa: E731
    assert_entry("interpolate_antialias_to_matmul", model, IMAGE, "torchscript", opset=17)
    options = {"opset": 11, "dynamic": SIZES, "samples": ROUNDED}
    assert_entry("interpolate_varying_scale", by_varying_scale, torch.randn(2, 3, 12, 16), "torchscript", **options)


# What becomes of it


@pytest.mark.parametrize(
    ("entry", "model", "exporter", "dynamic", "nodes"),
    [
        (
            "interpolate_antialias_by_scale",
            lambda x: antialiased(x, scale_factor=0.45),
            "dynamo",
            "batch",
            {"MatMul": 2},
        ),
        ("interpolate_antialias_to_matmul", lambda x: antialiased(x, (3, 4)), "torchscript", "batch", {"MatMul": 2}),
        ("interpolate_area_to_pool", lambda x: area(x, (7, 2)), "torchscript", "batch", {"AveragePool": 1}),
        ("interpolate_nearest_exact", lambda x: nearest_exact(x, (13, 4)), "torchscript", "batch", {"Gather": 2}),
        ("interpolate_recomputed_scale", lambda x: recomputed(x, "bilinear"), "torchscript", SIZES, {"Resize": 1}),
    ],
)
def test_nodes(entry, model, exporter, dynamic, nodes):
    # Resize has scales in float32: bilinear by 0.7 is off by a few roundings at 40.
    verify = Verify(sizes={"height": (9, 21), "width": (11, 30)} if dynamic == SIZES else {})
    result = assert_entry(entry, model, IMAGE, exporter, dynamic=dynamic, verify=verify)
    assert nodes.items() <= result.nodes.items()
    assert dynamic == SIZES or set(result.nodes) - {"Constant"} == set(nodes)


@pytest.mark.parametrize(
    ("model", "exporter", "dynamic"),
    [
        (lambda x: antialiased(x, (3, 4)), "dynamo", "batch"),
        (lambda x: antialiased(x[..., :6, :], scale_factor=0.5), "dynamo", "batch"),
        (lambda x: F.interpolate(x, (13, 4), mode="bilinear"), "torchscript", "batch"),
        (lambda x: F.interpolate(x, (13, 4)), "torchscript", "batch"),
        (lambda x: F.interpolate(x, scale_factor=1.5), "torchscript", SIZES),
    ],
)
def test_what_stock_does_right_is_one_resize(model, exporter, dynamic):
    result = assert_same_outputs(model, IMAGE, exporter, dynamic=dynamic)
    assert result.nodes["Resize"] == 1
    assert not (*result.applied, *result.declined)


def test_nearest_exact_of_fixed_sizes_is_left_to_dynamo():
    model = lambda x: (nearest_exact(x, (13, 4)), nearest_exact(x, scale_factor=0.3))  # noqa: E731
    assert not assert_same_outputs(model, IMAGE, "dynamo", dynamic="batch").applied


# Stock


@pytest.mark.parametrize("options", [{"scale_factor": 0.45}, {"size": (3, 4), "align_corners": True}], ids=str)
def test_stock_drops_scales_and_alignment(exporter, options):
    assert_still_needed("interpolate_antialias_by_scale", lambda x: antialiased(x, **options), (IMAGE,), exporter)


def test_stock_rounds_a_recomputed_size_otherwise():
    """At a height of 52, by 1.7; at most others it is right."""
    tall = torch.randn(1, 3, 52, 10, generator=torch.Generator().manual_seed(0))
    options = {"dynamic": SIZES, "samples": [(tall,)]}
    assert_same_outputs(recomputed, IMAGE, "torchscript", **options)
    with pytest.raises(CompatError, match="would freeze a Python decision"):
        assert_same_outputs(recomputed, IMAGE, "torchscript", exclude=["interpolate_recomputed_scale"], **options)


# Declined


@pytest.mark.parametrize("entry", ["interpolate_antialias_by_scale", "interpolate_antialias_to_matmul"])
def test_bytes_are_declined(entry):
    image = torch.zeros(1, 1, 4, 4, dtype=torch.uint8)
    with pytest.raises(Declined, match=r"the image must be of floating-point type, got torch.uint8; convert it first"):
        body(entry)(image, (2, 2), None, "bilinear", True, None, True)


def test_bytes_are_declined_by_a_scale():
    model = lambda x: F.interpolate(x, scale_factor=20 / x.shape[2], mode="bilinear")  # noqa: E731
    image = torch.randint(0, 255, (1, 3, 12, 16), dtype=torch.uint8)
    with pytest.raises(CompatError, match=r"the image must be of floating-point type, got torch\.uint8"):
        assert_same_outputs(model, image, "torchscript", dynamic=SIZES)


def test_an_axis_that_keeps_its_size_is_skipped(exporter, tmp_path):
    path = tmp_path / "model.onnx"
    export_compat(keeps_an_axis, IMAGE, path, dynamic=WIDE, exporter=exporter)
    session = onnxruntime.InferenceSession(path)
    for height, width in ((7, 19), (12, 9), (19, 20), (20, 19), (25, 30)):
        x = torch.randn(2, 3, height, width)
        for found, wanted in zip(session.run(None, {"x": x.numpy()}), keeps_an_axis(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(found), wanted, atol=1e-4, rtol=1e-3)


def test_an_error_names_the_result_of_the_entry(exporter):
    """torch's kernel errs on results one cell wide; the first nodes of the entry compute sizes."""
    model = lambda x: antialiased(x, scale_factor=1.3)  # noqa: E731
    with pytest.raises(CompatError, match=r"_upsample_bilinear2d_aa in the model, MatMul '.*' in the file; -?\d"):
        export_compat(model, torch.randn(1, 3, 32, 32), dynamic={"x": {2: "height", 3: "width"}}, exporter=exporter)


# Bodies against eager torch


@given(size=st.integers(1, 20), output=st.integers(1, 20), kind=st.sampled_from(KINDS))
@settings(max_examples=150, deadline=None)
def test_antialiased_equals_eager(size, output, kind):
    x = torch.randn(1, 2, size, 6)
    found = body("interpolate_antialias_to_matmul")(x, (output, 4), None, *kind, None, True)
    torch.testing.assert_close(found, antialiased(x, (output, 4), *kind), atol=1e-5, rtol=1e-5)


@given(st.integers(1, 20), st.floats(0.1, 3), st.sampled_from((1, 1.05, 2)), st.sampled_from(KINDS))
@settings(max_examples=150, deadline=None)
def test_antialiased_by_scale_equals_eager(size, scale, other, kind):
    assume(int(size * scale))
    x, options = torch.randn(1, 2, size, 6), dict(zip(("mode", "align_corners"), kind, strict=True))
    found = body("interpolate_antialias_to_matmul")(x, scale_factor=(scale, other), antialias=True, **options)
    torch.testing.assert_close(found, antialiased(x, scale_factor=(scale, other), **options), atol=1e-5, rtol=1e-5)


@given(size=st.integers(1, 40), output=st.integers(1, 40), scale=st.floats(0.1, 3))
@settings(max_examples=200, deadline=None)
def test_nearest_exact_equals_eager(size, output, scale):
    x = torch.arange(size).reshape(1, 1, size).float()
    resize = body("interpolate_nearest_exact")
    assert torch.equal(resize(x, output, None, "nearest-exact"), nearest_exact(x, output))
    if int(size * scale):
        assert torch.equal(resize(x, None, scale, "nearest-exact"), nearest_exact(x, scale_factor=scale))


@pytest.mark.parametrize("scale", [0.3, 0.5, 1.7, (2, 0.6)], ids=str)
def test_recomputed_scale_equals_eager(scale):
    args = (IMAGE, None, scale, "bilinear", False, True)
    torch.testing.assert_close(body("interpolate_recomputed_scale")(*args), F.interpolate(*args))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("scale", [0.3, 0.5, 1.7, 2.0, 3.3])
@pytest.mark.parametrize("size", [5, 8, 13])
def test_varying_scale_equals_eager(size, scale, mode):
    x = torch.randn(1, 2, size, size + 1)
    given = (scale, torch.tensor(scale, dtype=torch.float64))
    found = body("interpolate_varying_scale")(x, None, given, mode, None if mode == "nearest" else False)
    torch.testing.assert_close(found, F.interpolate(x, scale_factor=(scale, scale), mode=mode))


@given(
    size=st.integers(1, 40),
    scale=st.floats(0.1, 3),
    others=st.sampled_from([(), (3,), (130,), (2, 3)]),
    kind=st.sampled_from([torch.float32, torch.float64, torch.uint8]),
    has_channels_last=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_nearest_cells_equal_eager(size, scale, others, kind, has_channels_last):
    assume(int(size * scale))
    cells = torch.arange(size).reshape(1, 1, size, *[1] * len(others))
    x = cells.expand(1, 4, size, *others).to(kind)
    x = with_channels_last(x) if has_channels_last and others else x.contiguous()
    scales = (scale, *[1.0] * len(others))
    given = (torch.tensor(scale, dtype=torch.float64), *scales[1:])
    found = body("interpolate_varying_scale")(x, None, given)
    assert torch.equal(found, F.interpolate(x, scale_factor=scales))


def with_channels_last(x):
    return x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)


def by_small_scales(x):
    """By scales with which some outputs are as long as their inputs, or twice as long; of one axis, two and three."""
    rows, images, last = x[:, 0], x[..., 0], x[:, 0, ..., :1].permute(0, 2, 1, 3)
    return (
        *(F.interpolate(one, scale_factor=scale) for one in (rows[..., 0], images, x) for scale in (1.1, 2.1)),
        *(F.interpolate(images, scale_factor=(1.3, 2.2)), F.interpolate(x, scale_factor=(2.05, 1, 1.15))),
        F.interpolate(last.contiguous(memory_format=torch.channels_last), scale_factor=(1.2, 40)),
        *(F.interpolate(images.double(), scale_factor=1.1), F.interpolate(rows[..., 0], size=7)),
        nn.Upsample(scale_factor=1.25)(rows[..., 0]),
        nn.Upsample(scale_factor=2.2, recompute_scale_factor=True)(x),
    )


@pytest.mark.parametrize("opset", [11, 20])
def test_nearest_cells_of_scales_near_one_and_two(exporter, opset):
    """Torch's kernels of mode nearest read other cells there, each in its own way."""
    axes = {"x": {3: "height", 4: "width"}}
    x = torch.rand(1, 2, 4, 20, 9)
    result = export_compat(by_small_scales, x, dynamic=axes, exporter=exporter, opset_version=opset)
    for height in (*range(1, 25), 130):
        for width in (height, 3):
            x = torch.rand(1, 2, 4, height, width)
            for found, wanted in zip(result(x), by_small_scales(x), strict=True):
                assert torch.equal(found, wanted)


@pytest.mark.parametrize("scale", [1.1, 2.1])
def test_nearest_cells_of_fixed_sizes(exporter, scale):
    """Resize reads other cells of 5 than torch's kernels do."""
    model = lambda x: tuple(F.interpolate(one, scale_factor=scale) for one in (x[0, 0], x[0], x))  # noqa: E731
    result = assert_same_outputs(model, torch.rand(1, 2, 5, 5, 5), exporter)
    assert "Resize" not in result.nodes


def enlarged(x):
    """By 41 in float32, torch reads other cells than a division by 41 does."""
    sizes = ((times * x.shape[2], 2 * x.shape[3]) for times in (3, 41))
    return tuple(F.interpolate(x, size=size) for size in sizes)


def test_nearest_cells_of_whole_multiples(exporter):
    result = export_compat(enlarged, torch.rand(1, 1, 4, 3), dynamic=SIZES, exporter=exporter)
    assert result.nodes["Resize"] == 1
    for height in (1, 2, 7, 50):
        x = torch.arange(height).float().reshape(1, 1, height, 1)
        for found, wanted in zip(result(x), enlarged(x), strict=True):
            assert torch.equal(found, wanted)
