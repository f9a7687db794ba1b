import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "bitwise_not_to_sub"
NEEDED_ON = ("torchscript",)
ARGS = (
    torch.tensor([[2, -3, 4], [99, -(2**62) - 5, 2**62 + 9]]),
    torch.tensor([[7, -6, 1], [-(2**63), 1, 2**62 + 12]]),
)


def many(i, j):
    return (
        torch.bitwise_not(i),
        ~i,
        ~i.int(),
        ~i.clamp(0, 99).byte(),
        ~(i > 0),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["i", "j"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_sentinel():
    @rewrite(torch.bitwise_not, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return -args[0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, j: torch.bitwise_not(i), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
