"""Adaptive pools, in rows; at many sizes; against eager torch; few nodes; what is declined."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch_onnx_compat.rewrites.adaptive_pools import adaptive_max_pool, adaptive_max_pool_with_indices

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.functional.adaptive_avg_pool import outputs_of
from torch_onnx_compat.testing import Example, assert_same_outputs

LENGTH = {"x": {0: "batch", 2: "length"}}
SIZES = {"x": {0: "batch", 2: "height", 3: "width"}}
VOLUMES = {"x": {0: "batch", 2: "depth", 3: "height", 4: "width"}}
AVERAGE = {n: getattr(F, f"adaptive_avg_pool{n}d") for n in (1, 2, 3)}
MAXIMUM = {n: getattr(F, f"adaptive_max_pool{n}d") for n in (1, 2, 3)}


def averages(axes, *outputs):
    return lambda x: tuple(AVERAGE[axes](x, output) for output in outputs)


def many_lengths(x):
    inputs = [(x, 3), (x, 11), (x, 5), (x[0], 8), (x[0], 3), (x[0], 1), (x[:, :, :1], 4), (x.double(), 4)]
    return nn.AdaptiveAvgPool1d(3)(x), *(F.adaptive_avg_pool1d(one, output) for one, output in inputs)


def many_sizes(x):
    """Crops a picture to many heights and widths and pools each."""
    crops = [(x[..., :h, :w], o) for h, w, o in [(1, 1, 3), (3, 4, 7), (13, 13, 6), (7, 5, (3, 4)), (9, 9, (9, 2))]]
    crops += [(x[..., :7, :5], (None, 3)), (x, (None, 3)), (x, (7, 5)), (x[0], (7, 5)), (x[0, :, :8, :6], (4, 3))]
    crops += [(x[0], 1), (x.double(), (20, 18)), (x, (1, 7)), (x[:, :, :3], (40, 1))]
    return tuple(F.adaptive_avg_pool2d(crop, output) for crop, output in crops)


def many_volumes(x):
    outputs = [2, (2, 3, 2), (7, None, 3), (None, 3, 1), (2, 7, 9), (1, 1, 3)]
    inputs = [x, x[0], x[:, :, :4, :4].double(), x.repeat(1, 1, 1, 3, 3)]
    return tuple(F.adaptive_avg_pool3d(one, output) for one in inputs for output in outputs)


def pool_by_stride(input, output_size):
    """The pool of stride h // o that many posts recommend."""
    kernel = (input.shape[-2] // output_size[0], input.shape[-1] // output_size[1])
    return F.avg_pool2d(input, kernel, kernel)[..., : output_size[0], : output_size[1]]


# For each number of axes: the shape of an input, its dynamic axes, outputs (the first is an uneven one), and a shape
# and an output that divides it.
MAXIMA = {
    1: ((2, 3, 11), LENGTH, (3, 4, 20, 1), (2, 3, 8), 4),
    2: ((2, 3, 7, 11), SIZES, ((3, 4), 5, (None, 4), (9, 1), (20, 3), 1), (2, 3, 6, 8), (3, 4)),
    3: (
        (2, 2, 5, 7, 4),
        {"x": {0: "batch", 2: "depth", 3: "height"}},
        ((2, 3, 3), (None, 4, 1), (9, 7, 2), 1),
        (2, 2, 4, 6, 8),
        (2, 3, 4),
    ),
}


def ties(shape):
    return torch.randint(-2, 2, shape).float()


def maxima(axes):
    pool, outputs = MAXIMUM[axes], MAXIMA[axes][2]
    return lambda x: (*(pool(x, output) for output in outputs), pool(x[0], outputs[0]))


def maxima_and_places(axes):
    pool, outputs = MAXIMUM[axes], MAXIMA[axes][2]

    def model(x):
        pairs = [*(pool(x, output, True) for output in outputs), pool(x[0], outputs[0], return_indices=True)]
        return tuple(tensor for pair in pairs for tensor in pair)

    return model


def place_beside(axes):
    def broken(input, output_size, return_indices=False):
        values, places = adaptive_max_pool_with_indices(input, outputs_of(output_size, axes))
        return values, places + 1

    return broken


EXAMPLES = [
    Example("adaptive_avg_pool1d_to_matmul", many_lengths, (torch.rand(2, 3, 8),)),
    Example(
        "adaptive_avg_pool1d_to_matmul",
        averages(1, 4, 3, 11),
        (torch.rand(2, 3, 8),),
        dynamic=LENGTH,
        broken=lambda input, output_size: F.interpolate(input, output_size, mode="linear"),
    ),
    Example("adaptive_avg_pool2d_to_matmul", many_sizes, (torch.rand(2, 3, 40, 36),)),
    *(
        Example(
            "adaptive_avg_pool2d_to_matmul",
            averages(2, (5, 3), (None, 4), (1, None), (4, 1), (3, 20)),
            (torch.rand(2, 3, height, width),),
            dynamic=SIZES,
        )
        for height, width in ((8, 6), (10, 15))  # neither divides, both divide
    ),
    Example(
        "adaptive_avg_pool2d_to_matmul",
        averages(2, (3, 4)),
        (torch.rand(2, 3, 8, 6),),
        dynamic=None,  # a kernel has to be constant
        broken=pool_by_stride,
        exporters=("torchscript",),
    ),
    Example("adaptive_avg_pool3d_to_matmul", many_volumes, (torch.rand(2, 3, 4, 6, 8),)),
    Example(
        "adaptive_avg_pool3d_to_matmul",
        averages(3, (3, 2, None), (2, 1, 5)),
        (torch.rand(2, 3, 4, 5, 6),),
        dynamic=VOLUMES,
    ),
    Example(
        "adaptive_avg_pool3d_to_matmul",
        averages(3, 3),
        (torch.rand(2, 3, 8, 8, 8),),
        broken=lambda input, output_size: F.avg_pool3d(input, 3, 2),
        exporters=("torchscript",),
    ),
    *(
        row
        for axes, (shape, dynamic, outputs, *_) in MAXIMA.items()
        for row in (
            Example(f"adaptive_max_pool{axes}d_to_take", maxima(axes), (torch.randn(shape),)),
            Example(f"adaptive_max_pool{axes}d_to_take", maxima(axes), (torch.randn(shape),), dynamic=dynamic),
            Example(
                f"adaptive_max_pool{axes}d_indices", maxima_and_places(axes), (ties(shape),), broken=place_beside(axes)
            ),
            Example(
                f"adaptive_max_pool{axes}d_indices",
                lambda x, pool=MAXIMUM[axes], one=outputs[0]: pool(x, one, True),
                (ties(shape),),
                dynamic=dynamic,
            ),
        )
    ),
]
each_axes = pytest.mark.parametrize("axes", MAXIMA)


# Averages


def test_averages_in_half_precision(exporter):
    result = assert_same_outputs(lambda x: F.adaptive_avg_pool2d(x, (6, 7)), torch.rand(2, 3, 8, 9).half(), exporter)
    assert [note.entry for note in result.applied] == ["adaptive_avg_pool2d_to_matmul"]


@pytest.mark.parametrize(
    ("model", "example", "dynamic", "sizes"),
    [
        (averages(1, 4, 3, 11), (2, 3, 8), LENGTH, [(length,) for length in range(1, 25)]),
        (averages(2, 3, 7), (1, 2, 8, 6), {"x": {2: "h", 3: "w"}}, [*itertools.product(range(1, 25), (1, 5, 24))]),
    ],
    ids=["1-D", "2-D"],
)
def test_averages_of_every_size(exporter, model, example, dynamic, sizes):
    name = f"adaptive_avg_pool{len(example) - 2}d_to_matmul"
    session = assert_same_outputs(model, torch.rand(example), exporter, dynamic=dynamic, uses=(name,)).session()
    for size in sizes:
        x = torch.rand(*example[:2], *size)
        for found, wanted in zip(session.run(None, {"x": x.numpy()}), model(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dynamic", [None, {"x": {2: "h"}, "y": {2: "rows", 3: "columns"}}], ids=["fixed", "dynamic"])
def test_averages_to_computed_outputs(exporter, dynamic):
    def like(x, y):
        return F.adaptive_avg_pool2d(x, y.shape[-2:]), F.adaptive_avg_pool2d(x, (x.shape[2] // 2, 3))

    args = torch.rand(2, 3, 8, 7), torch.rand(1, 1, 5, 3)
    assert_same_outputs(like, args, exporter, dynamic=dynamic, uses=("adaptive_avg_pool2d_to_matmul",))


def test_averages_at_low_opset():
    model, uses = averages(2, (5, 3), (None, 4), (3, 20)), ("adaptive_avg_pool2d_to_matmul",)
    assert_same_outputs(model, torch.rand(2, 3, 8, 6), "torchscript", opset=13, dynamic=SIZES, uses=uses)


@pytest.mark.parametrize(
    ("shape", "output", "nodes"),
    [
        ((2, 3, 8), 3, {"MatMul"}),
        ((2, 64, 7, 7), 3, {"Reshape", "MatMul"}),
        ((2, 3, 40, 36), 7, {"MatMul"}),
        ((2, 3, 8, 6), (None, 4), {"MatMul"}),
        ((2, 3, 8, 6), (None, 3), {"AveragePool"}),
        ((2, 3, 4, 6, 8), 2, {"AveragePool"}),
    ],
    ids=["1-D", "one matrix", "two matrices", "one axis kept", "equal windows", "equal windows, 3-D"],
)
def test_averages_take_few_nodes(exporter, shape, output, nodes):
    axes = len(shape) - 2
    uses = (f"adaptive_avg_pool{axes}d_to_matmul",)
    model = lambda x: AVERAGE[axes](x, output)  # noqa: E731
    result = assert_same_outputs(model, torch.rand(shape), exporter, dynamic="batch", uses=uses)
    assert set(result.nodes) - {"Constant"} == nodes
    assert result.nodes.total() - result.nodes["Constant"] <= 3


ONE_CELL = "a single cell is a mean, which torch exports for every size"
DIVIDES = "the output divides the input, which torch exports as AveragePool"


@pytest.mark.parametrize(
    ("shape", "output", "dynamic", "reason"),
    [
        ((2, 3, 8), 1, LENGTH, ONE_CELL),
        ((2, 3, 8), 4, "batch", DIVIDES),
        ((2, 3, 8, 6), 1, SIZES, ONE_CELL),
        ((2, 3, 8, 6), (4, 3), "batch", DIVIDES),
        ((2, 3, 4, 5, 6), 1, VOLUMES, ONE_CELL),
    ],
)
def test_averages_that_stock_exports_right(exporter, shape, output, dynamic, reason):
    model = averages(len(shape) - 2, output)
    result = assert_same_outputs(model, torch.rand(shape), exporter, dynamic=dynamic)
    assert not result.applied
    assert [note.reason for note in result.declined] == [reason]
    if len(shape) == 4:
        assert set(result.nodes) <= {"AveragePool", "GlobalAveragePool", "ReduceMean", "Constant"}


@pytest.mark.parametrize(
    ("exporter", "output", "dynamic"),
    [
        ("torchscript", (3, 4), None),
        ("torchscript", (4, 3), SIZES),
        ("torchscript", (None, 3), "batch"),
        ("dynamo", (4, 3), SIZES),
        ("dynamo", (1, 3), SIZES),
    ],
)
def test_averages_still_needed_for_each(exporter, output, dynamic):
    options = {"dynamic": dynamic, "exclude": ["adaptive_avg_pool2d_to_matmul"]}
    with pytest.raises(CompatError):
        assert_same_outputs(averages(2, output), torch.rand(2, 3, 8, 6), exporter, **options)


# Maxima


@each_axes
def test_maxima_keep_infinities(axes):
    shape, _, outputs, *_ = MAXIMA[axes]
    uses = (f"adaptive_max_pool{axes}d_to_take",)
    minus = torch.full(shape, -torch.inf)
    assert_same_outputs(lambda x: MAXIMUM[axes](x, outputs[0]), (minus,), "torchscript", uses=uses)


@each_axes
@given(pairs=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 12)), min_size=3), seed=st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_maxima_equal_eager(axes, pairs, seed):
    torch.manual_seed(seed)
    sizes, output = zip(*pairs[:axes], strict=True)
    x = torch.randint(-3, 3, (2, 3, *sizes)).float()
    assert torch.equal(adaptive_max_pool(x, output), MAXIMUM[axes](x, output))
    found, wanted = adaptive_max_pool_with_indices(x, output), MAXIMUM[axes](x, output, True)
    assert all(torch.equal(*both) for both in zip(found, wanted, strict=True))


@each_axes
def test_maxima_take_two_nodes_an_axis(axes, exporter):
    shape, _, outputs, *_ = MAXIMA[axes]
    uses = (f"adaptive_max_pool{axes}d_to_take",)
    model = lambda x: MAXIMUM[axes](x, outputs[0])  # noqa: E731
    result = assert_same_outputs(model, torch.randn(shape), exporter, dynamic="batch", uses=uses)
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == {"Gather": axes, "ReduceMax": axes}


@each_axes
def test_maxima_and_places_take_nine_nodes_at_most(axes, exporter):
    shape, _, outputs, *_ = MAXIMA[axes]
    uses = (f"adaptive_max_pool{axes}d_indices",)
    model = lambda x: MAXIMUM[axes](x, outputs[0], True)  # noqa: E731
    result = assert_same_outputs(model, ties(shape), exporter, dynamic="batch", uses=uses)
    assert result.nodes.total() <= 9
    assert result.nodes["ArgMax"] == 1


@pytest.mark.dynamo_from("2.10", "adaptive_max_pool2d and 3d are not decomposed")
@each_axes
@pytest.mark.parametrize(("places", "reason"), [(False, "torch exports as MaxPool"), (True, "torch exports right")])
def test_maxima_that_stock_exports_right(axes, exporter, places, reason):
    *_, shape, output = MAXIMA[axes]
    model = lambda x: MAXIMUM[axes](x, output, places)  # noqa: E731
    result = assert_same_outputs(model, torch.randn(shape), exporter, dynamic="batch")
    assert [note.reason for note in result.declined] == [f"the output divides the input, which {reason}"]
    assert places or "MaxPool" in result.nodes
