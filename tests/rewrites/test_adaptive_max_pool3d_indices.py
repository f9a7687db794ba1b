import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.functional.adaptive_max_pool import adaptive_max_pool_with_indices, outputs_of
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "adaptive_max_pool3d_indices"
TIES = torch.randint(-2, 2, (2, 2, 5, 7, 4)).float()
DYNAMIC = {"x": {0: "batch", 2: "depth", 3: "height"}}
OUTPUTS = ((2, 3, 3), (None, 4, 1), (9, 7, 2), 1)


def pools(x):
    results = [F.adaptive_max_pool3d(x, output, True) for output in OUTPUTS] + [
        F.adaptive_max_pool3d(x[0], (2, 3, 3), return_indices=True)
    ]
    return tuple(tensor for pair in results for tensor in pair)


def test_matches(exporter):
    assert_same_outputs(pools, (TIES,), exporter, dynamic="batch", uses=(NAME,))


def test_matches_at_dynamic_sizes(exporter):
    one = OUTPUTS[0]
    call = F.adaptive_max_pool3d
    assert_same_outputs(lambda x: call(x, one, True), (TIES,), exporter, dynamic=DYNAMIC, uses=(NAME,))


@given(sizes=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 9)), min_size=3, max_size=3), seed=st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_equals_eager(sizes, seed):
    torch.manual_seed(seed)
    x = torch.randint(-3, 3, (2, 3, *(size for size, _ in sizes))).float()
    output = [output for _, output in sizes]
    for found, wanted in zip(
        adaptive_max_pool_with_indices(x, output), F.adaptive_max_pool3d(x, output, True), strict=True
    ):
        assert torch.equal(found, wanted)


def test_takes_eight_nodes(exporter):
    result = assert_same_outputs(
        lambda x: F.adaptive_max_pool3d(x, (2, 3, 3), True), (TIES,), exporter, dynamic="batch", uses=(NAME,)
    )
    assert result.nodes.total() - result.nodes["Constant"] == 8
    assert result.nodes["ArgMax"] == 1


def test_declines_what_stock_exports_right(exporter):
    x = torch.randn(2, 2, 4, 6, 8)
    result = assert_same_outputs(lambda x: F.adaptive_max_pool3d(x, (2, 3, 4), True), (x,), exporter, dynamic="batch")
    assert [note.reason for note in result.declined] == ["the output divides the input, which torch exports right"]


def test_sentinel():
    @rewrite(F.adaptive_max_pool3d_with_indices, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, output_size, return_indices=False):
        values, indices = adaptive_max_pool_with_indices(input, outputs_of(output_size, 3))
        return values, indices + 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x: F.adaptive_max_pool3d(x, (2, 3, 3), True), (TIES,), "torchscript", rewrites=[broken]
        )


def test_still_needed(exporter):
    assert_still_needed(NAME, lambda x: F.adaptive_max_pool3d(x, (2, 3, 3), True), (TIES,), exporter)
