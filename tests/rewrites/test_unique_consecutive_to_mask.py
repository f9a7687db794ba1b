import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "unique_consecutive_to_mask"
NEEDED_ON = ("torchscript", "dynamo")
ARGS = (torch.tensor([[2, 2, 4, 4], [4, 1, 1, 2], [4, 1, 1, 2]]),)


def many(i):
    return (
        *torch.unique_consecutive(i, return_inverse=True, return_counts=True),
        torch.unique_consecutive(i, dim=0),
        i.unique_consecutive(),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["i"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_sentinel():
    @rewrite(torch.unique_consecutive, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, **options):
        return input.reshape(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i: torch.unique_consecutive(i), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
