"""Tensors that legacy constructors make: of sizes, and of lists that hold some."""

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.control_flow.run import factories

X = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))


class OfSizes(nn.Module):
    def forward(self, x):
        kind = torch.FloatTensor
        return (
            *(torch.Tensor(x.shape[0], 4).fill_(2.0) + x, torch.FloatTensor(x.shape).zero_() + x),
            *(kind(x.size(0), x.size(1)).fill_(0.5) * x, torch.LongTensor(x.shape[0]).fill_(3)),
            *(x.new(x.shape[0], 2).fill_(1), x.new(x.size()).zero_() - x, torch.BoolTensor(x.size(0)).fill_(True)),
        )


class Joined(nn.Module):
    """Where the constructor stands among others, not first: an accumulator with no columns."""

    def forward(self, x):
        made = torch.Tensor(x.shape[0], 0)
        return torch.cat([made, x], 1), torch.cat((x, torch.FloatTensor(x.shape[0], 0)), dim=1)


class OfLists(nn.Module):
    def forward(self, x):
        h, w = x.shape
        return (
            *(x * torch.Tensor([w, h, w, h]), torch.LongTensor([h, w]), x.new([h / 2, 1.0])),
            *(torch.IntTensor([[h], [w]]).sum(), torch.DoubleTensor((h * 0.1, 2))),
        )


class OfConstants(nn.Module):
    """What must stay as it is: numbers, lists, tensors and types."""

    def forward(self, x):
        y = torch.Tensor(3, 4).fill_(1.0) + torch.Tensor([1, 2, 3, 4]) + torch.Tensor(torch.ones(4))
        return x * y.type(torch.FloatTensor), torch.LongTensor(range(3)), isinstance(x, torch.FloatTensor)


class OfHalves(nn.Module):
    """Nothing is asked of a size where it is made, and the size is none of the input's."""

    def forward(self, x):
        made = torch.FloatTensor(x.shape[0] // 2, 1)
        made.fill_(2.0)
        return made + x[: x.shape[0] // 2]


@pytest.mark.parametrize("model", [OfSizes, OfLists, OfHalves, Joined])
@pytest.mark.parametrize("verify", [True, False])
def test_legacy_constructors(model, verify, exporter):
    result = export_compat(model().eval(), X, exporter=exporter, dynamic={"x": {0: "n"}}, verify=verify)
    for n in (3, 2, 8):
        x = torch.rand(n, 4)
        for found, wanted in zip(tree_leaves(result(x)), tree_leaves(model()(x)), strict=True):
            torch.testing.assert_close(torch.as_tensor(found), wanted)


def test_constants_are_constants(exporter):
    export_compat(OfConstants().eval(), X, exporter=exporter)


@pytest.mark.parametrize("model", [OfHalves, Joined])
@pytest.mark.parametrize("verify", [True, False])
def test_without_stand_ins_they_are_refused(monkeypatch, model, verify):
    """Not frozen: a trace has constants there, which nothing but what they were made by tells."""
    monkeypatch.setattr(factories, "_make", lambda *args: None)
    with pytest.raises(CompatError, match=r"torch.Tensor\(\) of a size"):
        export_compat(model(), torch.rand(8, 5), exporter="torchscript", dynamic={"x": {0: "n"}}, verify=verify)


class InBranches(nn.Module):
    """An ONNX If has branches that read tensors from outside: these are made inside."""

    def forward(self, x):
        if x.shape[0] < 4:
            return x * torch.tensor([1.5, 2.0, 3.0, -1.0])
        best = x.topk(4, dim=0).values.sum(0, keepdim=True)
        return best + x * torch.FloatTensor([1, 2, 3, 4]) + torch.tensor([[x.shape[0]], [3]])[0] + torch.Tensor([0.5])


class InRounds(nn.Module):
    def forward(self, x):
        y = x
        for number in range(x.shape[0]):
            y = y + x[number] * torch.tensor([1.5, 2.0, 3.0, -1.0]) + torch.tensor([[number, 2, 3, 4]])
            y = torch.cat([y, y.new_zeros(0, 4) + torch.tensor([])[:, None]]).relu() + torch.tensor([True, False] * 2)
        return y


@pytest.mark.parametrize("model", [InBranches, InRounds])
def test_constants_of_branches_and_rounds(model, exporter):
    result = export_compat(model(), torch.randn(6, 4), exporter=exporter, dynamic="batch")
    for n in (1, 3, 4, 9):
        x = torch.randn(n, 4)
        torch.testing.assert_close(result(x)[0], model()(x), rtol=1e-4, atol=1e-4)
