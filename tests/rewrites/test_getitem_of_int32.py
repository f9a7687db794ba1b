import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "getitem_of_int32"
EXAMPLE = (torch.randn(4, 5), torch.tensor([2, -1, 0], dtype=torch.int32))
SAMPLES = [(torch.randn(7, 5), torch.tensor([-3, 1], dtype=torch.int32))]
DYNAMIC = {"x": {0: "rows"}, "i": {0: "places"}}


def many(x, i):
    wide = i.long()
    return x[i], x[:, i], x[i, i], x[i, :2], x[None, i], x[..., i], x[i[:, None]], x[i, wide], x[:, None, i]


def test_matches(exporter):
    uses = (NAME,) if exporter == "dynamo" else ()
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=uses)


def test_applied():
    result = assert_same_outputs(lambda x, i: x[i], EXAMPLE, "dynamo", uses=(NAME,))
    assert result.nodes["Cast"] == 1


def test_other_keys_are_left_alone():
    def model(x, i):
        return x[i.long()], x[1], x[:, 1:], x[..., None], x[x > 0]

    result = assert_same_outputs(model, EXAMPLE, "dynamo")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel():
    @rewrite(torch.Tensor.__getitem__, name=NAME, needed_on=("dynamo",), registry=None)
    def broken(self, key):
        return self[key.to(torch.int64) - 1]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: x[i], EXAMPLE, "dynamo", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="does not load the file"):
        assert_same_outputs(lambda x, i: x[i], EXAMPLE, "dynamo", exclude=[NAME])
