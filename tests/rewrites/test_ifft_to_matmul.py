import itertools

import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.testing import assert_same_outputs

NAME = "ifft_to_matmul"
REAL = torch.randn(2, 6, 5)
DYNAMIC = {"x": {0: "batch"}}


class Model(torch.nn.Module):
    def forward(self, x):
        return (
            torch.fft.ifft(torch.complex(x, x.flip(2))).imag,
            torch.fft.ifft(x, 7, 1, "ortho").real,
            torch.fft.ifft(torch.complex(x, x.flip(2)), dim=-2).abs(),
        )


def test_matches(exporter):
    samples = [(torch.randn(3, 6, 5),)]
    assert_same_outputs(Model(), (REAL,), exporter, dynamic=DYNAMIC, samples=samples, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(Model(), (REAL,), exporter, dynamic=DYNAMIC, uses=(NAME,))
    assert "MatMul" in result.nodes
    assert "DFT" not in result.nodes


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_equals_eager(dtype):
    x = torch.randn(3, 6, 5, dtype=dtype)
    for args in itertools.product((None, 1, 2, 4, 5, 9), (-1, 0, 1), (None, "ortho", "forward", "backward")):
        wanted = torch.fft.ifft(x, *args)
        found = catalogue()[NAME].body(Pair.of(x) if dtype.is_complex else x, *args)
        torch.testing.assert_close(found.tensor() if isinstance(found, Pair) else found, wanted)


def test_declines_long_axes():
    with pytest.raises(Declined, match="no prime factor above 1024 here, got 4099"):
        catalogue()[NAME].body(torch.ones(2, 1, 4099))


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(REAL, out=REAL)


def test_other_transforms_are_left_alone():
    result = assert_same_outputs(lambda x: x.roll(1, 1), REAL, "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite(torch.fft.ifft, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, *args, **kwargs):
        return Pair(input, input)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.fft.ifft(x).real, (REAL,), exporter, rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="aten::fft_ifft"):
        assert_same_outputs(lambda x: torch.fft.ifft(x).real, (REAL,), "torchscript", exclude=[NAME])
