"""torch.fft, in rows; against eager torch at every length, axis and norm; what is declined."""

import itertools

import pytest
import torch
from torch import fft

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.check import cases
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

REAL = torch.randn(2, 6, 5)
SAMPLES = [(torch.randn(3, 6, 5),)]


def z(x):
    return torch.complex(x, x.flip(2))


def transform(name, model):
    return Example(name, model, (REAL,), samples=SAMPLES, leaves=lambda x: x.roll(1, 1))


EXAMPLES = [
    transform(
        "fft_to_matmul",
        lambda x: (torch.view_as_real(fft.fft(x)), fft.fft(x, 4, 1, "ortho").imag, fft.fft(z(x), dim=-2).abs()),
    ),
    transform(
        "ifft_to_matmul",
        lambda x: (fft.ifft(z(x)).imag, fft.ifft(x, 7, 1, "ortho").real, fft.ifft(z(x), dim=-2).abs()),
    ),
    transform(
        "rfft_to_matmul",
        lambda x: (torch.view_as_real(fft.rfft(x)), fft.rfft(x, 4, 1, "ortho").imag, fft.rfft(x.long(), dim=-2).abs()),
    ),
    transform("irfft_to_matmul", lambda x: (fft.irfft(z(x)), fft.irfft(z(x), 7, 1, "ortho"), fft.irfft(x, n=4))),
    transform("hfft_to_matmul", lambda x: (fft.hfft(z(x)), fft.hfft(z(x), 7, 1, "ortho"), fft.hfft(x, n=4))),
    transform("ihfft_to_matmul", lambda x: (fft.ihfft(x).real, fft.ihfft(x, 4, 1, "ortho").imag)),
    transform(
        "fft2_to_matmul",
        lambda x: (
            torch.view_as_real(fft.fft2(x)),
            fft.fft2(x, (4, 7), norm="ortho").imag,
            fft.fft2(z(x), dim=(1, 2)).abs(),
        ),
    ),
    transform("ifft2_to_matmul", lambda x: (fft.ifft2(z(x)).imag, fft.ifft2(x, (4, 7), norm="ortho").real)),
    transform("rfft2_to_matmul", lambda x: (torch.view_as_real(fft.rfft2(x)), fft.rfft2(x, (4, 7), norm="ortho").imag)),
    transform("irfft2_to_matmul", lambda x: (fft.irfft2(z(x)), fft.irfft2(z(x), (4, 7), norm="ortho"))),
    transform(
        "fftn_to_matmul",
        lambda x: (
            torch.view_as_real(fft.fftn(x, dim=(1, 2))),
            fft.fftn(x, (4, 7), norm="ortho").imag,
            fft.fftn(z(x), dim=(1, 2)).abs(),
        ),
    ),
    transform("ifftn_to_matmul", lambda x: (fft.ifftn(z(x), dim=(1, 2)).imag, fft.ifftn(x, (4, 7), norm="ortho").real)),
    transform(
        "rfftn_to_matmul",
        lambda x: (torch.view_as_real(fft.rfftn(x, dim=(1, 2))), fft.rfftn(x, (4, 7), norm="ortho").imag),
    ),
    transform("irfftn_to_matmul", lambda x: (fft.irfftn(z(x), dim=(1, 2)), fft.irfftn(z(x), (4, 7), norm="ortho"))),
    *(
        Example(
            f"{name}_to_cat",
            lambda x, shift=shift: (
                shift(x),
                shift(x, dim=1),
                shift(x, (1, -1)),
                shift(torch.view_as_complex(x.reshape(-1, 5, 2, 2)), 1).imag,
            ),
            (torch.randn(2, 5, 4),),
            broken=lambda input, dim=None: input,
            leaves=lambda x: x.roll(1, 1),
        )
        for name, shift in (("fftshift", fft.fftshift), ("ifftshift", fft.ifftshift))
    ),
    *(
        Example(
            entry,
            lambda x, frequencies=frequencies: (
                *(x * frequencies(*args) for args in ((1,), (2,), (7,), (8, 0.5), (5, -2))),
                frequencies(4, dtype=torch.float64) * x,
            ),
            (torch.randn(3, 1),),
            broken=lambda n, d=1.0, **options: torch.arange(n) / (n * d) * 1.01,
        )
        for entry, frequencies in (("fftfreq_to_where", fft.fftfreq), ("rfftfreq_to_arange", fft.rfftfreq))
    ),
]
TRANSFORMS = [row.entry for row in EXAMPLES if row.entry.endswith("_to_matmul")]
ONE_AXIS = itertools.product((None, 1, 2, 4, 5, 9), (-1, 0, 1), (None, "ortho", "forward", "backward"))
SEVERAL_AXES = itertools.product(
    (None, (4, 3), (7, 8), (-1, 4)), ((-2, -1), (0, 1), (2, 0)), (None, "ortho", "forward")
)
ARGUMENTS = {False: list(ONE_AXIS), True: list(SEVERAL_AXES)}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_equals_eager(name, dtype):
    function = getattr(fft, name.removesuffix("_to_matmul"))
    if dtype.is_complex and function in (fft.rfft, fft.ihfft, fft.rfft2, fft.rfftn):
        pytest.skip("takes real tensors only")
    x = torch.randn(3, 6, 5, dtype=dtype)
    for args in ARGUMENTS[function.__name__[-1] in "2n"]:
        found = catalogue()[name].body(Pair.of(x) if dtype.is_complex else x, *args)
        torch.testing.assert_close(found.tensor() if isinstance(found, Pair) else found, function(x, *args))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_declines_long_axes(name):
    length = {"irfft_to_matmul": (4099,), "hfft_to_matmul": (4099,)}.get(name, ())
    length = ((2, 4099),) if name.startswith("irfft") and name[5] in "2n" else length
    with pytest.raises(Declined, match="no prime factor above 1024 here, got 4099"):
        catalogue()[name].body(torch.ones(2, 1, 4099), *length)


VARYING = {
    "fft": lambda x: (torch.view_as_real(fft.fft(x)), fft.fft(z(x), 4, -2, "ortho").imag, fft.ifft(z(x), 7).real),
    "rfft": lambda x: (torch.view_as_real(fft.rfft(x, norm="forward")), fft.ihfft(x).real, fft.rfft(x, 4).imag),
    "irfft": lambda x: (fft.irfft(z(x), 2 * x.shape[2] + 1), fft.hfft(z(x), 5), fft.irfft(z(x), x.shape[2])),
    "filter": lambda x: fft.irfft(fft.rfft(x, 2 * x.shape[2]) * 2, 2 * x.shape[2])[..., : x.shape[2]],
    "fftn": lambda x: (fft.fft2(z(x)).abs(), fft.irfft2(fft.rfft2(x), s=(6, x.shape[2]))),
}


@pytest.mark.parametrize("name", VARYING)
def test_axes_of_varying_size(name, exporter, monkeypatch):
    monkeypatch.setattr(cases, "OPERATOR_SECONDS", 60.0)  # however slow the machine
    x = torch.randn(2, 6, 5)
    result = export_compat(VARYING[name], x, dynamic={"x": {0: "batch", 2: "length"}}, exporter=exporter)
    assert all(axis.proven for axis in result.axes)


def test_products_only(exporter):
    result = assert_entry("fft2_to_matmul", lambda x: fft.fft2(x).real, (REAL,), exporter, dynamic="batch")
    assert "MatMul" in result.nodes
    assert "DFT" not in result.nodes


def test_takes_sizes_of_a_shape(exporter):
    """In a TorchScript trace these are tensors, whose arithmetic must not be mistaken for the model's."""

    def model(x):
        low = fft.rfft2(x)[..., :2, :2]
        low = torch.nn.functional.pad(low, (0, x.shape[-1] // 2 - 1, 0, x.shape[-2] - 2))
        return fft.irfft2(low, s=(x.shape[-2], x.shape[-1]))

    x = torch.randn(2, 3, 6, 8)
    assert_entry("irfft2_to_matmul", model, x, exporter, dynamic="batch", samples=[(torch.randn(5, 3, 6, 8),)])


@pytest.mark.parametrize("name", ["fftfreq_to_where", "rfftfreq_to_arange"])
def test_frequencies_of_a_length_that_varies(name):
    frequencies = getattr(fft, name.partition("_")[0])
    model = lambda x: x[:, 0].sum() * frequencies(x.shape[0], 0.3)  # noqa: E731
    assert_entry(name, model, torch.randn(3, 1), "dynamo", dynamic="batch", samples=[torch.ones(6, 1)])


def test_frequencies_are_a_constant():
    for frequencies in (fft.fftfreq, fft.rfftfreq):
        result = assert_same_outputs(lambda x, f=frequencies: x * f(6), torch.randn(3, 1), "dynamo")
        assert set(result.nodes) == {"Mul"}


def test_an_entry_asks_for_sizes_of_the_original():
    """The runs that tell which sizes are fixed call the model's own functions, not those of the entry that asks."""

    class GlobalFilter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(6, 4, 3, 2))

        def forward(self, x):
            spectrum = torch.fft.rfft2(x, dim=(1, 2), norm="ortho")
            return torch.fft.irfft2(spectrum * torch.view_as_complex(self.weight), s=(6, 6), dim=(1, 2), norm="ortho")

    result = export_compat(GlobalFilter(), (torch.randn(2, 6, 6, 3),), dynamic="batch", exporter="torchscript")
    assert "rfft2_to_matmul" in {note.entry for note in result.applied}
