"""Questions that Python or torch decides where no hook of ours is called at first sight."""

import enum

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from torch_onnx_compat import CompatError, export_compat

EXPORTERS = ["torchscript", "dynamo"]


class ClassPattern(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        match x.shape[0]:
            case int(n) if n % 2 == 0:
                return x * 2
            case n:
                return x * n


class FloatPattern(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        match x.shape[0] / 2:
            case float(half) if half > 4:
                return x * half
            case _:
                return x * 3


class Order(enum.IntEnum):
    FOUR = 4
    NINE = 9


class EnumMember(nn.Module):
    """Torch's sizes are equal to no member of an IntEnum, and larger than no float of numpy's."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        if n == Order.NINE or n + 1 == Order.FOUR + 1:
            return x * 2
        return x * n if n > np.float64(20.5) else x * 3


class Attributes(nn.Module):
    """A size of an exporter lacks them; getattr and hasattr say nothing of it."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        if hasattr(n, "numerator") and getattr(n, "numerator", 0) > 20:
            return x * 2
        return x * n.conjugate() * n.denominator + n.real


class Layout(nn.Module):
    """A matrix of one row is contiguous both ways; C++ asks, and Python gets the answer."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x[: x.shape[0] // 3].t().is_contiguous() else x * 3


class LayoutBehindAnother(nn.Module):
    """Of what the second question asks there is another answer only where the first one has another one, too."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x.t()[1:].is_contiguous() and x.shape[1] > 6 else x * 3


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


class SelectedValuesInTry(nn.Module):
    """The same, and values decide how many there are."""

    def forward(self, x: Tensor) -> Tensor:
        try:
            if x[x > -100].detach().numpy().max() > -5:
                raise RuntimeError("large")
            return x * 2
        except RuntimeError:
            return x * 3


class ShapesInTry(nn.Module):
    """Eager torch has this error, too, at every size: nothing is decided."""

    def forward(self, x: Tensor) -> Tensor:
        try:
            return x.view(3, 3)
        except RuntimeError:
            return x * 3


VOLUME = {0: "batch", 1: "height", 2: "width"}


def assert_right(model, shape, dynamic, others, exporter, path):
    export_compat(model(), (torch.randn(shape),), path, dynamic={"x": dynamic}, exporter=exporter)
    session = onnxruntime.InferenceSession(path)
    for other in others:
        x = torch.randn(other)
        (found,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), model()(x))


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize(
    ("model", "others"),
    [
        (ClassPattern, [(2, 8), (4, 8), (33, 8), (64, 8)]),
        (FloatPattern, [(2, 8), (8, 8), (9, 8), (64, 8)]),
        (ShapesInTry, [(1, 8), (9, 8)]),
        (Attributes, [(9, 8), (20, 8), (21, 8), (40, 8)]),
        (EnumMember, [(9, 8), (4, 8), (5, 8), (21, 8), (20, 8)]),
    ],
)
def test_a_file_is_right_at_other_sizes(model, others, exporter, tmp_path):
    assert_right(model, (3, 8), {0: "n"}, others, exporter, tmp_path / "model.onnx")


def test_the_model_is_asked_where_a_slice_is_not_empty(tmp_path):
    others = [(2, 32, 33), (3, 40, 35), (1, 33, 33), (2, 3, 40)]
    assert_right(BehindASlice, (2, 32, 5), VOLUME, others, "torchscript", tmp_path / "model.onnx")


def test_torch_export_takes_an_empty_slice_for_empty(tmp_path):
    """Where slices ask nothing of the sizes, the model's own question is seen."""
    with pytest.raises(CompatError, match=r"captured for sizes up to \d+ only|asks whether width < 9"):
        assert_right(BehindASlice, (2, 32, 5), VOLUME, [], "dynamo", tmp_path / "model.onnx")


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("model", [Layout, LayoutBehindAnother])
def test_how_a_view_lies_in_memory_is_a_question(model, exporter, tmp_path):
    """The file cannot ask it."""
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_right(model, (4, 5), {0: "n", 1: "m"}, [], exporter, tmp_path / "model.onnx")


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("model", [ValuesInTry, SelectedValuesInTry])
def test_values_that_decide_by_an_error_are_refused(model, exporter, tmp_path):
    with pytest.raises(CompatError, match="would freeze"):
        export_compat(model(), (torch.randn(3, 8),), tmp_path / "model.onnx", exporter=exporter)
