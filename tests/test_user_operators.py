"""Models that call torch.cond, while_loop and scan themselves, and scripted modules with attributes."""

from typing import Optional

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.torch_version import TorchVersion

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError

NEWEST = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 14)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.a(x).relu(), lambda x: self.b(x) % 3, [x])


class Doubles(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * 2), (torch.zeros((), dtype=torch.int64), x))[1]


class Sums(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.scan import scan

        return scan(lambda carried, row: (carried + row, carried * row), torch.zeros(4), x)[1]


@pytest.mark.skipif(not NEWEST, reason="older torch does not run these operators under a dispatch mode")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [Branches, Doubles, Sums], ids=lambda kind: kind.__name__)
def test_operators_of_functions(kind):
    model, x = kind().eval(), torch.randn(3, 4)
    dynamic = None if kind is Sums else {"x": {0: "batch"}}
    result = export_compat(model, (x,), dynamic=dynamic, samples=[(x.abs(),), (-x.abs(),)])
    assert result.exporter == "dynamo"
    for value in (x, -x, x.abs(), -x.abs()):
        with torch.no_grad():
            np.testing.assert_allclose(result(value)[0], model(value), rtol=1e-4, atol=1e-5)
    if dynamic:
        assert all(axis.proven for axis in result.axes)


class Counts(nn.Module):
    """Writes an attribute, and reads it again."""

    def __init__(self):
        super().__init__()
        self.inner, self.count = nn.InstanceNorm1d(5, track_running_stats=True), torch.zeros(())

    def forward(self, x):
        self.count = self.count + 1
        return self.inner(x) + self.count


class CountsSometimes(Counts):
    def forward(self, x):
        if x.size(0) > 1:
            self.count = self.count + 1
        return self.inner(x) + self.count


class Perhaps(nn.Module):
    def forward(self, x):
        y: Optional[Tensor] = None  # noqa: UP045 - TorchScript reads it
        if x.size(0) > 1:
            y = x
        return y


@pytest.mark.filterwarnings("ignore")
def test_a_scripted_module_with_attributes():
    model = Counts()
    model.inner.running_mean.normal_()
    model.inner.running_var.uniform_(0.5, 2)
    x = torch.randn(2, 5, 6)
    result = export_compat(torch.jit.script(model.eval()), (x,), exporter="torchscript")
    np.testing.assert_allclose(result(x * 2)[0], Counts.forward(model, x * 2).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "shape", "reason"),
    [(CountsSometimes, (2, 5, 6), "in a branch or a loop"), (Perhaps, (2, 3), "Optional")],
    ids=["branch", "optional"],
)
def test_a_scripted_module_that_no_file_can_hold(kind, shape, reason):
    with pytest.raises(CompatError, match=reason):
        export_compat(torch.jit.script(kind().eval()), (torch.randn(shape),), exporter="torchscript")


class LessInExport(nn.Module):
    def forward(self, x):
        y = x * 2
        return y if torch.onnx.is_in_onnx_export() else (y, {"loss": y.sum(), "count": x.shape[0]})


class LessInTrace(nn.Module):
    def forward(self, x):
        y = x * 2
        if torch.jit.is_tracing():
            return y
        return y, x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [LessInExport, LessInTrace], ids=lambda kind: kind.__name__)
def test_a_model_that_returns_less_while_it_is_exported(kind, exporter):
    before = torch.jit.is_tracing
    result = export_compat(kind().eval(), (torch.ones(3, 4),), exporter=exporter, dynamic={"x": {0: "batch"}})
    found = result.session().run(None, {"x": np.full((5, 4), 3, dtype=np.float32)})
    np.testing.assert_array_equal(found[0], 6)
    leaves_out = kind is LessInExport or exporter == "torchscript"
    assert len(found) == (1 if leaves_out else 2)
    assert leaves_out == any("while it is exported" in note for note in result.notes)
    assert torch.jit.is_tracing is before
    assert not torch.onnx.is_in_onnx_export()


class LiesInExport(nn.Module):
    """Computes something else while it is exported, with as many outputs."""

    def forward(self, x):
        return x.sin() if torch.onnx.is_in_onnx_export() else x.cos()


class FixesInExport(nn.Module):
    """Takes the example's size while it is exported."""

    def forward(self, x):
        count = x.shape[0]
        if torch.onnx.is_in_onnx_export():
            count = int(count)
        return x + torch.arange(float(count))[:, None]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [LiesInExport, FixesInExport], ids=lambda kind: kind.__name__)
def test_a_model_that_computes_something_else_while_it_is_exported_is_told_of_none(kind, exporter):
    before = torch.onnx.is_in_onnx_export
    result = export_compat(kind().eval(), (torch.randn(3, 4),), exporter=exporter, dynamic={"x": {0: "batch"}})
    x = torch.randn(5, 4)
    np.testing.assert_allclose(result.session().run(None, {"x": x.numpy()})[0], kind()(x).numpy(), atol=1e-6)
    assert any("is_in_onnx_export" in note and "test_user_operators.py" in note for note in result.notes)
    assert torch.onnx.is_in_onnx_export is before


class LiesAndDecides(nn.Module):
    """Is not right either way."""

    def forward(self, x):
        if torch.onnx.is_in_onnx_export():
            return x.sin()
        return x * float(str(x.sum().item()))


@pytest.mark.filterwarnings("ignore")
def test_the_first_error_stands_where_no_way_is_right(exporter):
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        export_compat(LiesAndDecides().eval(), (torch.randn(3, 4),), exporter=exporter)


@torch.compile
def _compiled(x):
    return x.relu() * 2


@torch.compile(fullgraph=True)
def _compiled_as_a_whole(x):
    return x.relu() * 3


class CallsCompiled(nn.Module):
    """Functions, a method and a layer that torch.compile would make kernels of."""

    def __init__(self):
        super().__init__()
        self.layer = torch.compile(nn.Linear(4, 4), fullgraph=True)

    @torch.compile(dynamic=True)
    def scaled(self, x):
        return x * 0.5

    def forward(self, x):
        return self.scaled(self.layer(_compiled(x) + _compiled_as_a_whole(x)))


@pytest.mark.filterwarnings("ignore")
def test_functions_of_torch_compile_are_exported_as_they_are_written(exporter):
    if exporter == "torchscript" and TorchVersion(torch.__version__) < "2.14":
        pytest.skip("before torch 2.14, a trace refuses functions of torch.compile")
    model, x = CallsCompiled().eval(), torch.randn(5, 4)
    result = export_compat(model, (x[:3],), exporter=exporter, dynamic={"x": {0: "batch"}})
    found = result.session().run(None, {"x": x.numpy()})[0]
    layer = model.layer._orig_mod
    np.testing.assert_allclose(found, (layer(x.relu() * 5) * 0.5).detach().numpy(), rtol=1e-5, atol=1e-6)


class LogDensity(nn.Module):
    """Distributions check their arguments, which decides about errors only."""

    def forward(self, mean, scale, x):
        return torch.distributions.Normal(mean, scale).log_prob(x)


def test_distributions(exporter):
    inputs = torch.randn(3), torch.rand(3) + 1, torch.randn(3)
    result = export_compat(LogDensity().eval(), inputs, exporter=exporter, dynamic="count")
    np.testing.assert_allclose(result(*inputs)[0], LogDensity()(*inputs), rtol=1e-5)
    with pytest.raises(ValueError, match="constraint"):
        LogDensity()(torch.zeros(3), -torch.ones(3), torch.zeros(3))


def test_a_hundred_and_fifty_nested_modules(exporter):
    model = nn.Linear(4, 4)
    for _ in range(150):
        model = nn.Sequential(model)
    result = export_compat(model.eval(), (torch.randn(2, 4),), exporter=exporter, dynamic="batch")
    assert result.axes[0].proven
