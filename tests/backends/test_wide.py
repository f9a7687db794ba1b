"""The mode that keeps numbers in float64."""

import torch
from torch.nn import functional as F

from torch_onnx_compat.backends import wide


def test_it_may_be_entered_again_while_it_is_active():
    """torch's Python functions, softmax for one, hand their call to every mode, which is entered once more for it."""
    x = torch.rand(3)
    with wide.wide_numbers(wide.Numbers):
        assert torch.equal(F.softmax(x, 0), x.softmax(0))
        with wide.wide_sizes():
            assert torch.equal(F.relu(x), x)
    assert not wide._in_force.get()
