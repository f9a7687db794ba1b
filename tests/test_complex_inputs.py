"""Complex arguments: inputs of the file are their real and imaginary parts on a last axis."""

import numpy as np
import onnxruntime
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.testing import assert_same_outputs

Z = torch.randn(2, 5, 7, dtype=torch.complex64)
WINDOW = torch.hann_window(8)
DYNAMIC = {"z": {0: "batch", -1: "time"}}


class Model(torch.nn.Module):
    def forward(self, z, gain):
        turned = z * gain + (1 - 2j)
        return turned.abs(), torch.istft(z, 8, window=WINDOW), turned.conj()


def test_matches(exporter):
    samples = [(torch.randn(3, 5, 9, dtype=torch.complex64), torch.tensor(2.0))]
    assert_same_outputs(Model(), (Z, torch.tensor(0.5)), exporter, dynamic=DYNAMIC, samples=samples)


def test_nested_arguments(exporter):
    def model(spectra, factor):
        return factor * spectra["left"] + spectra["right"][0].conj()

    assert_same_outputs(model, ({"left": Z, "right": [Z.flip(0)]}, 2), exporter, dynamic="batch")


def test_the_file_takes_parts(tmp_path, exporter):
    path = tmp_path / "model.onnx"
    export_compat(lambda z: torch.view_as_real(z.exp()), (Z.conj(),), path, exporter=exporter, dynamic="batch")
    session = onnxruntime.InferenceSession(path)
    assert [tuple(i.shape) for i in session.get_inputs()] == [("batch", 5, 7, 2)]
    other = torch.randn(4, 5, 7, dtype=torch.complex64)
    (found,) = session.run(None, {session.get_inputs()[0].name: torch.view_as_real(other).numpy()})
    np.testing.assert_allclose(found, torch.view_as_real(other.exp()).numpy(), rtol=1e-4, atol=1e-5)


def test_types_of_python(exporter):
    """torch takes ``complex``, ``float`` and ``bool`` for types, beside complex numbers, too."""

    def model(x):
        y = torch.zeros(3, dtype=complex) + x
        return (
            (y * torch.ones(3, dtype=complex)).abs(),
            torch.ones(x.shape[0], dtype=bool),
            torch.full((2,), 1, dtype=float),
        )

    session = export_compat(model, torch.randn(2, 3), dynamic="batch", exporter=exporter).session()
    x = torch.randn(4, 3)
    for found, wanted in zip(session.run(None, {"x": x.numpy()}), model(x), strict=True):
        torch.testing.assert_close(torch.from_numpy(found), wanted)
