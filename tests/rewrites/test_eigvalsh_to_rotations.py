import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "eigvalsh_to_rotations"
ARGS = (torch.randn(3, 2, 2),)
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return (
        torch.linalg.eigvalsh(x),
        torch.linalg.eigvalsh(x, "U"),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC, allow_approximate=True)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("size", [1, 3, 8])
def test_equals_eager(size):
    x = torch.randn(100, size, size)
    torch.testing.assert_close(catalogue()[NAME].body(x), torch.linalg.eigvalsh(x), rtol=1e-5, atol=4e-5)


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
    @rewrite(torch.linalg.eigvalsh, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0][..., 0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x: torch.linalg.eigvalsh(x), ARGS, exporter, rewrites=[broken], allow_approximate=True
        )


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC, allow_approximate=True)
