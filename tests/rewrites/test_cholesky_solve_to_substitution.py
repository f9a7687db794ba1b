import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "cholesky_solve_to_substitution"
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
        return torch.cholesky_solve(x, x.tril() + 3 * torch.eye(3)), torch.cholesky_solve(
            x[0], x + 3 * torch.eye(3), upper=True
        )


def test_matches(exporter):
    samples = [(matrices(5, 3, 3),)]
    result = assert_same_outputs(
        Model(), (matrices(2, 3, 3),), exporter, dynamic=DYNAMIC, samples=samples, uses=(NAME,)
    )
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_equals_eager(size):
    x = matrices(20, size, size).double() + torch.eye(size) / 8
    f = x.tril() + torch.eye(size)
    torch.testing.assert_close(catalogue()[NAME].body(x, f), torch.cholesky_solve(x, f))
    torch.testing.assert_close(catalogue()[NAME].body(x, f.mT, True), torch.cholesky_solve(x, f.mT, True))


@pytest.mark.parametrize(("size", "reason"), [(9, "must have 1 to 8 rows, got 9"), (0, "got 0")])
def test_declines_large_matrices(size, reason):
    x = torch.ones(2, size, size)
    with pytest.raises(Declined, match=reason):
        catalogue()[NAME].body(x, x)


def test_declines_out():
    x = torch.ones(2, 3, 3)
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(x, x, out=x)


def test_products_are_left_alone():
    result = assert_same_outputs(lambda x: x @ x, (matrices(2, 3, 3),), "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite(torch.cholesky_solve, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **kwargs):
        return args[0] * 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Model(), (matrices(2, 3, 3),), exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Model(), (matrices(2, 3, 3),), exporter)
