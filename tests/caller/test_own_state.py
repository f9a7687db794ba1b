"""Models that change their own buffers while they run: a file computes what the first call does."""

import pytest
import torch
from torch import nn

from torch_onnx_compat.testing import assert_same_outputs

X = torch.randn(3, 6)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return x * self.count


class MovingMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.ones(6))

    def forward(self, x):
        self.mean.mul_(0.9).add_(x.mean(0) * 0.1)
        return x - self.mean


class BindsAnew(MovingMean):
    def forward(self, x):
        self.mean = self.mean * 0.9 + x.mean(0) * 0.1
        return x - self.mean


class Queue(nn.Module):
    """A ring of the last rows, and where the next one goes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(3, 6))
        self.register_buffer("place", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.rows[1] = x.mean(0)
        self.place[0] = (self.place[0] + 1) % 3
        return x - self.rows.sum(0), self.place.clone()


@pytest.mark.parametrize("kind", [Counts, MovingMean, BindsAnew, Queue])
def test_the_file_is_the_first_call(kind, exporter):
    model = kind().eval()
    before = {name: value.clone() for name, value in model.named_buffers()}
    for _ in range(2):  # the model is as before, so the second file is the first
        assert_same_outputs(model, X, exporter, dynamic="batch")
        assert all(torch.equal(value, before[name]) for name, value in model.named_buffers())


class Holder:
    def __init__(self):
        self.count = torch.zeros(())


class Elsewhere(nn.Module):
    """Tensors that are no buffers: an attribute, in a list, in an object; and a number."""

    def __init__(self):
        super().__init__()
        self.count = torch.zeros(())
        self.counts = [torch.zeros(())]
        self.holder = Holder()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.count += 1
        self.counts[0] += 2
        self.holder.count = self.holder.count + 3
        return x * self.count, x + self.counts[0], x - self.holder.count * self.calls


def test_tensors_that_are_no_buffers():
    """torch.export asks for buffers."""
    assert_same_outputs(Elsewhere(), X, "torchscript", dynamic="batch")
