"""Short-time transforms and windows, in rows; against eager torch at every option; long frames; what is declined."""

import pytest
import torch
from torch_onnx_compat.symbolics.short_time import frames, overlap_add

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

WAVE = torch.randn(2, 40)
DYNAMIC = {"x": {0: "batch", 1: "length"}}
HANN, SHORT, LONG = torch.hann_window(16), torch.hamming_window(10), torch.hann_window(1000)
UNWINDOWED = pytest.mark.filterwarnings("ignore:stft with return_complex", "ignore:A window was not provided")


def body(name):
    return catalogue()[name].body


def transform(name, model, **options):
    def broken(input, n_fft, hop_length=None, win_length=None, window=None, **options):
        return body(name)(input, n_fft, hop_length, win_length, torch.ones_like(window), **options)

    samples = [(torch.randn(3, 47),)]
    leaves = lambda x: x @ x.T  # noqa: E731
    return Example(name, model, (WAVE,), broken, dynamic=DYNAMIC, samples=samples, leaves=leaves, options=options)


def of_window(name, *parameters):
    """A row for a window; `parameters` are what may follow the length and `periodic`, apart from nothing."""
    window = WINDOWS[name]

    def model(x):
        whole = [window(n, periodic) for n in (1, 2, 7, 8) for periodic in (False, True)]
        more = [window(9, False, *values) for values in ((), *parameters)]
        more += [window(5), window(6, dtype=torch.float64), window(4, periodic=False).double()]
        return tuple(x * w for w in (*whole, *more))

    def broken(window_length, periodic=True, *args, **options):
        return body(name)(window_length, not periodic, *args, **options)

    return Example(name, model, (torch.rand(3, 1) + 1,), broken)


WINDOWS = {
    "bartlett_window_to_abs": torch.bartlett_window,
    "blackman_window_to_cos": torch.blackman_window,
    "hann_window_to_cos": torch.hann_window,
    "hamming_window_to_cos": torch.hamming_window,
    "kaiser_window_to_constant": torch.kaiser_window,
}
EXAMPLES = [
    transform(
        "stft_to_conv",
        lambda x: (
            torch.view_as_real(torch.stft(x, 16, 4, window=HANN, return_complex=True)),
            torch.stft(x[0], 16, 5, 10, SHORT, normalized=True, return_complex=True).abs(),
            torch.view_as_real(torch.stft(x, 16, window=HANN, center=False, onesided=False, return_complex=True)),
        ),
        opset=16,  # from 17 on there is an STFT, which stock dynamo writes
    ),
    transform(
        "istft_to_conv",
        lambda x: (
            torch.istft(torch.stft(x, 16, 4, window=HANN, return_complex=True) * 2, 16, 4, window=HANN),
            torch.istft(torch.stft(x, 16, 4, window=HANN, return_complex=True), 16, 4, window=HANN, length=30),
        ),
    ),
    of_window("bartlett_window_to_abs"),
    of_window("blackman_window_to_cos"),
    of_window("hann_window_to_cos"),
    of_window("hamming_window_to_cos", (0.5,), (0.6, 0.3)),
    of_window("kaiser_window_to_constant", (3.5,), (0.0,), (30.0,)),
]


# Transforms


@UNWINDOWED
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
    torch.testing.assert_close(body("stft_to_conv")(x, return_complex=True, **options).tensor(), z)
    for length in (None, 30):
        found = body("istft_to_conv")(Pair.of(z), length=length, **options)
        torch.testing.assert_close(found, torch.istft(z, length=length, **options))


@UNWINDOWED
def test_parts_without_return_complex(exporter):
    def model(x):
        return torch.stft(x, 16, window=HANN, center=False, onesided=False, return_complex=False)

    assert_entry("stft_to_conv", model, WAVE, exporter, dynamic=DYNAMIC)


def test_one_convolution(exporter):
    def back(x):
        return torch.istft(torch.view_as_complex(x.reshape(-1, 9, 4, 2)), 16, 4, window=HANN)

    forth = lambda x: torch.stft(x, 16, 4, window=HANN, return_complex=True).imag  # noqa: E731
    result = assert_entry("stft_to_conv", forth, WAVE, exporter)
    assert result.nodes["Conv"] == 1
    assert not {"STFT", "DFT", "Loop"} & set(result.nodes)
    result = assert_entry("istft_to_conv", back, torch.randn(2, 72), exporter)
    assert result.nodes["ConvTranspose"] in (1, 2)  # dynamo folds that of the windows
    assert not {"STFT", "DFT", "Loop"} & set(result.nodes)


def test_declines():
    with pytest.raises(Declined, match="the signal must be real"):
        body("stft_to_conv")(torch.ones(40, dtype=torch.complex64), 16)
    with pytest.raises(Declined, match="return_complex must be False"):
        body("istft_to_conv")(torch.ones(9, 4), 16, return_complex=True)
    for name, x in (("stft_to_conv", torch.ones(40)), ("istft_to_conv", torch.ones(9, 4))):
        with pytest.raises(Declined, match="no prime factor above 1024 here, got 4099"):
            body(name)(x, 4099)


@pytest.mark.parametrize(("size", "hop"), [(12, 3), (12, 8), (10, 10), (9, 4), (4, 6)])
def test_frames(size, hop):
    x = torch.randn(2, 47)
    cut = frames(x, size, hop)
    assert torch.equal(cut, x.unfold(1, size, hop))
    wanted = torch.zeros(2, (cut.shape[1] - 1) * hop + size)
    for i in range(cut.shape[1]):
        wanted[:, i * hop : i * hop + size] += cut[:, i]
    torch.testing.assert_close(overlap_add(cut, hop), wanted)


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize(("hop", "normalized"), [(None, False), (300, True)])
def test_long_frames_equal_eager(hop, normalized, onesided):
    x = torch.randn(2, 5000, dtype=torch.float64)
    args, options = (1024, hop, 1000, LONG.double()), {"normalized": normalized, "onesided": onesided}
    wanted = torch.stft(x, *args, **options, return_complex=True)
    torch.testing.assert_close(body("stft_to_conv")(x, *args, **options, return_complex=True).tensor(), wanted)
    back = torch.istft(wanted, *args, **options, length=4800)
    torch.testing.assert_close(body("istft_to_conv")(Pair.of(wanted), *args, **options, length=4800), back)


def test_long_frames_take_no_convolution(exporter):
    def model(x):
        z = torch.stft(x, 1024, 300, 1000, LONG, return_complex=True)
        return z.abs(), torch.istft(z, 1024, 300, 1000, LONG)

    samples = [(torch.randn(3, 3301),)]
    result = assert_same_outputs(model, torch.randn(2, 2600), exporter, dynamic=DYNAMIC, samples=samples)
    assert {note.entry for note in result.applied} >= {"stft_to_conv", "istft_to_conv"}
    assert "Conv" not in result.nodes


@UNWINDOWED
@pytest.mark.parametrize("options", [{}, {"window": HANN.double()}, {"onesided": False, "normalized": True}], ids=str)
def test_of_float64(options, exporter):
    """onnxruntime has no Conv of float64."""
    wave = torch.randn(2, 40, dtype=torch.float64)
    model = lambda x: torch.view_as_real(torch.stft(x, 16, return_complex=True, **options))  # noqa: E731
    result = assert_entry("stft_to_conv", model, wave, exporter, dynamic=DYNAMIC)
    assert "Conv" not in result.nodes


# Windows


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_constants(name):
    x = torch.rand(3, 1) + 1
    assert set(assert_entry(name, lambda x: x * WINDOWS[name](8), x, "dynamo").nodes) == {"Mul"}
    assert assert_entry(name, lambda x: (x, WINDOWS[name](0)), x, "dynamo").nodes.total() <= 2


def test_declines_a_kaiser_window_of_a_length_that_varies():
    reason = "the window's length must be fixed; make the window in __init__ and keep it as a buffer"
    with pytest.raises(CompatError, match=reason):
        assert_same_outputs(lambda x: torch.kaiser_window(x.shape[0]) * x, torch.ones(3), "dynamo", dynamic="batch")


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("name", [name for name in WINDOWS if name != "kaiser_window_to_constant"])
def test_window_of_a_length_that_varies(name, periodic, exporter):
    window = WINDOWS[name]

    def model(x):
        return x * window(x.shape[1], periodic) + x * window(x.shape[1], dtype=torch.float64).float()

    session = export_compat(model, torch.randn(2, 5), dynamic=DYNAMIC, exporter=exporter).session()
    for length in (1, 2, 3, 8, 31, 100, 255):
        x = torch.randn(2, length)
        torch.testing.assert_close(
            torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x), rtol=1e-4, atol=1e-5
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [
        lambda x: torch.stft(x, x.shape[1], 1, window=torch.ones(x.shape[1]), center=False, return_complex=True).abs(),
        lambda x: torch.stft(x, x.shape[1], 1, center=False, return_complex=True).abs(),
    ],
    ids=["window", "no window"],
)
def test_a_transform_as_long_as_an_axis_is_a_decision(model):
    """A length is a tensor of the trace, on which the entry failed."""
    with pytest.raises(CompatError, match=r"int\(\) of a size|length of the window must be fixed"):
        export_compat(model, torch.randn(2, 12), dynamic={"x": {1: "t"}}, exporter="torchscript")
