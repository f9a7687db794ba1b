import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "cartesian_prod_to_meshgrid"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    three = torch.arange(3.0)
    single = torch.cartesian_prod(x[0])
    return torch.cartesian_prod(x[:, 0], three), torch.cartesian_prod(x[0], x[1], three), single


def test_matches(exporter):
    assert_entry(NAME, many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_applied():
    result = assert_same_outputs(lambda x: torch.cartesian_prod(x[0], x[1]), EXAMPLE, "torchscript", uses=(NAME,))
    assert {"Concat"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(
        lambda x: torch.stack(torch.meshgrid(x[0], x[1], indexing="ij")), EXAMPLE, "torchscript"
    )
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for vectors in (
        [torch.arange(3), torch.arange(2)],
        [torch.arange(3)] * 3,
        [torch.ones(0), torch.ones(2)],
        [torch.ones(2)],
    ):
        assert torch.equal(body(*vectors), torch.cartesian_prod(*vectors))


def test_sentinel():
    @rewrite(torch.cartesian_prod, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*tensors):
        grids = torch.meshgrid(*tensors, indexing="xy")
        return torch.stack([grid.reshape(-1) for grid in grids], 1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.cartesian_prod(x[0], x[1]), EXAMPLE, "torchscript", rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: torch.cartesian_prod(x[0], x[1]),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
