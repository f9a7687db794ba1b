import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "vdot_to_sum"
ARGS = (torch.randn(4, 3),)
DYNAMIC = {"x": {0: "rows"}}


def many(x):
    return (
        torch.vdot(x[0], x[1]),
        x[:, 0].vdot(x[:, 1]),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


def test_declines_complex_vectors():
    z = torch.ones(3, dtype=torch.complex64)
    with pytest.raises(Declined, match="the vectors must be real"):
        catalogue()[NAME].body(z, z)
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(z.real, z.real, out=z.real)


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: torch.dot(x[0], x[1]), ARGS, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.vdot, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0].sum()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.vdot(x[0], x[1]), ARGS, exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
