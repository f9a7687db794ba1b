import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.functional.adaptive_max_pool import adaptive_max_pool, outputs_of
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "adaptive_max_pool1d_to_take"
ROWS = torch.randn(2, 3, 11)
DYNAMIC = {"x": {0: "batch", 2: "length"}}
OUTPUTS = (3, 4, 20, 1)


def pools(x):
    return (*(F.adaptive_max_pool1d(x, output) for output in OUTPUTS), F.adaptive_max_pool1d(x[0], 3))


def test_matches(exporter):
    assert_same_outputs(pools, (ROWS,), exporter, dynamic="batch", uses=(NAME,))


def test_matches_at_dynamic_sizes(exporter):
    assert_same_outputs(pools, (ROWS,), exporter, dynamic=DYNAMIC, uses=(NAME,))


def test_infinities_are_kept():
    minus = torch.full((2, 3, 11), -torch.inf)
    assert_same_outputs(lambda x: F.adaptive_max_pool1d(x, 3), (minus,), "torchscript", uses=(NAME,))


@given(
    sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 12)), min_size=1, max_size=1), seed=st.integers(0, 99)
)
@settings(max_examples=100, deadline=None)
def test_equals_eager(sizes, seed):
    torch.manual_seed(seed)
    x = torch.randint(-3, 3, (2, 3, *(size for size, _ in sizes))).float()
    output = [output for _, output in sizes]
    assert torch.equal(adaptive_max_pool(x, output), F.adaptive_max_pool1d(x, output))


def test_takes_two_nodes_an_axis(exporter):
    result = assert_same_outputs(
        lambda x: F.adaptive_max_pool1d(x, 3), (ROWS,), exporter, dynamic="batch", uses=(NAME,)
    )
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == {"Gather": 1, "ReduceMax": 1}


def test_declines_what_stock_exports_right(exporter):
    x = torch.randn(2, 3, 8)
    result = assert_same_outputs(lambda x: F.adaptive_max_pool1d(x, 4), (x,), exporter, dynamic="batch")
    assert [note.reason for note in result.declined] == ["the output divides the input, which torch exports as MaxPool"]
    assert "MaxPool" in result.nodes


def test_sentinel():
    @rewrite(F.adaptive_max_pool1d, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, output_size, return_indices=False):
        return adaptive_max_pool(input.flip(-1), outputs_of(output_size, 1))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.adaptive_max_pool1d(x, 3), (ROWS,), "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, lambda x: F.adaptive_max_pool1d(x, 3), (ROWS,), exporter)
