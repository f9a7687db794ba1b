"""Custom operators that are written in Python are what their functions compute, unless somebody has a symbolic."""

import pytest
import torch
from torch import Tensor, nn
from torch._ops import OpOverload, OpOverloadPacket

from torch_onnx_compat import CompatError, export_compat, symbolic
from torch_onnx_compat.backends.custom_operators import translated_operators
from torch_onnx_compat.backends.internals.custom_operators import python_operators
from torch_onnx_compat.catalogue.catalogue import catalogue

NAME = "torch_onnx_compat_tests"


@torch.library.custom_op(f"{NAME}::scaled", mutates_args=())
def scaled(x: Tensor, by: float = 2.0) -> Tensor:
    return x * by + x.sum(0)


@scaled.register_fake
def _(x, by=2.0):
    return torch.empty_like(x)


@torch.library.custom_op(f"{NAME}::chosen", mutates_args=())
def chosen(x: Tensor) -> Tensor:
    rows = []
    for row in x:
        rows.append(scaled(row[None])[0] if row.sum() > 0 else row - 1)
    return torch.stack(rows)


@chosen.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op(f"{NAME}::double_", mutates_args=("x",))
def double_(x: Tensor) -> None:
    x.mul_(2)


@torch.library.custom_op(f"{NAME}::opaque", mutates_args=())
def opaque(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() * 2)


@opaque.register_fake
def _(x):
    return torch.empty_like(x)


class Written(nn.Module):
    def forward(self, x):
        y = x.clone()
        double_(y[:, :2])
        torch.ops.torch_onnx_compat_tests.double_.default(y)
        return y


class Late(nn.Module):
    """The operator is defined at the first call, as a package that is imported then does."""

    def forward(self, x):
        if not hasattr(torch.ops.torch_onnx_compat_tests, "late"):
            made = torch.library.custom_op(
                f"{NAME}::late", lambda x: x.exp() + 1, mutates_args=(), schema="(Tensor x) -> Tensor"
            )
            made.register_fake(torch.empty_like)
            kept.append(made)
        return torch.ops.torch_onnx_compat_tests.late(x)


kept: list[object] = []


class Called(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


MODELS = [
    Called(scaled),
    Called(lambda x: torch.ops.torch_onnx_compat_tests.scaled(x, 3.0)),
    Called(chosen),
    Written(),
    Late(),
]


@pytest.mark.parametrize("model", MODELS, ids=["object", "packet", "decides", "writes", "late"])
def test_the_file_has_what_the_function_computes(model, exporter):
    before = [kind.__call__ for kind in (OpOverload, OpOverloadPacket)]
    result = export_compat(model.eval(), torch.randn(3, 4), dynamic="batch", exporter=exporter)
    assert [kind.__call__ for kind in (OpOverload, OpOverloadPacket)] == before
    assert not result.custom_nodes
    for size in (1, 2, 6):
        x = torch.randn(size, 4)
        torch.testing.assert_close(torch.as_tensor(result(x)[0]), model(x.clone()))


def test_a_symbolic_comes_first(exporter):
    @symbolic(f"{NAME}::scaled", always=True, registry=None)
    def scaled_to_matmul(op, x, by=2.0):
        return op.Add(op.Mul(x, by), op.ReduceSum(x, op.constant([0], torch.int64), keepdims=0))

    result = export_compat(
        Called(scaled).eval(), torch.randn(3, 4), dynamic="batch", exporter=exporter, symbolics=[scaled_to_matmul]
    )
    assert [note.entry for note in result.applied] == ["scaled_to_matmul"]


def test_what_no_operator_of_torch_computes_is_refused(exporter):
    with pytest.raises(CompatError, match=r"numpy|from_numpy|data_ptr"):
        export_compat(Called(opaque).eval(), torch.randn(3, 4), dynamic="batch", exporter=exporter)


def test_which_have_a_symbolic():
    assert {f"{NAME}::scaled", f"{NAME}::opaque"} <= python_operators()
    assert not any(name.startswith(("prims::", "aten::")) for name in python_operators())
    table = {torch.ops.torch_onnx_compat_tests.opaque.default: None, torch.sym_not: None}
    assert {f"{NAME}::opaque", "torch_onnx_compat::focus"} <= translated_operators(catalogue(), table)
