import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "rrelu_to_leaky_relu"
NEEDED_ON = ("dynamo",)
ARGS = (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]),)


def many(x):
    return (
        F.rrelu(x),
        F.rrelu(x, 0.2, 0.6),
        torch.nn.RReLU().eval()(x),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x: F.rrelu(x), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: F.leaky_relu(x), ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.rrelu, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.rrelu(x), ARGS, NEEDED_ON[0], rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)


def test_declines_training():
    with pytest.raises(CompatError, match="random numbers differ from run to run; export in eval mode"):
        assert_same_outputs(lambda x: F.rrelu(x, training=True), ARGS, "dynamo")
