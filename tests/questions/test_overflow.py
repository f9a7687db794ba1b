"""Whole numbers of sizes that leave int64: Python's have no end, a file's do."""

import onnxruntime
import pytest
import torch
from torch import nn
from torch.torch_version import TorchVersion

from torch_onnx_compat import CompatError, export_compat

NUMBERS = {
    "power of two": lambda n: 2**n % 7,
    "power of three": lambda n: 3**n % 7,
    "high degree": lambda n: n**12 % 7,
    "shift": lambda n: (n << n) % 7,
}


class Times(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x):
        return x * self.number(x.shape[0])


@pytest.fixture(autouse=True)
def _skip_shifts_that_torch_refuses(request, exporter):
    if exporter == "dynamo" and "shift" in request.node.name and TorchVersion(torch.__version__) < (2, 9):
        pytest.skip("torch.export before torch 2.9 has no shift of sizes")


@pytest.mark.parametrize("name", NUMBERS)
def test_a_size_past_int64_is_tried(name, exporter):
    with pytest.raises(CompatError, match="past int64"):
        export_compat(Times(NUMBERS[name]), torch.randn(9, 2), dynamic={"x": {0: "n"}}, exporter=exporter)


@pytest.mark.parametrize("name", NUMBERS)
def test_sizes_within_int64_are_right(name, exporter):
    model = Times(NUMBERS[name])
    result = export_compat(model, torch.randn(9, 2), dynamic={"x": {0: ("n", 1, 30)}}, exporter=exporter)
    session = onnxruntime.InferenceSession(result.model_bytes)
    for size in (1, 2, 9, 17, 30):
        x = torch.randn(size, 2)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x))


def test_squares_and_areas_are_no_matter(exporter):
    def area(x):
        return x * (x.shape[0] ** 2 * x.shape[1] % 5)

    model = nn.Module()
    model.forward = area
    result = export_compat(model, torch.randn(3, 4), dynamic={"x": {0: "m", 1: "n"}}, exporter=exporter)
    assert all(axis.proven for axis in result.axes)
