import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "lstsq_to_qr"
DYNAMIC = {"x": {0: "batch"}}


def matrices(batch, *sizes):
    """Random ones, far from singular, with zeros where elimination begins."""
    m = torch.randn(batch, *sizes) / 4
    for i in range(min(sizes)):
        m[:, i, sizes[1] - 1 - i] += 2
    m[:, 0, 0] = 0
    return m


class Model(torch.nn.Module):
    def forward(self, x):
        b = x[:, :, 1:] ** 2
        return torch.linalg.lstsq(x, b).solution, torch.linalg.lstsq(x, b, driver="gels")[0]


def test_matches(exporter):
    samples = [(matrices(5, 5, 3),)]
    result = assert_same_outputs(
        Model(), (matrices(2, 5, 3),), exporter, dynamic=DYNAMIC, samples=samples, uses=(NAME,)
    )
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_equals_eager(size):
    x = matrices(20, size, size).double() + torch.eye(size) / 8
    for m in (x, x[:, :, : size // 2 + 1]):
        torch.testing.assert_close(catalogue()[NAME].body(m, x)[0], torch.linalg.lstsq(m, x)[0])


def test_declines_wide_matrices_and_rcond():
    x = torch.ones(2, 2, 3)
    with pytest.raises(Declined, match="as many rows as columns at least, got 2 x 3"):
        catalogue()[NAME].body(x, x)
    with pytest.raises(Declined, match="rcond must be None"):
        catalogue()[NAME].body(x, x, 0.5)


def test_declines_large_matrices():
    x = torch.ones(2, 9, 3)
    with pytest.raises(Declined, match="must have 1 to 8 rows, got 9"):
        catalogue()[NAME].body(x, x)


def test_products_are_left_alone():
    result = assert_same_outputs(lambda x: x @ x, (matrices(2, 3, 3),), "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite(torch.linalg.lstsq, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **kwargs):
        return torch.return_types.linalg_lstsq((args[1][:, :3] * 1, args[1], args[1], args[1]))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Model(), (matrices(2, 5, 3),), exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Model(), (matrices(2, 5, 3),), exporter)
