import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "adaptive_avg_pool1d_to_matmul"
DYNAMIC = {"x": {0: "batch", 2: "length"}}


class Pools(nn.Module):
    def __init__(self, *outputs):
        super().__init__()
        self.outputs = outputs

    def forward(self, x):
        return tuple(F.adaptive_avg_pool1d(x, output) for output in self.outputs)


class ManyLengths(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool1d(3)

    def forward(self, x):
        inputs = [(x, 3), (x, 11), (x, 5), (x[0], 8), (x[0], 3), (x[0], 1), (x[:, :, :1], 4), (x.double(), 4)]
        return self.pool(x), *(F.adaptive_avg_pool1d(one, output) for one, output in inputs)


def test_matches(exporter):
    assert_same_outputs(ManyLengths(), torch.rand(2, 3, 8), exporter, dynamic="batch", uses=(NAME,))


def test_matches_at_dynamic_length(exporter):
    model = Pools(4, 3, 11)
    result = assert_same_outputs(model, torch.rand(2, 3, 8), exporter, dynamic=DYNAMIC, uses=(NAME,))
    session = result.session()
    for length in range(1, 25):
        x = torch.rand(2, 3, length)
        for found, wanted in zip(session.run(None, {"x": x.numpy()}), model(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=1e-5, atol=1e-6)


def test_takes_one_node(exporter):
    result = assert_same_outputs(Pools(3), torch.rand(2, 3, 8), exporter, dynamic="batch", uses=(NAME,))
    assert set(result.nodes) - {"Constant"} == {"MatMul"}


@pytest.mark.parametrize(
    ("output", "dynamic", "reason"),
    [
        (1, DYNAMIC, "a single cell is a mean, which torch exports for every size"),
        (4, "batch", "the output divides the input, which torch exports as AveragePool"),
    ],
    ids=["one cell", "divides"],
)
def test_declines_what_stock_exports_right(exporter, output, dynamic, reason):
    result = assert_same_outputs(Pools(output), torch.rand(2, 3, 8), exporter, dynamic=dynamic)
    assert not result.applied
    assert [note.reason for note in result.declined] == [reason]


def test_sentinel(exporter):
    @rewrite(F.adaptive_avg_pool1d, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, output_size):
        return F.interpolate(input, output_size, mode="linear")

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Pools(3), torch.rand(2, 3, 8), exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Pools(4), torch.rand(2, 3, 8), exporter, dynamic=DYNAMIC)
