import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "solve_to_elimination"
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
        b = x[..., :2] + 1
        return (
            torch.linalg.solve(x, b),
            torch.linalg.solve(x, b[..., 0]),
            torch.linalg.solve(x, b.transpose(1, 2), left=False),
            torch.linalg.solve(x, b[0]),
            torch.linalg.solve(x[0], b),
            torch.linalg.solve(x[0], b[0, :, 1]),
            torch.linalg.solve(x, b[0, :, 1]),
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
    b = torch.randn(20, size, 2, dtype=x.dtype)
    torch.testing.assert_close(catalogue()[NAME].body(x, b), torch.linalg.solve(x, b))
    torch.testing.assert_close(catalogue()[NAME].body(x, b[..., 0]), torch.linalg.solve(x, b[..., 0]))
    torch.testing.assert_close(catalogue()[NAME].body(x, b.mT, left=False), torch.linalg.solve(x, b.mT, left=False))
    torch.testing.assert_close(catalogue()[NAME].body(x[0], b), torch.linalg.solve(x[0], b))


@pytest.mark.parametrize("left", [True, False])
def test_complex_systems(exporter, left):
    def model(x):
        z = torch.complex(x.sin() / 4 + 2 * torch.eye(3), x.flip(-1).sin() / 4)
        return torch.view_as_real(torch.linalg.solve(z, z + 1, left=left).resolve_conj()), torch.linalg.inv(z).imag

    assert_same_outputs(model, (matrices(2, 3, 3),), exporter, dynamic=DYNAMIC, uses=(NAME, "inv_to_elimination"))


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
    @rewrite(torch.linalg.solve, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **kwargs):
        return args[0] * 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Model(), (matrices(2, 3, 3),), exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Model(), (matrices(2, 3, 3),), exporter)
