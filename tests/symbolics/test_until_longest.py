import pytest
import torch

from torch_onnx_compat import symbolic
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.recurrent import until_longest
from torch_onnx_compat.testing import assert_same_outputs

VERIFY = Verify(rtol=0.0, atol=0.0, random=False, sizes={"batch": ()})
ARGS = torch.randn(5, 3, 2), torch.tensor([2, 4, 1])
OTHER = torch.randn(5, 2, 2), torch.tensor([5, 3])
DYNAMIC = {"x": {1: "batch"}, "lengths": {0: "batch"}}


def model(x, lengths):
    return until_longest(x, lengths), until_longest(x[..., 0], lengths) * 2, until_longest(x.long(), lengths)


def exported(exporter, **options):
    return assert_same_outputs(model, ARGS, exporter, dynamic=DYNAMIC, samples=[OTHER], verify=VERIFY, **options)


def test_eager_is_torchs():
    x, lengths = ARGS
    assert torch.equal(until_longest(x, lengths), x[:4])
    torch.library.opcheck(until_longest, ARGS, test_utils=("test_schema",))


def test_matches(exporter):
    result = exported(exporter, uses=("until_longest",))
    assert "Slice" in result.nodes


def test_others_are_left_alone():
    result = assert_same_outputs(lambda x: x[:3], ARGS[:1], "torchscript")
    assert not result.applied


def test_sentinel():
    @symbolic("torch_onnx_compat::until_longest", name="until_longest", needed_on=EXPORTERS, registry=None)
    def broken(op, x, lengths):
        return op.Identity(x)

    with pytest.raises(VerificationError):
        exported("torchscript", symbolics=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match=r"namespace|torch_onnx_compat"):
        exported(exporter, exclude=["until_longest"])
