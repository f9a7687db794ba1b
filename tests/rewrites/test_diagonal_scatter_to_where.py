import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "diagonal_scatter_to_where"
EXAMPLE = (torch.randn(2, 4, 6), torch.randn(2, 4))
SAMPLES = [(torch.randn(5, 4, 6), torch.randn(5, 4))]
DYNAMIC = {"x": {0: "batch"}, "v": {0: "batch"}}


def many(x, v):
    below = torch.diagonal_scatter(x, v[:, :3], -1, 1, 2)
    return torch.diagonal_scatter(x, v, 1, 1, 2), below, torch.diagonal_scatter(x, v, 1, -2, -1)


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied():
    result = assert_same_outputs(
        lambda x, v: torch.diagonal_scatter(x, v, 1, 1, 2), EXAMPLE, "torchscript", uses=(NAME,)
    )
    assert {"Where"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x, v: x.diagonal(1, 1, 2) + v, EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    x = torch.randn(3, 4, 5)
    for dims in ((0, 1), (1, 2), (2, 0), (-1, 1)):
        for offset in (-3, -2, -1, 0, 1, 2):
            src = torch.randn_like(x.diagonal(offset, *dims))
            if src.numel():
                assert torch.equal(body(x, src, offset, *dims), torch.diagonal_scatter(x, src, offset, *dims))


def test_sentinel():
    @rewrite(torch.diagonal_scatter, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, src, offset=0, dim1=0, dim2=1):
        return input + src.unsqueeze(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, v: torch.diagonal_scatter(x, v, 1, 1, 2), EXAMPLE, "torchscript", rewrites=[broken]
        )


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x, v: torch.diagonal_scatter(x, v, 1, 1, 2),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="entirely functional graph"):
        assert_same_outputs(
            lambda x, v: torch.diagonal_scatter(x, v, 1, 1, 2), EXAMPLE, "dynamo", dynamic=DYNAMIC, exclude=[NAME]
        )
