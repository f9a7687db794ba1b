"""Questions that Python or torch decides where no hook of ours is called at first sight."""

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from torch_onnx_compat import CompatError, export_compat


class ClassPattern(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        match x.shape[0]:
            case int(n) if n % 2 == 0:
                return x * 2
            case n:
                return x * n


class BehindASlice(nn.Module):
    """The slice is empty where the first question has the example's answer, so nothing is asked of it there."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0

    def forward(self, x: Tensor) -> Tensor:
        def shift(t: Tensor) -> Tensor:
            if min(t.shape[-2:]) < 9:
                return t.masked_fill(t < 0, 0.5)
            return t - 3

        shifted = shift(x)
        if x[..., 32:].numel() > 0:
            self.scale = 0.5
        return shifted * self.scale


class ValuesInTry(nn.Module):
    """Tensors without values refuse ``numpy``, which the model takes for its own error."""

    def forward(self, x: Tensor) -> Tensor:
        try:
            if x.detach().numpy().max() > -5:
                raise RuntimeError("large")
            return x * 2
        except RuntimeError:
            return x * 3


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize(
    ("model", "shape", "dynamic", "others"),
    [
        (ClassPattern(), (3, 8), {0: "n"}, [(2, 8), (4, 8), (33, 8), (64, 8)]),
        (
            BehindASlice(),
            (2, 32, 5),
            {0: "batch", 1: "height", 2: "width"},
            [(2, 32, 33), (3, 40, 35), (1, 33, 33), (2, 3, 40)],
        ),
        (ValuesInTry(), (3, 8), None, [(3, 8)]),
    ],
    ids=["class pattern", "behind a slice", "values in try"],
)
def test_a_file_is_right_at_other_sizes_or_refused(model, shape, dynamic, others, exporter, tmp_path):
    path = tmp_path / "model.onnx"
    axes = None if dynamic is None else {"x": dynamic}
    try:
        export_compat(model, (torch.randn(shape),), path, dynamic=axes, exporter=exporter)
    except CompatError:
        assert not isinstance(model, ClassPattern), "this one has a form"
        return
    session = onnxruntime.InferenceSession(path)
    for other in others:
        x = torch.randn(other) - 10 * isinstance(model, ValuesInTry)
        (found,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), type(model)()(x))
