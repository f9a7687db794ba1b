"""Scalar tensors, along an axis."""

import pytest
import torch

from torch_onnx_compat.backends import scalar_tensors
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_same_outputs


def reduced(x):
    return (
        *(
            x.sum(0),
            x.mean(-1),
            x.prod(0),
            x.var(0, correction=0),
            x.std(-1, keepdim=True, correction=0),
            torch.var_mean(x, 0, correction=0),
        ),
        *(x.amax(0), x.max(0), torch.min(x, -1, keepdim=True), x.argmax(0), x.norm(dim=0), x.logsumexp(0)),
        torch.linalg.vector_norm(x, 1, dim=0),
    )


def moved(x):
    i = torch.tensor(0)
    return (
        *(x.softmax(0), torch.log_softmax(x, -1), x.sort(0), x.topk(1, 0), x.kthvalue(1, 0), x.squeeze(0)),
        *(x.gather(0, i), x.scatter(0, i, x * 2), x.index_fill(0, i, 3.0), x.index_select(0, i.reshape(1))),
    )


@pytest.mark.parametrize("function", [reduced, moved])
def test_an_axis_of_a_scalar_tensor(function, exporter):
    assert_same_outputs(function, torch.tensor(1.7), exporter)


def test_neither_exporter_has_it(monkeypatch, exporter):
    monkeypatch.setattr(scalar_tensors, "ALONG_AN_AXIS", frozenset())
    with pytest.raises(CompatError):
        assert_same_outputs(lambda x: x.amax(0), torch.tensor(1.7), exporter)


def test_other_calls_are_left_alone():
    watcher, x = scalar_tensors.ScalarTensors(), torch.tensor(1.7)
    assert not watcher.concerns(torch.max, (x, x), {})
    assert not watcher.concerns(torch.sum, (x,), {})
    assert not watcher.concerns(torch.sum, (x.reshape(1), 0), {})
