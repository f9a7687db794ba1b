import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "arange_of_fractions"
X = torch.randn(3, 41)
DYNAMIC = {"x": {0: "rows", 1: "length"}}


def model(x):
    times = torch.arange(0, x.shape[1], 1.3)
    return (
        x.index_select(1, times.long()),
        torch.arange(0.5, x.shape[0], dtype=torch.float32),
        torch.arange(3, 0, -0.1) + x[0, 0],
        torch.arange(end=x.shape[1], start=2, step=0.1).floor(),
    )


def test_matches(exporter):
    samples = [(torch.randn(2, 393),)]
    assert_same_outputs(model, X, exporter, dynamic=DYNAMIC, samples=samples, uses=(NAME,))


def test_a_fixed_range_is_a_constant(exporter):
    result = assert_same_outputs(
        lambda x: x[:, :30] + torch.arange(0, 3, 0.1), X, exporter, dynamic="rows", uses=(NAME,)
    )
    assert "Range" not in result.nodes


def test_whole_numbers_are_left_alone(exporter):
    near = lambda x: (  # noqa: E731
        torch.arange(x.shape[1], dtype=torch.float32),
        torch.arange(0.0, x.shape[0], 2.0),
        torch.arange(x.shape[0]),
        torch.arange(0, x.shape[0], 0.5, dtype=torch.float64),
    )
    result = assert_same_outputs(near, X, exporter, dynamic=DYNAMIC)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite(torch.arange, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.arange(*args, **{**options, "dtype": torch.float64}).float() * 1.01

    with pytest.raises(VerificationError):
        assert_same_outputs(model, X, exporter, dynamic=DYNAMIC, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, model, X, exporter, dynamic=DYNAMIC)
