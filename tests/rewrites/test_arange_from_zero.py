import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "arange_from_zero"
X = torch.randn(3, 4)
DYNAMIC = {"x": {0: "rows", 1: "columns"}}


def many(x):
    rows = x.shape[0]
    return (
        x[torch.arange(rows - 1, -1, -1)],
        x.index_select(0, torch.arange(start=-rows + rows, end=rows)),
        x[:, torch.arange(x.shape[1] - 1, -1, -2)],
        torch.arange(rows, 3 * rows + 1, 2, dtype=torch.int64),
        torch.arange(rows // 2, end=rows, step=1),
    )


def lookup(x):
    return F.embedding(torch.arange(x.shape[0] - 1, -1, -1), x)


def test_matches(exporter):
    assert_entry(NAME, many, X, exporter, dynamic=DYNAMIC)


def test_matches_lookup(exporter):
    assert_entry(NAME, lookup, X, exporter, dynamic=DYNAMIC)


def test_near_misses_are_left_alone(exporter):
    model = lambda x: (torch.arange(x.shape[0]), torch.arange(1, x.shape[0]), torch.arange(5, 0, -1) + x.shape[0])  # noqa: E731
    result = assert_same_outputs(model, X, exporter, dynamic=DYNAMIC)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite(torch.arange, name=NAME, needed_on=("torchscript", "dynamo"), registry=None)
    def broken(start, end, step):
        return torch.arange(0, start - end, -step)

    with pytest.raises(VerificationError):
        assert_same_outputs(lookup, X, exporter, dynamic=DYNAMIC, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, lookup, X, exporter, dynamic=DYNAMIC)
