"""Which sizes in a trace values decide."""

from functools import lru_cache

import pytest
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends.backend import FrozenDecision
from torch_onnx_compat.testing import assert_same_outputs

X = torch.randn(2, 3, 8)


@lru_cache
def halves(size):
    """As einops keeps what it made of a pattern and sizes."""
    return 2, size // 2


def by_size(x):
    rows = x.repeat_interleave(x.shape[2] // 4, 0)
    first, second = halves(rows.shape[1] * 2)
    return rows.reshape(-1, first, second, 4)


def by_values(x):
    rows = x.repeat_interleave((x[:, 0, 0] > 0).long() + 1, 0)
    first, second = halves(rows.shape[0] * 2)
    return rows.reshape(first, second, -1)


def test_repeats_that_follow_from_a_size_are_no_values(exporter):
    assert_same_outputs(by_size, X, exporter, dynamic="batch")


def test_repeats_that_follow_from_values_are():
    with pytest.raises(FrozenDecision, match="a key of the values of the inputs"):
        export_compat(by_values, (X,), exporter="torchscript", verify=False, control_flow=False)
