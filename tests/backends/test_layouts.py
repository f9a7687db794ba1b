"""How a tensor lies in memory is a number that follows from sizes, and that a TorchScript trace does not record."""

import pytest
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import UnsupportedError, VerificationError

X = torch.randn(6, 5)


def compares_a_stride(x):
    return x * 2 if x[::2].stride(0) == x.shape[1] else x - 1


def compares_an_offset(x):
    return x * 2 if x[2:].storage_offset() == x.shape[1] + 7 else x - 1


def compares_bytes(x):
    return x * 2 if x.nbytes == 16 * x.shape[1] else x - 1


def a_stride_of_a_single_column(x):
    columns = x[: x.shape[0] // 4].t().contiguous()
    return x * 2 if columns.stride(0) > 3 else x - 1


@pytest.mark.parametrize("model", [compares_a_stride, compares_an_offset])
def test_a_file_is_right_where_a_layout_is_asked_for(model):
    result = export_compat(model, (X,), dynamic={"x": {0: "rows", 1: "columns"}})
    for rows in (1, 2, 4, 6, 8, 15, 16, 17, 40):
        for columns in (1, 4, 5, 7, 10, 20, 30):
            x = torch.randn(rows, columns)
            torch.testing.assert_close(result(x)[0], model(x))


def test_a_layout_of_sizes_that_the_example_does_not_show():
    """A single row is contiguous either way, so what is asked of the example is no question about rows."""
    with pytest.raises(VerificationError, match=r"rows // 4|\(rows//4\)\) > 3"):
        export_compat(a_stride_of_a_single_column, (X,), dynamic={"x": {0: "rows", 1: "columns"}})


@pytest.mark.parametrize("model", [compares_an_offset, compares_bytes])
def test_a_trace_does_not_freeze_a_layout(model):
    with pytest.raises(
        UnsupportedError, match=r"test_layouts.py:\d+: (stride\(\)|storage_offset\(\)|nbytes) of a size"
    ):
        export_compat(model, (X,), dynamic={"x": {0: "rows", 1: "columns"}}, exporter="torchscript", control_flow=False)


def test_a_layout_that_is_the_same_at_all_sizes_is_no_decision(exporter):
    def model(x):
        return x.contiguous() * 2 if x.stride(-1) == 1 else x - 1

    result = export_compat(model, (X,), dynamic={"x": {0: "rows"}}, exporter=exporter)
    assert result.exporter == exporter
    torch.testing.assert_close(result(X[:3])[0], model(X[:3]))
