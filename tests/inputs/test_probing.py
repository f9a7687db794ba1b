"""The sizes at which a model is run beside the example's."""

import pytest
import torch
from torch import nn

from torch_onnx_compat.inputs.dynamic import with_axes
from torch_onnx_compat.inputs.inputs import bind
from torch_onnx_compat.inputs.probing import distinct_sizes


class Model(nn.Module):
    def forward(self, x, y):
        return x, y


def sizes_of(x, y, dynamic):
    inputs = with_axes(bind(Model(), (torch.rand(x), torch.rand(y)), None, None), dynamic, None, None, ())
    return [other.sizes() for other in distinct_sizes(inputs)]


BATCH = {"x": {0: "n", 2: "h"}, "y": {0: "n"}}


@pytest.mark.parametrize("n", [4, 5, 8, 15])
def test_a_batch_is_smaller_in_the_first_of_them(n):
    first, *others = sizes_of((n, 3, 32), (n, 2), BATCH)
    assert 1 < first["n"] < n
    assert first["h"] == 65
    assert others == [{"n": 2 * n + 1, "h": 65}, {"n": 2 * n, "h": 64}]


@pytest.mark.parametrize(
    ("x", "y", "dynamic"),
    [
        ((3, 3, 32), (3, 2), BATCH),  # 2 or 1 would be left
        ((112, 3, 32), (112, 2), BATCH),  # long enough for a stride
        ((8, 3, 32), (2, 8), {"x": {0: "n", 2: "h"}, "y": {1: "n"}}),  # a length elsewhere
    ],
)
def test_what_may_be_no_batch_is_longer_in_all(x, y, dynamic):
    assert all(sizes["n"] > x[0] for sizes in sizes_of(x, y, dynamic))


def test_nothing_is_tried_without_dynamic_axes():
    assert sizes_of((4, 3, 32), (4, 2), {}) == []
