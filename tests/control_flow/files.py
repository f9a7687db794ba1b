"""Exports functions and compares their files."""

import onnxruntime
import torch

from torch_onnx_compat import export_compat


def export_and_compare(model, exporter, folder, sizes=(1, 2, 5, 8, 17)):
    """Exports a function of a tensor of four columns, and compares the file at other sizes and values."""
    path = folder / "model.onnx"
    torch.manual_seed(0)
    export_compat(model, torch.randn(3, 4), path, dynamic="batch", exporter=exporter)
    session = onnxruntime.InferenceSession(path)
    for seed, size in enumerate(sizes):
        torch.manual_seed(seed)
        x = torch.randn(size, 4)
        wanted = model(x.clone())
        found = session.run(None, {"x": x.numpy()})
        for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            torch.testing.assert_close(torch.from_numpy(one), other, rtol=1e-4, atol=1e-5)
