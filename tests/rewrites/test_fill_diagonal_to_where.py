import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "fill_diagonal_to_where"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    y, z, tall = x.clone(), x.t().clone(), x[0].reshape(4, 1).repeat(2, 2)
    y.fill_diagonal_(9.0)
    z.fill_diagonal_(-1)
    tall.fill_diagonal_(5.0, wrap=True)
    return y, z, tall, (x * 9).long().fill_diagonal_(7)


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied():
    result = assert_same_outputs(lambda x: x.clone().fill_diagonal_(9.0), EXAMPLE, "torchscript", uses=(NAME,))
    assert {"Where"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x: x.masked_fill(x > 0, 9.0), EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for shape in ((3, 3), (2, 5), (5, 2), (7, 2), (7, 3), (1, 1), (9, 1)):
        for wrap in (False, True):
            x = torch.randn(shape)
            assert torch.equal(body(x.clone(), 4.0, wrap), x.clone().fill_diagonal_(4.0, wrap))


def test_declines_volumes():
    with pytest.raises(CompatError, match=r"two axes|not supported"):
        assert_same_outputs(lambda x: x.repeat(4, 1, 1).fill_diagonal_(1.0), (torch.randn(4, 4),), "torchscript")


def test_declines_wrapping_of_dynamic_sizes():
    with pytest.raises(CompatError, match=r"fixed sizes|not supported"):
        assert_same_outputs(lambda x: x.clone().fill_diagonal_(1.0, wrap=True), EXAMPLE, "torchscript", dynamic=DYNAMIC)


def test_sentinel():
    @rewrite(torch.Tensor.fill_diagonal_, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(self, fill_value, wrap=False):
        return self.fill_(fill_value)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x.clone().fill_diagonal_(9.0), EXAMPLE, "torchscript", rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: x.clone().fill_diagonal_(9.0),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="was captured for sizes up to"):
        assert_same_outputs(lambda x: x.clone().fill_diagonal_(9.0), EXAMPLE, "dynamo", dynamic=DYNAMIC, exclude=[NAME])
