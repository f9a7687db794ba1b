"""Pools, in rows; nodes; other sizes and types; what is declined."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs, assert_still_needed

AVERAGE = {2: F.avg_pool2d, 3: F.avg_pool3d}
AVERAGED = {2: torch.randn(2, 3, 10, 7), 3: torch.randn(2, 2, 6, 7, 9)}


def averages(axes):
    pool = AVERAGE[axes]
    return lambda x: (
        pool(x, 3, 2, 1, divisor_override=2),
        pool(x, (3, 2, 2)[:axes], divisor_override=7),
        pool(x[0], 2),
        pool(x[0], 3, 2, 1, True, False),
        pool(x[0], 3, 2, 1, divisor_override=5),
    )


def divide_average(axes):
    """Divides the average by the divisor, not the sum."""

    def broken(input, *windows, divisor_override=None, **options):
        average = catalogue()[f"avg_pool{axes}d_to_sum"].body(input, *windows, **options)
        if divisor_override is None:
            return average
        return (AVERAGE[axes](input, *windows, **options) if average is NotImplemented else average) / divisor_override

    return broken


IMAGE = torch.randn(3, 8, 8)


def single(x):
    return F.max_pool2d(x, 2), nn.MaxPool2d(3, 2, 1, ceil_mode=True)(x)


UNPOOL = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}
POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
UNPOOLED = {
    axes: torch.randperm(torch.Size(shape).numel()).reshape(shape).float() - 40
    for axes, shape in ((1, (2, 3, 9)), (2, (2, 3, 9, 7)), (3, (2, 2, 5, 7, 5)))
}
EVEN = {1: UNPOOLED[1][..., :8], 2: UNPOOLED[2][..., :8, :6], 3: UNPOOLED[3][..., :4, :6, :4]}
SIZES = {
    1: {"x": {0: "batch", 2: "length"}},
    2: {"x": {0: "batch", 2: "height", 3: "width"}},
    3: {"x": {0: "batch", 2: "depth", 3: "height"}},
}


def unpool(x, kernel, sized=False, **options):
    axes = x.dim() - 2
    y, indices = POOL[axes](x, kernel, return_indices=True, **options)
    return UNPOOL[axes](y * 2 - 1, indices, kernel, **options, output_size=x.shape if sized else None)


def even(x):
    return x[(..., *map(slice, EVEN[x.dim() - 2].shape[2:]))]


def unpools(x):
    """Windows beside each other, overlapping, padded, cut off, and without values for the last cells."""
    results = [unpool(even(x), 2), unpool(x, 3, stride=2), unpool(x, 3, stride=2, padding=1), unpool(x, 2, True)]
    return *results, *([unpool(x[..., :6], (3, 2))] if x.dim() == 4 else [])


FRACTIONAL = (torch.randn(2, 3, 9, 7), torch.rand(2, 3, 2))


def fractional(indices):
    """The pool whose results, one or two, come as a tuple."""

    def pool(x, samples, *args, **options):
        result = F.fractional_max_pool2d(x, *args, _random_samples=samples, return_indices=indices, **options)
        return result if indices else (result,)

    return pool


def many_fractional(indices):
    pool = fractional(indices)
    return lambda x, u: (
        *pool(x, u, 2, (4, 3)),
        *pool(x, u, (3, 2), output_ratio=(0.6, 0.4)),
        *pool(x, u, (2, 3), (1, 2)),
        *pool(x[0], u[:1], 3, 2),
        *pool(x, u, 1, (9, 7)),
        *pool(x.double(), u.double(), 2, 4),
        *nn.FractionalMaxPool2d(2, 3, return_indices=True, _random_samples=u)(x)[: 1 + indices],
    )


def swap_samples(name):
    def broken(*args, _random_samples, **options):
        return catalogue()[name].body(*args, _random_samples=_random_samples.flip(-1), **options)

    return broken


FRACTIONALS = {"fractional_max_pool2d_to_gather": False, "fractional_max_pool2d_indices": True}
EXAMPLES = [
    *(
        Example(
            f"avg_pool{axes}d_to_sum",
            averages(axes),
            (AVERAGED[axes],),
            dynamic={"x": {0: "batch", axes: "height"}},
            broken=divide_average(axes),
            leaves=lambda x, pool=AVERAGE[axes]: pool(x, 3, 2, 1),
        )
        for axes in (2, 3)
    ),
    Example(
        "max_pool1d_of_indices",
        lambda x: (F.max_pool1d(x, 3, 2, 1), nn.MaxPool1d(2, ceil_mode=True)(x), F.max_pool1d(x[0], 2)),
        (UNPOOLED[1],),
        dynamic=SIZES[1],
        samples=[(UNPOOLED[1][:1, :, :4],), (UNPOOLED[1].repeat(2, 1, 2),)],
        leaves=lambda x: F.max_pool1d(x, 3, return_indices=True)[1],
        exporters=("dynamo",),
    ),
    Example(
        "max_pool2d_unbatched",
        single,
        (IMAGE,),
        dynamic=None,
        leaves=lambda x: F.max_pool2d(x[None], 2),
        exporters=("torchscript",),
    ),
    Example(
        "max_pool2d_indices_unbatched",
        lambda x: (*F.max_pool2d(x, 2, return_indices=True), *F.max_pool2d_with_indices(x, 3, 2, 1)),
        (IMAGE,),
        dynamic=None,
        leaves=lambda x: F.max_pool2d(x[None], 2, return_indices=True)[1],
    ),
    *(
        row
        for axes in (1, 2, 3)
        for row in (
            Example(
                f"max_unpool{axes}d_to_scatter",
                unpools,
                (UNPOOLED[axes],),
                leaves=lambda x, pool=POOL[axes]: pool(x, 2, return_indices=True),
            ),
            Example(
                f"max_unpool{axes}d_to_scatter",
                lambda x: unpool(x, 2, True),
                (UNPOOLED[axes],),
                dynamic=SIZES[axes],
                broken=lambda input, indices, *windows, output_size, **options: F.interpolate(input, output_size[2:]),
                exporters=("torchscript",),
            ),
        )
    ),
    *(
        row
        for name, indices in FRACTIONALS.items()
        for row in (
            Example(name, many_fractional(indices), FRACTIONAL, dynamic=None, broken=swap_samples(name)),
            Example(
                name,
                lambda x, u, indices=indices: fractional(indices)(x, u, 2, (4, 3)),
                FRACTIONAL,
                samples=[(torch.randn(5, 3, 9, 7), torch.rand(5, 3, 2))],
            ),
        )
    ),
]


# Averages


@pytest.mark.parametrize("axes", AVERAGE)
@pytest.mark.parametrize(("divisor", "nodes"), [(2, {"AveragePool": 1, "Mul": 1}), (None, {"AveragePool": 1})])
def test_averages_take_few_nodes(axes, divisor, nodes):
    model = lambda x: AVERAGE[axes](x, 3, 2, 1, divisor_override=divisor)  # noqa: E731
    dynamic = {"x": {0: "batch", axes: "height"}}
    result = assert_same_outputs(model, AVERAGED[axes], "torchscript", dynamic=dynamic)
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == nodes


@pytest.mark.parametrize("axes", AVERAGE)
def test_averages_decline_a_divisor_with_ceil_mode(axes):
    model = lambda x: AVERAGE[axes](x, 3, 2, ceil_mode=True, divisor_override=2)  # noqa: E731
    with pytest.raises(CompatError, match="divisor_override needs ceil_mode=False"):
        assert_same_outputs(model, AVERAGED[axes], "torchscript")


@pytest.mark.parametrize("axes", AVERAGE)
def test_averages_still_need_the_divisor(axes, exporter):
    model = lambda x: AVERAGE[axes](x, 3, 2, 1, divisor_override=2)  # noqa: E731
    assert_still_needed(f"avg_pool{axes}d_to_sum", model, AVERAGED[axes], exporter)


# Maxima of images


@pytest.mark.parametrize("indices", [False, True])
def test_single_images_take_no_loop(indices):
    name = "max_pool2d_indices_unbatched" if indices else "max_pool2d_unbatched"
    model = lambda x: F.max_pool2d(x, 2, return_indices=indices)  # noqa: E731
    assert "Loop" not in assert_same_outputs(model, IMAGE, "torchscript", uses=(name,)).nodes


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("max_pool2d_unbatched", single),
        ("max_pool2d_indices_unbatched", lambda x: F.max_pool2d(x, 2, return_indices=True)),
    ],
)
def test_single_images_still_need_it_at_opset_17(name, model):
    assert_still_needed(name, model, IMAGE, "torchscript", opset=17)


def test_single_images_match_through_dynamo():
    assert_entry("max_pool2d_unbatched", single, IMAGE, "dynamo")


def test_integers_are_declined(exporter):
    model = lambda x: F.max_pool2d(x.long()[None], 2)  # noqa: E731
    with pytest.raises(CompatError, match="int64 cannot be pooled in onnxruntime; convert to float32 before"):
        assert_same_outputs(model, IMAGE, exporter)
    assert_still_needed("max_pool2d_unbatched", model, IMAGE, exporter)


# Unpooling


@pytest.mark.parametrize("axes", UNPOOL)
def test_unpools_a_single_image_and_other_types(axes):
    def call(y, indices):
        pooled = (y[0], indices[0]), (y.double(), indices), (y.half(), indices)
        return tuple(UNPOOL[axes](*each, 2) for each in pooled)

    example = POOL[axes](EVEN[axes], 2, return_indices=True)
    result = assert_same_outputs(call, example, "torchscript", uses=(f"max_unpool{axes}d_to_scatter",))
    assert result.nodes["ScatterElements"] == 3


@pytest.mark.parametrize("axes", UNPOOL)
def test_unpooling_without_the_entry_fails_in_torch(axes):
    options = {"dynamic": "batch", "exclude": [f"max_unpool{axes}d_to_scatter"]}
    with pytest.raises(CompatError, match=r"cond must be a bool|aten::max_unpool"):
        assert_same_outputs(lambda x: unpool(even(x), 2), UNPOOLED[axes], "torchscript", **options)


# Fractional windows


@pytest.mark.parametrize(
    ("name", "shape"), [*itertools.product(FRACTIONALS, [(9, 4, 2), (31, 13, 3), (100, 71, 2), (8, 1, 8)])]
)
def test_fractional_equals_eager(name, shape):
    size, output, kernel = shape
    x, u = torch.randn(2, 50, size, size + 3), torch.rand(2, 50, 2)
    u[0, :2] = torch.tensor([[0.0, 1.0 - 2**-24], [1.0 - 2**-24, 0.0]])
    found = catalogue()[name].body(x, kernel, (output, output), _random_samples=u)
    wanted = fractional(FRACTIONALS[name])(x, u, kernel, output)
    torch.testing.assert_close(found if FRACTIONALS[name] else (found,), wanted, rtol=0, atol=0)


@pytest.mark.parametrize("indices", [False, True])
def test_fractional_declines(indices, exporter):
    pool = fractional(indices)
    with pytest.raises(CompatError, match="pass them on as _random_samples"):
        assert_same_outputs(lambda x: pool(x, None, 2, 3), FRACTIONAL[:1], exporter)
    options = {"dynamic": {"x": {2: "height"}}}
    with pytest.raises(CompatError, match="height and width must be fixed"):
        assert_same_outputs(lambda x, u: pool(x, u, 2, 3), FRACTIONAL, exporter, **options)
