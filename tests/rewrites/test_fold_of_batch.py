import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "fold_of_batch"

CASES = [
    ((7, 6), (3, 2), 1, 0, 1),
    ((7, 6), 2, 1, 0, 3),
    ((8, 6), 2, 1, 0, 2),
    ((7, 6), (3, 2), (2, 1), (1, 2), (2, 3)),
    ((5, 5), 1, 1, 1, 2),
    ((3, 2), (3, 2), 1, 0, 1),
]


def windows(*lead, case):
    size, *rest = case
    return F.unfold(torch.randn(*lead, *size), *rest)


class Folds(nn.Module):
    def forward(self, *xs):
        return tuple(F.fold(x, *case) for x, case in zip(xs, CASES, strict=True))


def test_matches(exporter):
    args = tuple(windows(3, case=case) for case in CASES)
    assert_same_outputs(Folds(), args, exporter, uses=(NAME,))


def test_matches_at_a_size_that_varies(exporter):
    def call(x):
        return F.fold(F.unfold(x, 3, padding=1), x.shape[1:], 3, padding=1)

    assert_same_outputs(call, (torch.randn(3, 7, 6),), exporter, dynamic={"x": {1: "height"}}, uses=(NAME,))


def test_takes_few_nodes():
    x = windows(3, case=CASES[2])
    result = assert_same_outputs(lambda x: F.fold(x, *CASES[2]), (x,), "torchscript", uses=(NAME,))
    assert "Col2Im" not in result.nodes
    assert result.nodes.total() - result.nodes["Constant"] <= 6


def test_a_batch_is_left_alone():
    x = windows(2, 3, case=CASES[0])
    result = assert_same_outputs(lambda x: F.fold(x, *CASES[0]), (x,), "dynamo", dynamic="batch")
    assert not result.applied
    assert "Col2Im" in result.nodes


def test_sentinel():
    @rewrite(F.fold, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, *args, **kwargs):
        return catalogue()[NAME].body(input.flip(0), *args, **kwargs)

    x = windows(3, case=CASES[0])
    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.fold(x, *CASES[0]), (x,), "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    x = windows(3, case=CASES[0])
    with pytest.raises(CompatError):
        assert_same_outputs(lambda x: F.fold(x, *CASES[0]), (x,), exporter, exclude=[NAME])
