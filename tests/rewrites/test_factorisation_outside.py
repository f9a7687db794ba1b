import pytest
import torch

from torch_onnx_compat import CompatError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "factorisation_outside"
X = torch.randn(2, 3, 3)


def model(x):
    return torch.linalg.lu_factor(x)[0], torch.linalg.matrix_rank(x)


def test_says_what_to_do(exporter):
    with pytest.raises(CompatError, match=f"{NAME} declined: ONNX has no operator for this factorisation; solve"):
        assert_same_outputs(model, X, exporter)


def test_solutions_are_left_alone():
    result = assert_same_outputs(lambda x: x @ x, X, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_still_needed(exporter):
    assert_still_needed(NAME, model, X, exporter)
