import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "softshrink_to_sub"
NEEDED_ON = ("torchscript",)
ARGS = (torch.tensor([[0.5, -2.0, float("nan"), -0.5], [float("inf"), 0.0, -0.3, -float("inf")]]),)


def many(x):
    return (
        F.softshrink(x),
        F.softshrink(x, 0.2),
        F.softshrink(x.double()),
    )


def test_matches(exporter):
    uses = (NAME,) if exporter in NEEDED_ON else ()
    assert_same_outputs(many, ARGS, exporter, uses=uses, dynamic={"x": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x: F.softshrink(x), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: F.relu(x), ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(F.softshrink, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.softshrink(x), ARGS, NEEDED_ON[0], rewrites=[broken])


@pytest.mark.parametrize("name", NEEDED_ON)
def test_still_needed(name):
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, name, exclude=[NAME])
