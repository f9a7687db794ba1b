"""What is asked of a tensor of a model's own class, or in its `__torch_function__`, is a decision like others."""

import onnxruntime as ort
import pytest
import torch
from symbolic_runs import Module

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError


class Tagged(torch.Tensor):
    def is_long(self):
        return self.shape[1] > 300


class Doubles(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if func is torch.Tensor.add and result.as_subclass(torch.Tensor).sum() > 3000:
            result = torch.Tensor.mul(result, 2)
        return result


class AsksForSize(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        is_of_57 = func is torch.Tensor.add and result.as_subclass(torch.Tensor).shape[-1] == 57
        return torch.Tensor.mul(result, 2) if is_of_57 else result


class Unwraps(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [one.as_subclass(torch.Tensor) if isinstance(one, torch.Tensor) else one for one in args]
        result = func(*plain, **(kwargs or {}))
        is_large = isinstance(result, torch.Tensor) and result.is_floating_point() and result.sum() > 3000
        return result - 1 if is_large else result


class Bare(torch.Tensor):
    pass


class Scales(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {})) * 3


class AddsConstant(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.constant = torch.arange(4.0).as_subclass(kind)

    def forward(self, x):
        return x + self.constant, self.constant.mean() * x.as_subclass(Bare)


def reads_a_size(x):
    return x * 2 if x.as_subclass(Tagged).shape[1] == 57 else x


def slices(x):
    count = min(x.as_subclass(Tagged).shape[1], 300)
    return x[:, :count] / count


def calls_a_method(x):
    return x * 2 if x.as_subclass(Tagged).is_long() else x


def sums(x):
    tagged = x.as_subclass(Tagged)
    return (tagged * 2 if tagged.sum() > 3000 else tagged).as_subclass(torch.Tensor)


def adds(kind):
    def function(x):
        return x.as_subclass(kind).add(1).as_subclass(torch.Tensor)

    function.__name__ = f"adds_{kind.__name__}"
    return function


FUNCTIONS = (reads_a_size, slices, calls_a_method, sums, adds(Doubles), adds(AsksForSize))


def export(function, path):
    export_compat(
        Module(function).eval(),
        (torch.randn(5, 5),),
        str(path),
        input_names=["x"],
        dynamic_axes={"x": {0: "batch", 1: "length"}},
        exporter="torchscript",
    )


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_what_is_asked_of_a_subclass(function, tmp_path):
    path = tmp_path / "model.onnx"
    export(function, path)
    session = ort.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    for length in (1, 5, 57, 300, 301, 400):
        for x in (torch.full((5, length), 0.1), torch.full((5, length), 700.0)):
            found = torch.from_numpy(session.run(None, {"x": x.numpy()})[0])
            torch.testing.assert_close(found, function(x), rtol=1e-5, atol=1e-5)


def test_what_a_handler_decides_in_every_call_is_refused(tmp_path):
    with pytest.raises(CompatError, match="test_tensor_subclasses"):
        export(adds(Unwraps), tmp_path / "model.onnx")


@pytest.mark.parametrize("kind", [Bare, Scales])
@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_constant_of_a_subclass(kind, exporter):
    model = AddsConstant(kind)
    result = export_compat(model, (torch.randn(3, 4),), dynamic="batch", exporter=exporter)
    assert "as_subclass" not in vars(torch.Tensor)
    assert not any("without numbers" in note for note in result.notes)
    for batch in (1, 2, 5):
        x = torch.randn(batch, 4)
        for found, wanted in zip(result.session().run(None, {"x": x.numpy()}), model(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(found), wanted.as_subclass(torch.Tensor))
