import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "matrix_power_to_matmul"
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
        powers = tuple(torch.matrix_power(x, n) for n in (0, 1, 2, 3, 7, -1, -2))
        return (*powers, torch.linalg.matrix_power(x, n=2), x.matrix_power(2))


def test_matches(exporter):
    samples = [(matrices(5, 3, 3),)]
    result = assert_same_outputs(
        Model(), (matrices(2, 3, 3),), exporter, dynamic=DYNAMIC, samples=samples, uses=(NAME,)
    )
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_equals_eager(size):
    x = matrices(20, size, size).double() + torch.eye(size) / 8
    for n in (0, 1, 2, 5, -1, -3):
        torch.testing.assert_close(catalogue()[NAME].body(x, n), torch.linalg.matrix_power(x, n))


def test_declines_large_matrices():
    with pytest.raises(Declined, match="must have 1 to 8 rows, got 9"):
        catalogue()[NAME].body(torch.ones(9, 9), -1)


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(torch.ones(3, 3), 2, out=torch.ones(3, 3))


def test_products_are_left_alone():
    result = assert_same_outputs(lambda x: x @ x, (matrices(2, 3, 3),), "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite((torch.linalg.matrix_power, torch.matrix_power), name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **kwargs):
        return args[0] * 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Model(), (matrices(2, 3, 3),), exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Model(), (matrices(2, 3, 3),), exporter)
