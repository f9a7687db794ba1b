import pytest
import torch

from torch_onnx_compat import symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "arange"
X = torch.randn(3, 13)  # 10 steps of 1.3, and 11 of 1.2999999523
DYNAMIC = {"x": {0: "rows", 1: "length"}}


def model(x):
    return (
        torch.arange(0, x.shape[1], 1.3, dtype=torch.float64),
        torch.arange(x.shape[0], dtype=torch.float64),
        torch.arange(0.1, x.shape[0], dtype=torch.float64),
    )


def test_matches(exporter):
    samples = [(torch.randn(2, 26),)]
    uses = (NAME,) if exporter == "dynamo" else ()
    assert_same_outputs(model, X, exporter, dynamic=DYNAMIC, samples=samples, uses=uses)


def test_other_types_are_left_alone():
    result = assert_same_outputs(lambda x: torch.arange(x.shape[0]), X, "dynamo", dynamic=DYNAMIC)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @symbolic("aten::arange", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op, start, end=None, step=1, dtype=None):
        return op.Range(*(op.cast(bound, torch.float64) for bound in (1, end or start, step)))

    with pytest.raises(VerificationError):
        assert_same_outputs(model, X, "dynamo", dynamic=DYNAMIC, symbolics=[broken])


def test_still_needed():
    assert_still_needed(NAME, model, X, "dynamo", dynamic=DYNAMIC)
