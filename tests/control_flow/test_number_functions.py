"""Python's functions of numbers, of sizes and of what values decide, are right at other sizes and values."""

import math

import onnxruntime
import pytest
import torch

from torch_onnx_compat import export_compat


def square(x):
    side = math.isqrt(x.shape[0])
    return x[: side * side].reshape(side, side, 4).sum(0), x * side


def of_a_value(x):
    return x * math.isqrt(int(x[0, 0].abs() * 100)) + math.hypot(x[0, 1].item(), x[0, 2].item())


def decided(x):
    if math.isqrt(len(x)) ** 2 == len(x):
        return x * 2
    return x - 1 if math.fmod(len(x), 3) == 1.0 else x


def real(x):
    n = x.shape[0]
    return x * math.hypot(3, n) + math.copysign(2.5, n - 5) - math.fmod(n, 4) / math.fabs(n + 0.5)


def powers(x):
    n = x.shape[0]
    return x[: int(math.pow(n, 0.5))], x * (1 + int(math.log10(n)))


@pytest.mark.parametrize("model", [square, of_a_value, decided, real, powers])
def test_is_right(model, exporter, tmp_path):
    path = tmp_path / "model.onnx"
    torch.manual_seed(0)
    export_compat(model, torch.randn(3, 4), path, dynamic="batch", exporter=exporter)
    session = onnxruntime.InferenceSession(path)
    for size in (1, 2, 4, 5, 8, 9, 10, 15, 16, 99, 100, 101, 1000):
        torch.manual_seed(size)
        x = torch.randn(size, 4)
        wanted = model(x)
        found = session.run(None, {"x": x.numpy()})
        for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            torch.testing.assert_close(torch.from_numpy(one), other, rtol=1e-5, atol=1e-5)


def differs_from_itself(x):
    value = x.sum().sqrt().item()
    return x - 1 if value != value else x * 2


def equals_itself(x):
    value = float(x.log().sum())
    return x - 1 if value == value else x * 2


def is_nan(x):
    return x - 1 if math.isnan(x.sum().sqrt().item()) else x * 2


def is_infinite(x):
    value = x.log().sum().item()
    return x - 1 if math.isinf(value) or not math.isfinite(value) else x * 2


def times_nothing(x):
    return x + 0 * x.log().sum().item()


def minus_itself(x):
    value = x.log().sum().item()
    return x + (value - value)


def below_infinity(x):
    return x - 1 if -math.inf < x.log().sum().item() < math.inf else x * 2


def is_no_order(x):
    value = x.log().sum().item()
    return x - 1 if not (value < 0 or value >= 0) else x * 2


OF_NAN = (differs_from_itself, equals_itself, is_nan, is_infinite, times_nothing, minus_itself, below_infinity)


@pytest.mark.parametrize("model", [*OF_NAN, is_no_order])
def test_a_value_may_be_nan_or_infinite(model, exporter):
    result = export_compat(model, torch.rand(3, 4) + 0.5, dynamic="batch", exporter=exporter)
    for value in (1.0, 0.5, 0.0, -1.0, math.inf, math.nan):
        x = torch.full((5, 4), value)
        torch.testing.assert_close(result(x)[0], model(x), equal_nan=True)


def causal(x):
    """torch's parser takes no tensor for ``is_causal``, and asks it nothing."""
    return torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=x.shape[0] > 3)


def test_sizes_decide_whether_attention_is_causal(exporter, tmp_path):
    result = export_compat(causal, torch.randn(5, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)
    for size in (1, 2, 3, 4, 9):
        x = torch.randn(size, 4)
        torch.testing.assert_close(torch.from_numpy(result.session().run(None, {"x": x.numpy()})[0]), causal(x))


def factor(x):
    """The smaller of a float and a size is one or the other, and no tensor."""
    most = min(4.5, x.shape[0])
    if isinstance(most, torch.Tensor) or not isinstance(most, (int, float)):
        return x
    return x * most if x.shape[0] > 2 else x - most


def test_a_number_of_two_types_is_no_tensor(exporter, tmp_path):
    result = export_compat(factor, torch.randn(3, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)
    for size in (1, 2, 4, 5, 9):
        x = torch.randn(size, 4)
        torch.testing.assert_close(torch.from_numpy(result.session().run(None, {"x": x.numpy()})[0]), factor(x))
