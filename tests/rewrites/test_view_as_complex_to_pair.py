import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.testing import assert_same_outputs

NAME = "view_as_complex_to_pair"
X = torch.randn(2, 3, 4, 2)
DYNAMIC = {"x": {0: "batch", 1: "length"}}


class Rotary(nn.Module):
    """Complex constants as a buffer and as an attribute, complex numbers, and a complex output."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(5.0), torch.arange(4.0))
        self.register_buffer("table", torch.polar(torch.ones_like(angles), angles))
        self.frequencies = torch.exp(0.5j * torch.arange(4.0))

    def forward(self, x):
        z = torch.view_as_complex(x)
        turned = z * self.table[2].view(1, 1, 4) + 2j
        return (
            *(torch.view_as_real(turned).flatten(2), (z * self.frequencies).real, z.conj() * (1 - 2j) / z),
            *(turned.abs(), torch.cat((z, turned), 1).imag, z[:, :, 1:].sum(-1).angle()),
        )


def test_matches(exporter):
    assert_same_outputs(Rotary(), X, exporter, dynamic=DYNAMIC, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(
        lambda x: torch.view_as_complex(x) * torch.view_as_complex(x + 1), X, exporter, uses=(NAME,)
    )
    assert result.nodes["Mul"] == 4


def test_real_tensors_are_left_alone(exporter):
    result = assert_same_outputs(lambda x: x[..., 0] * x[..., 1], X, exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite(torch.view_as_complex, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input):
        return Pair(input[..., 1], input[..., 0])

    with pytest.raises(VerificationError):
        assert_same_outputs(lambda x: torch.view_as_complex(x).real, X, exporter, rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError):
        assert_same_outputs(Rotary(), X, "torchscript", dynamic=DYNAMIC, exclude=[NAME])
