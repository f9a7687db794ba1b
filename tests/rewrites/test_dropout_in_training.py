import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "dropout_in_training"
REASON = "export in eval mode, or multiply by a mask that is an input"
X = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.1, -0.3]])


def test_declines(exporter):
    with pytest.raises(CompatError, match=REASON):
        assert_same_outputs(lambda x: F.dropout(x, 0.5, training=True), X, exporter)


def test_near_misses_are_left_alone(exporter):
    result = assert_same_outputs(
        lambda x: F.dropout(x, 0.5, training=False) + F.dropout(x, 0.0, training=True), X, exporter
    )
    assert not result.declined


def test_still_needed():
    with pytest.raises(CompatError) as caught:
        assert_same_outputs(lambda x: F.dropout(x, 0.5, training=True), X, "torchscript", exclude=[NAME])
    assert REASON not in str(caught.value)


@pytest.mark.parametrize("drop", [F.alpha_dropout, F.feature_alpha_dropout, F.dropout1d])
def test_every_kind_declines(drop):
    with pytest.raises(CompatError, match=REASON):
        assert_same_outputs(lambda x: drop(x, 0.5, training=True), X, "torchscript")
