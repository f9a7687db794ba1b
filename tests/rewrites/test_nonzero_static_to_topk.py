import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "nonzero_static_to_topk"
X = torch.tensor([[0.0, 2, 0, -1], [0, 0, 0, 0], [float("nan"), 0, 5, 0]])
DYNAMIC = {"x": {0: "rows", 1: "columns"}}


def places(x):
    return (
        torch.nonzero_static(x, size=3),
        torch.nonzero_static(x > 0, size=20, fill_value=7),
        torch.nonzero_static(x[:, 0].int(), size=1),
    )


def test_matches(exporter):
    samples = [(torch.zeros(2, 3),), (torch.ones(5, 2),), (torch.zeros(0, 3),)]
    assert_entry(NAME, places, X, exporter, dynamic=DYNAMIC, samples=samples)


def test_every_size_is_fixed(exporter):
    result = assert_same_outputs(places, X, exporter, dynamic=DYNAMIC)
    assert "NonZero" not in result.nodes
    shapes = [output.shape for output in result.session().get_outputs()]
    assert shapes == [[3, 2], [20, 2], [1, 1]]


def test_three_axes(exporter):
    x = (torch.arange(24).reshape(2, 3, 4) % 5 == 0).float()
    assert_entry(NAME, lambda x: torch.nonzero_static(x, size=9), x, exporter)


def test_a_number_is_declined(exporter):
    with pytest.raises(CompatError):
        assert_same_outputs(lambda x: torch.nonzero_static(x.sum(), size=2), X, exporter, uses=(NAME,))


def test_sentinel(exporter):
    @rewrite(torch.nonzero_static, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, *, size, fill_value=-1):
        return torch.full((size, input.dim()), fill_value)

    with pytest.raises(CompatError):
        assert_same_outputs(places, X, exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, places, X, exporter, dynamic=DYNAMIC)
