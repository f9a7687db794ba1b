import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "cdist_to_norm"
NEEDED_ON = ("torchscript", "dynamo")
ARGS = (torch.tensor([[[1.5, -2.0, 0.0], [1.5, 1.0, 2.0]], [[0.5, 4.0, -1.0], [3.0, 3.0, 3.5]]]),)


def many(x):
    return (
        *(torch.cdist(x, x[:, :1] + 0.5, p=p) for p in (0.0, 1.0, 2.0, 3.5, float("inf"))),
        torch.cdist(x[0], x[1]),
        torch.cdist(x, x),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["x"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_sentinel():
    @rewrite(torch.cdist, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(x1, x2, p=2.0, compute_mode=""):
        return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).sum(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.cdist(x, x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
