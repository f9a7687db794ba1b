import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "svd_to_rotations"
ARGS = (torch.randn(3, 2, 2),)
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return (
        torch.linalg.svd(x).S,
        torch.linalg.svd(x, full_matrices=False).Vh.abs(),
        torch.linalg.svd(x[..., :1])[0].abs(),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC, allow_approximate=True)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 3), (5, 3), (2, 4), (8, 8)])
@pytest.mark.parametrize("full", [True, False])
def test_takes_the_matrix_apart(sizes, full):
    x = torch.randn(100, *sizes)
    x[0], x[1], x[2, :, -1] = 0, 1, 0
    u, s, vh = catalogue()[NAME].body(x, full)
    wanted = torch.linalg.svd(x, full)
    assert (u.shape, vh.shape) == (wanted[0].shape, wanted[2].shape)
    torch.testing.assert_close(s, wanted[1], rtol=1e-5, atol=4e-5)
    count = s.shape[-1]
    torch.testing.assert_close((u[..., :count] * s[:, None]) @ vh[:, :count], x, rtol=1e-5, atol=4e-5)
    torch.testing.assert_close(u.mT @ u, torch.eye(u.shape[-1]).expand(100, -1, -1), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(vh @ vh.mT, torch.eye(vh.shape[-2]).expand(100, -1, -1), rtol=1e-5, atol=1e-5)


def test_declines_large_matrices():
    with pytest.raises(Declined, match="must have 1 to 8 rows"):
        catalogue()[NAME].body(torch.ones(9, 3))


def test_waits_for_leave():
    with pytest.raises(CompatError, match="allow_approximate=True admits it"):
        assert_same_outputs(many, ARGS, "torchscript")


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: x @ x, ARGS, "torchscript", allow_approximate=True)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.linalg.svd, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.return_types.linalg_svd((args[0], args[0][..., 0], args[0]))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.linalg.svd(x).S, ARGS, exporter, rewrites=[broken], allow_approximate=True)


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC, allow_approximate=True)
