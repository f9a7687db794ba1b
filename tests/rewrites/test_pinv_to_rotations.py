import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "pinv_to_rotations"
ARGS = (torch.randn(3, 2, 2),)
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return (
        torch.linalg.pinv(x),
        torch.linalg.pinv(x[:, :1], rtol=1e-3),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC, allow_approximate=True)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 3), (20, 3), (2, 30)])
def test_equals_eager(sizes):
    x = torch.randn(100, *sizes, dtype=torch.float64)
    x[0], x[1], x[2, :, -1] = 0, 1, 0
    for options in ({}, {"rtol": 0.3}, {"atol": 0.5}, {"atol": 0.5, "rtol": 0.1}):
        wanted = torch.linalg.pinv(x, **options)
        torch.testing.assert_close(catalogue()[NAME].body(x, **options), wanted, rtol=1e-6, atol=1e-6)


def test_declines_tolerances_that_are_tensors():
    with pytest.raises(Declined, match="the tolerances numbers"):
        catalogue()[NAME].body(ARGS[0], rtol=ARGS[0])


def test_declines_large_matrices():
    with pytest.raises(Declined, match="must have 1 to 8 rows"):
        catalogue()[NAME].body(torch.ones(9, 9))


def test_waits_for_leave():
    with pytest.raises(CompatError, match="allow_approximate=True admits it"):
        assert_same_outputs(many, ARGS, "torchscript")


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: x @ x, ARGS, "torchscript", allow_approximate=True)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.linalg.pinv, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0].mT * 2

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.linalg.pinv(x), ARGS, exporter, rewrites=[broken], allow_approximate=True)


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC, allow_approximate=True)
