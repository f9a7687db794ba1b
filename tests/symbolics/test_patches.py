"""Windows and shuffles, in rows; their nodes; windows of every size against eager torch."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch_onnx_compat.symbolics.patches import (
    _unfold_by_tables,
    fold_of_batch,
    fold_to_take,
    pixel_shuffle_of_images,
    pixel_unshuffle_of_images,
    tensor_unfold_to_take,
    unfold_of_batch,
)

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

CASES = [
    ((7, 6), (3, 2), 1, 0, 1),
    ((7, 6), 2, 1, 0, 3),
    ((8, 6), 2, 1, 0, 2),
    ((7, 6), (3, 2), (2, 1), (1, 2), (2, 3)),
    ((5, 5), 1, 1, 1, 2),
    ((3, 2), (3, 2), 1, 0, 1),
]
"""Arguments of fold: windows that overlap, leave gaps, touch, are dilated, lie in the padding; and one window."""


def windows(*lead, case):
    size, *rest = case
    return F.unfold(torch.randn(*lead, *size), *rest)


def fold_all(*xs):
    return tuple(F.fold(x, *case) for x, case in zip(xs, CASES, strict=True))


def fold_varying(x):
    y = F.fold(F.unfold(x, 3, 1, 1, 2), x.shape[2:], 3, 1, 1, 2)
    return y, F.fold(F.unfold(x, 2, 2), (x.shape[2], x.shape[3]), 2, 2)


def unfold_all(x):
    """Every axis, overlapping or with gaps, one window, one cell, twice, other types."""
    return (
        *(x.unfold(-1, 3, 2), x.unfold(1, 4, 1), x.unfold(0, 2, 1), x.unfold(1, 2, 3), x.unfold(1, 7, 1)),
        *(x.unfold(2, 1, 2), x.unfold(1, 2, 2).unfold(2, 3, 3)),
        *((x * 9).long().unfold(1, 3, 2), (x > 0).unfold(-1, 2, 2)),
    )


def unfold_backwards(self, dimension, size, step):
    return tensor_unfold_to_take(self, dimension, size, step).flip(-1)


FOLDS = {"model": fold_all, "inputs": tuple(windows(2, 3, case=case) for case in CASES)}
UNFOLD = {"inputs": (torch.randn(3, 7, 9),), "broken": unfold_backwards}
EXAMPLES = [
    Example(
        "pixel_shuffle_of_integers",
        lambda i: (F.pixel_shuffle(i, 2), F.pixel_shuffle(i.int()[0], 2), nn.PixelShuffle(4)(i > 40)),
        (torch.arange(192).reshape(2, 16, 2, 3),),
        leaves=lambda i: F.pixel_shuffle(i.float(), 2),
    ),
    Example(
        "fold_of_batch",
        fold_all,
        tuple(windows(3, case=case) for case in CASES),
        broken=lambda input, *args, **kwargs: fold_of_batch(input.flip(0), *args, **kwargs),
        dynamic=None,
    ),
    Example(
        "fold_of_batch",
        lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[1:], 3, padding=1),
        (torch.randn(3, 7, 6),),
        dynamic={"x": {1: "height"}},
    ),
    Example(
        "fold_to_take",
        **FOLDS,
        broken=lambda input, *args, **kwargs: fold_to_take(input.flip(1), *args, **kwargs),
        exporters=("torchscript",),
        options={"opset": 17},
    ),
    Example("fold_to_take", **FOLDS, exporters=("dynamo",)),
    Example(
        "fold_to_take",
        fold_varying,
        (torch.randn(2, 3, 9, 8),),
        dynamic={"x": {0: "batch", 2: "height", 3: "width"}},
        samples=[(torch.randn(3, 3, 7, 8),)],
        exporters=("torchscript",),
    ),
    Example(
        "unfold_of_batch",
        lambda x: (F.unfold(x, 3), nn.Unfold((3, 2), (2, 1), (1, 2), (2, 3))(x), F.unfold(x, 2, stride=2)),
        (torch.randn(3, 7, 6),),
        broken=lambda input, *args, **kwargs: unfold_of_batch(input, *args, **kwargs).flip(0),
        dynamic={"x": {1: "height"}},
        leaves=lambda x: F.unfold(x[None], 3),
    ),
    Example(
        "tensor_unfold_of_computed_size",
        lambda x: (
            x.unfold(0, (x.shape[0] + 1) // 2, (x.shape[0] + 1) // 2),
            x.unfold(0, x.shape[0] // 3 + 1, 1),
            torch.cat((x, x)).unfold(0, 2, x.shape[0]),
        ),
        (torch.randn(20, 3),),
        samples=[(torch.randn(1, 3),), (torch.randn(7, 3),)],
        broken=lambda self, dimension, size, step: tensor_unfold_to_take(self, dimension, size, step) + 1,
        leaves=lambda x: x.unfold(1, 2, 2),
    ),
    Example(
        "tensor_unfold_to_take",
        unfold_all,
        **UNFOLD,
        dynamic={"x": {0: "batch", 2: "length"}},
        samples=[(torch.randn(2, 7, 12),)],
        exporters=("torchscript",),
    ),
    Example(
        "tensor_unfold_to_take",
        unfold_all,
        **UNFOLD,
        dynamic=None,
        leaves=lambda x: F.unfold(x[None], 2),
        exporters=("torchscript",),
    ),
    Example(
        "tensor_unfold_to_take", lambda x: (x.unfold(-1, 3, 2), x.unfold(1, 4, 1)), **UNFOLD, exporters=("dynamo",)
    ),
    *(
        Example(
            "pixel_shuffle_of_images",
            lambda x: (F.pixel_shuffle(x, 2), nn.PixelShuffle(2)(x[0, 0]), F.pixel_shuffle(x[None], 2)),
            (torch.randn(2, 2, 12, 3, 5),),
            broken=lambda input, factor: pixel_shuffle_of_images(input.flip(-3), factor),
            dynamic=dynamic,
            leaves=lambda x: F.pixel_shuffle(x[0], 2),
        )
        for dynamic in (None, "batch")
    ),
    *(
        Example(
            "pixel_unshuffle_of_images",
            lambda x: (F.pixel_unshuffle(x, 2), nn.PixelUnshuffle(2)(x[0, 0]), F.pixel_unshuffle(x[None], 2)),
            (torch.randn(2, 2, 3, 4, 6),),
            broken=lambda input, factor: pixel_unshuffle_of_images(input.flip(-3), factor),
            dynamic=dynamic,
            leaves=lambda x: F.pixel_unshuffle(x[0], 2),
        )
        for dynamic in (None, "batch")
    ),
    Example(
        "channel_shuffle_to_take",
        lambda x: (
            *(torch.channel_shuffle(x, 3), F.channel_shuffle(x, 2), nn.ChannelShuffle(12)(x)),
            *(torch.channel_shuffle(x, 1), torch.channel_shuffle(x[..., 0], 4)),
            *(torch.channel_shuffle(x.unsqueeze(-1), 6), torch.channel_shuffle(x > 0, 4)),
        ),
        (torch.randn(2, 12, 3, 5),),
        broken=lambda input, groups: input.unflatten(1, (-1, groups)).transpose(1, 2).flatten(1, 2),
        dynamic={"x": {0: "batch", 2: "height"}},
        leaves=lambda x: F.pixel_shuffle(x, 2),
    ),
    Example(
        "channel_shuffle_to_take",
        lambda x: torch.channel_shuffle(torch.cat([x, x], 1), 2),
        (torch.randn(2, 12, 3, 5),),
        dynamic={"x": {1: "channels"}},
        exporters=("torchscript",),
    ),
]


# What the files hold


def assert_nodes(name, model, x, nodes):
    result = assert_entry(name, model, x, "torchscript", dynamic="batch")
    assert {node: count for node, count in result.nodes.items() if node != "Constant"} == nodes


def test_windows_that_touch_are_one_gather():
    x = windows(2, 3, case=CASES[2])
    assert_nodes("fold_to_take", lambda x: F.fold(x, *CASES[2]), x, {"Reshape": 2, "Gather": 1})


def test_fold_of_one_image_takes_few_nodes():
    x = windows(3, case=CASES[2])
    result = assert_entry("fold_of_batch", lambda x: F.fold(x, *CASES[2]), x, "torchscript")
    assert "Col2Im" not in result.nodes
    assert result.nodes.total() - result.nodes["Constant"] <= 6


def test_fold_of_a_batch_is_left_to_dynamo():
    x = windows(2, 3, case=CASES[0])
    result = assert_same_outputs(lambda x: F.fold(x, *CASES[0]), x, "dynamo", dynamic="batch")
    assert not result.applied
    assert "Col2Im" in result.nodes


def test_unfold_of_the_last_axis_is_one_gather():
    assert_nodes("tensor_unfold_to_take", lambda x: x.unfold(-1, 3, 2), torch.randn(3, 7, 9), {"Gather": 1})


def test_channel_shuffle_is_one_gather():
    assert_nodes("channel_shuffle_to_take", nn.ChannelShuffle(3), torch.randn(2, 12, 3, 5), {"Gather": 1})


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (lambda x: F.unfold(x, 3), torch.randn(1, 3, 7, 6)),
        (nn.PixelShuffle(2), torch.randn(2, 12, 3, 5)),
        (nn.PixelUnshuffle(2), torch.randn(2, 3, 4, 6)),
    ],
    ids=["unfold", "pixel_shuffle", "pixel_unshuffle"],
)
def test_a_batch_of_images_needs_nothing(model, x):
    result = assert_same_outputs(model, x, "torchscript", dynamic="batch")
    assert not result.applied
    assert not result.declined


def test_an_infinite_cell_stays_where_it_is():
    x = windows(2, 3, case=CASES[0])
    x[0, 0, 0] = torch.inf
    assert_entry("fold_to_take", lambda x: F.fold(x, *CASES[0]), x, "torchscript")


# Against eager torch

PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))
SIZES = st.integers(3, 8)


@given(kernel=PAIRS, dilation=PAIRS, padding=st.integers(0, 1), stride=PAIRS, size=st.tuples(SIZES, SIZES))
@settings(max_examples=150, deadline=None)
def test_fold_equals_eager(kernel, dilation, padding, stride, size):
    assume(all(n + 2 * padding > d * (k - 1) for n, d, k in zip(size, dilation, kernel, strict=True)))
    case = (size, kernel, dilation, padding, stride)
    x = windows(2, 3, case=case)
    torch.testing.assert_close(fold_to_take(x, *case), F.fold(x, *case))


@given(
    size=st.integers(1, 9), window=st.integers(1, 9), step=st.integers(1, 5), axis=st.sampled_from([0, 1, 2, -1, -2])
)
@settings(max_examples=100, deadline=None)
def test_tensor_unfold_equals_eager(size, window, step, axis):
    assume(window <= size)
    shape = [2, 3, 4]
    shape[axis] = size
    x = torch.randn(shape)
    assert torch.equal(tensor_unfold_to_take(x, axis, window, step), x.unfold(axis, window, step))


def test_windows_of_a_number():
    x = torch.tensor(2.5)
    assert torch.equal(tensor_unfold_to_take(x, 0, 1, 2), x.unfold(0, 1, 2))
    with pytest.raises(Declined, match="size must be 1 for a single number, got 0"):
        tensor_unfold_to_take(x, 0, 0, 1)


@pytest.mark.parametrize("arguments", [(2, 1, 0, 1), ((3, 2), (2, 1), (1, 2), (2, 3))])
def test_windows_of_no_images(arguments):
    """torch's exporter divides by 0, which ends the process: not even a run of the test that fails comes back."""
    assert export_compat(lambda x: F.unfold(x, *arguments), torch.rand(0, 2, 7, 6), exporter="torchscript").table


@pytest.mark.parametrize("case", CASES)
def test_windows_by_tables_are_those_of_torch(case):
    size, *arguments = case
    images = torch.randn(2, 3, *size)
    found = _unfold_by_tables(images, list(size), tuple(arguments))
    assert torch.equal(found, F.unfold(images, *arguments))
