import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "eigh_to_rotations"
ARGS = (torch.randn(3, 2, 2),)
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return (
        torch.linalg.eigh(x).eigenvalues,
        torch.linalg.eigh(x, UPLO="U")[1].abs(),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC, allow_approximate=True)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("size", [1, 3, 8])
def test_takes_the_matrix_apart(size):
    x = torch.randn(100, size, size)
    values, vectors = catalogue()[NAME].body(x, "U")
    symmetric = x.triu() + x.triu(1).mT
    torch.testing.assert_close(vectors @ torch.diag_embed(values) @ vectors.mT, symmetric, rtol=1e-5, atol=4e-5)
    torch.testing.assert_close(values, torch.linalg.eigvalsh(symmetric), rtol=1e-5, atol=4e-5)


def test_largest_elements_are_positive():
    vectors = catalogue()[NAME].body(torch.randn(100, 3, 3)).eigenvectors
    assert (vectors.amax(-2) >= -vectors.amin(-2)).all()


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
    @rewrite(torch.linalg.eigh, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.return_types.linalg_eigh((args[0][..., 0], args[0]))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x: torch.linalg.eigh(x).eigenvalues, ARGS, exporter, rewrites=[broken], allow_approximate=True
        )


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC, allow_approximate=True)
