import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "diag_to_where"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return torch.diag(x), x.diag(1), torch.diag(x[:, 0]), torch.diag(x[0], -2), torch.diag(x[:, 1], 1)


def test_matches(exporter):
    assert_entry(NAME, many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_applied():
    result = assert_same_outputs(lambda x: torch.diag(x[0]), EXAMPLE, "torchscript", uses=(NAME,))
    assert {"Where"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x: x.diagonal(1), EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for x, k in [(torch.randn(*shape), k) for shape in ((3,), (1,), (0,), (2, 3)) for k in (0, 1, -1, 2)]:
        assert torch.equal(body(x, k), torch.diag(x, k))


def test_sentinel():
    @rewrite(torch.diag, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, diagonal=0):
        return input.unsqueeze(-1) * torch.ones(4)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.diag(x[0]), EXAMPLE, "torchscript", rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: torch.diag(x[0]), EXAMPLE, "torchscript", dynamic=DYNAMIC, samples=SAMPLES, exclude=[NAME]
        )
