import pytest
import torch

from torch_onnx_compat import symbolic
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.recurrent import with_steps
from torch_onnx_compat.testing import assert_same_outputs

VERIFY = Verify(rtol=0.0, atol=0.0, random=False, sizes={"batch": ()})
ARGS = (torch.randn(5, 3, 2),)
OTHER = (torch.randn(6, 2, 2),)
DYNAMIC = {"x": {0: "steps", 1: "batch"}}


def model(x):
    fixed, steps = x.permute(2, 0, 1), x.shape[0] * 2
    return (
        with_steps(x, 3, None, 7.0),
        with_steps(x, 9, None, -1.0),
        with_steps(x[..., 0], steps, torch.full((), steps, dtype=torch.int64), 0.0),
        with_steps(fixed, 4, None, float("-inf")),
        with_steps(fixed, 1, None, 0.0),
        with_steps(fixed, 2, None, 0.0),
    )


def exported(exporter, **options):
    return assert_same_outputs(model, ARGS, exporter, dynamic=DYNAMIC, samples=[OTHER], verify=VERIFY, **options)


def test_eager_is_torchs():
    x = ARGS[0]
    assert torch.equal(with_steps(x, 3, None, 7.0), x[:3])
    assert torch.equal(with_steps(x, 7, None, 7.0), torch.cat((x, torch.full((2, 3, 2), 7.0))))
    torch.library.opcheck(with_steps, (x, 7, None, 1.5), test_utils=("test_schema", "test_faketensor"))


def test_matches(exporter):
    result = exported(exporter, uses=("with_steps",))
    assert "Pad" in result.nodes


def test_others_are_left_alone():
    result = assert_same_outputs(lambda x: x[:3], ARGS[:1], "torchscript")
    assert not result.applied


def test_sentinel():
    @symbolic("torch_onnx_compat::with_steps", name="with_steps", needed_on=EXPORTERS, registry=None)
    def broken(op, x, steps, varying, value):
        return op.Identity(x)

    with pytest.raises(VerificationError):
        exported("torchscript", symbolics=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match=r"namespace|torch_onnx_compat"):
        exported(exporter, exclude=["with_steps"])
