import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "matrix_norm_to_rotations"
ARGS = (torch.randn(3, 2, 2),)
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return (
        torch.linalg.matrix_norm(x, "nuc"),
        torch.linalg.norm(x, 2, (1, 2), True),
        torch.linalg.matrix_norm(x, -2, (1, 2)),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC, allow_approximate=True)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


def test_equals_eager():
    x = torch.randn(4, 3, 5, 6)
    for order in ("nuc", 2, -2):
        for dim in ((-2, -1), (1, 3), (2, 0)):
            for keepdim in (False, True):
                wanted = torch.linalg.matrix_norm(x, order, dim, keepdim)
                torch.testing.assert_close(catalogue()[NAME].body(x, order, dim, keepdim), wanted, rtol=1e-5, atol=4e-5)
    assert catalogue()[NAME].body(x, 2, 1) is NotImplemented


def test_declines_large_matrices():
    with pytest.raises(Declined, match="must have 1 to 8 rows"):
        catalogue()[NAME].body(torch.ones(9, 9), 2)


def test_waits_for_leave():
    with pytest.raises(CompatError, match="allow_approximate=True admits it"):
        assert_same_outputs(many, ARGS, "torchscript")


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: x @ x, ARGS, "torchscript", allow_approximate=True)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.linalg.matrix_norm, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0][..., 0, 0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x: torch.linalg.matrix_norm(x, "nuc"), ARGS, exporter, rewrites=[broken], allow_approximate=True
        )


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC, allow_approximate=True)
