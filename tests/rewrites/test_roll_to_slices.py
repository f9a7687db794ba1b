import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "roll_to_slices"
IMAGE = torch.randn(3, 4, 5, 2)
DYNAMIC = {"x": {0: "batch", 1: "height", 2: "width"}}


class Rolls(nn.Module):
    """Every form of the call: flattened, one axis, several, one twice, from the end, beyond the size, by a size."""

    def forward(self, x):
        height, width = x.shape[1], x.shape[2]
        unchanged = torch.roll(x, 0, 1)
        unchanged += 1
        return (
            *(x.roll(3), torch.roll(x, -2), x.roll(1000)),
            *(x.roll(2, 1), x.roll(-2, -2), x.roll(17, 2), x.roll(-9, 3), torch.roll(x, shifts=(3,), dims=(0,))),
            *(x.roll((1, -2), (1, 2)), x.roll([1, 2], [1, 1]), x.roll((1, -2, 3), (-1, 0, 2))),
            *(x.roll(height // 2, 1), x.roll((-(height // 2), width // 3), dims=(1, 2)), x.roll(width, 1)),
            *(unchanged, x.abs().roll(1, 2), x.to(torch.int64).roll(1, 2), (x > 0).roll(1, 2)),
        )


def test_matches_dynamic_sizes(exporter):
    assert_same_outputs(
        Rolls(), (IMAGE,), exporter, dynamic=DYNAMIC, samples=[(torch.randn(2, 1, 7, 2),)], uses=(NAME,)
    )


def test_matches_fixed_sizes(exporter):
    result = assert_same_outputs(Rolls(), (IMAGE,), exporter, uses=(NAME,))
    if exporter == "dynamo":
        assert not {"Mod", "Shape"} & set(result.nodes)


def test_matches_at_low_opset():
    assert_same_outputs(Rolls(), (IMAGE,), "torchscript", dynamic=DYNAMIC, opset=11, uses=(NAME,))


def test_takes_empty_axes(exporter):
    samples = [(torch.ones(3, 0, 5, 2),)]
    assert_same_outputs(lambda x: x.roll(1, 1), (IMAGE,), exporter, dynamic=DYNAMIC, samples=samples, uses=(NAME,))


def test_takes_three_nodes_an_axis(exporter):
    result = assert_same_outputs(lambda x: x.roll((2, -1), (1, 2)), (IMAGE,), exporter, uses=(NAME,))
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == {"Slice": 4, "Concat": 2}


@given(
    shape=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    axes=st.lists(st.tuples(st.integers(-9, 9), st.integers(-4, 3)), min_size=1, max_size=4),
    flattened=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_equals_eager(shape, axes, flattened):
    x = torch.arange(torch.Size(shape).numel()).reshape(shape)
    shifts, dims = zip(*((shift, dim % len(shape)) for shift, dim in axes), strict=True)
    args = (shifts[0],) if flattened else (shifts, dims)
    assert torch.equal(catalogue()[NAME].body(x, *args), torch.roll(x, *args))


def test_sentinel(exporter):
    @rewrite(torch.roll, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, shifts, dims=None):
        return torch.cat((input[:, shifts:], input[:, :shifts]), 1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x.roll(1, 1), (IMAGE,), exporter, rewrites=[broken])


def stock_fails(model, exporter, match, **options):
    with pytest.raises(CompatError, match=match):
        assert_same_outputs(model, (IMAGE,), exporter, exclude=[NAME], **options)


def test_still_needed_for_torchscript():
    stock_fails(lambda x: x.roll(1), "torchscript", r"AssertionError|len\(shifts\)=1")
    stock_fails(lambda x: x.roll(17, 2), "torchscript", "does not compute what the model computes")


def test_still_needed_for_dynamo():
    stock_fails(lambda x: x.roll(x.shape[1] // 2, 1), "dynamo", "Unsupported attribute type", dynamic=DYNAMIC)
    samples = [(torch.ones(3, 0, 5, 2),)]
    stock_fails(lambda x: x.roll(1, 1), "dynamo", "sample 0", dynamic=DYNAMIC, samples=samples)
