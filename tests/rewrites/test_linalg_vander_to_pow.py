import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "linalg_vander_to_pow"
NEEDED_ON = ("torchscript", "dynamo")
ARGS = (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]),)


def many(x):
    return (
        torch.linalg.vander(x),
        torch.linalg.vander(x, N=4),
        torch.linalg.vander(x[0]),
    )


def test_matches(exporter):
    uses = (NAME,) if exporter in NEEDED_ON else ()
    assert_same_outputs(many, ARGS, exporter, uses=uses, dynamic={"x": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x: torch.linalg.vander(x), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: x**2, ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.linalg.vander, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[0][..., None].expand(-1, -1, 3)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.linalg.vander(x), ARGS, NEEDED_ON[0], rewrites=[broken])


@pytest.mark.parametrize("name", NEEDED_ON)
def test_still_needed(name):
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, name, exclude=[NAME])
