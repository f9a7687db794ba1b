import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "matrix_exp_to_powers"
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
        return (
            torch.matrix_exp(x),
            torch.linalg.matrix_exp(x * 4),
            x.matrix_exp(),
            torch.linalg.matrix_exp(x - 60 * torch.eye(3)),
        )


def test_matches(exporter):
    samples = [(matrices(5, 3, 3),)]
    result = assert_same_outputs(
        Model(), (matrices(2, 3, 3),), exporter, dynamic=DYNAMIC, samples=samples, uses=(NAME,), allow_approximate=True
    )
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_equals_eager(size):
    x = matrices(20, size, size).double() + torch.eye(size) / 8
    for factor in (0, 1e-6, 1, 50):
        torch.testing.assert_close(
            catalogue()[NAME].body(x * factor),
            torch.linalg.matrix_exp(x * factor),
            rtol=1e-9,
            atol=1e-12 * torch.linalg.matrix_exp(x * factor).abs().max().item(),
        )


def test_declines_unknown_sizes():
    with pytest.raises(CompatError, match="matrix_exp"):
        assert_same_outputs(
            lambda x: torch.matrix_exp(x),
            (torch.ones(3, 3),),
            "torchscript",
            dynamic={"x": {0: "size", 1: "size"}},
            allow_approximate=True,
        )


def test_needs_permission():
    with pytest.raises(CompatError, match="matrix_exp"):
        assert_same_outputs(Model(), (matrices(2, 3, 3),), "torchscript")


def test_products_are_left_alone():
    result = assert_same_outputs(lambda x: x @ x, (matrices(2, 3, 3),), "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite((torch.linalg.matrix_exp, torch.matrix_exp), name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **kwargs):
        return args[0] * 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Model(), (matrices(2, 3, 3),), exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Model(), (matrices(2, 3, 3),), exporter)
