import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.testing import assert_same_outputs

pytestmark = pytest.mark.filterwarnings("ignore:stft with return_complex", "ignore:A window was not provided")

NAME = "istft_to_conv"
WAVE = torch.randn(2, 40)
DYNAMIC = {"x": {0: "batch", 1: "length"}}
HANN, SHORT = torch.hann_window(16), torch.hamming_window(10)


class Model(torch.nn.Module):
    def forward(self, x):
        z = torch.stft(x, 16, 4, window=HANN, return_complex=True)
        return torch.istft(z * 2, 16, 4, window=HANN), torch.istft(z, 16, 4, window=HANN, length=30)


def test_matches(exporter):
    samples = [(torch.randn(3, 47),)]
    assert_same_outputs(Model(), (WAVE,), exporter, dynamic=DYNAMIC, samples=samples, uses=(NAME,))


def test_applied(exporter):
    def model(x):
        return torch.istft(torch.view_as_complex(x.reshape(-1, 9, 4, 2)), 16, 4, window=HANN)

    result = assert_same_outputs(model, (torch.randn(2, 72),), exporter, uses=(NAME,))
    assert result.nodes["ConvTranspose"] in (1, 2)  # dynamo folds that of the windows
    assert not {"STFT", "DFT", "Loop"} & set(result.nodes)


@pytest.mark.parametrize(
    "options",
    [
        {"n_fft": 16},
        {"n_fft": 15, "hop_length": 3},
        {"n_fft": 16, "win_length": 10, "window": SHORT.double()},
        {"n_fft": 16, "normalized": True, "onesided": False, "hop_length": 5},
    ],
)
def test_equals_eager(options):
    x = WAVE.double()
    z = torch.stft(x, return_complex=True, **options)
    for length in (None, 30):
        found = catalogue()[NAME].body(Pair.of(z), length=length, **options)
        torch.testing.assert_close(found, torch.istft(z, length=length, **options))


def test_declines():
    with pytest.raises(Declined, match="return_complex must be False"):
        catalogue()[NAME].body(torch.ones(9, 4), 16, return_complex=True)
    with pytest.raises(Declined, match="no prime factor above 1024 here, got 4099"):
        catalogue()[NAME].body(torch.ones(9, 4), 4099)


def test_products_are_left_alone():
    result = assert_same_outputs(lambda x: x @ x.T, (WAVE,), "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite(torch.istft, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **kwargs):
        return args[0].real * 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Model(), (WAVE,), exporter, rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError):
        assert_same_outputs(Model(), (WAVE,), "torchscript", dynamic=DYNAMIC, exclude=[NAME])
