"""Entries of one call: those that do nothing are told, and those that may be what is wrong are named."""

import re

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat, rewrite, symbolic
from torch_onnx_compat.errors import CompatError, VerificationError

X = torch.linspace(-1, 1, 8).reshape(2, 4)
BOTH = ("torchscript", "dynamo")


def swish(x):
    return x * torch.sigmoid(1.7 * x)


class Swish(nn.Module):
    def forward(self, x):
        return swish(x)


class Norm(nn.Module):
    def forward(self, x):
        return torch.from_numpy((x / x.norm(dim=-1, keepdim=True)).numpy())


class Plain(nn.Module):
    def forward(self, x):
        return x / x.norm(dim=-1, keepdim=True)


class Wrong(nn.Module):
    def forward(self, x):
        return x + 1


def replacing(what, kind, **need):
    @rewrite(what, registry=None, name="mine", **(need or {"needed_on": BOTH}))
    def entry(module):
        """Another one."""
        return kind()

    return entry


@symbolic("aten::no_such_operator", needed_on=BOTH, registry=None)
def no_such_operator(op, self):
    """Nothing."""
    return op.Relu(self)


@symbolic("aten::relu", needed_on=BOTH, registry=None, name="wrong_relu")
def wrong_relu(op, self):
    """Something else."""
    return op.Neg(self)


@rewrite("*.no_such_swish", needed_on=BOTH, registry=None)
def misspelt(x):
    """The same."""
    return x * torch.sigmoid(1.7 * x)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (misspelt, r"nothing that it replaces, \*.no_such_swish"),
        (no_such_operator, "calls no operator 'aten::no_such_operator'"),
        (replacing("nowhere:package.Class", Plain), "nothing that it replaces, nowhere:package.Class"),
        (replacing(Norm, Plain, always=False), r"needed when included by name; include=\['mine'\] applies it"),
    ],
)
def test_an_entry_that_does_nothing_is_told(entry, why, exporter):
    options = {"symbolics" if entry is no_such_operator else "rewrites": [entry]}
    result = export_compat(Swish().eval(), X, exporter=exporter, **options)
    (note,) = [note for note in result.notes if "given for this call, was not used" in note]
    assert re.search(why, note)
    with pytest.raises(CompatError, match=why):
        export_compat(Norm().eval(), X, exporter=exporter, **options)


def test_an_entry_that_is_applied_or_excluded_is_not_told(exporter):
    entry = replacing(Norm, Plain)
    result = export_compat(Norm().eval(), X, exporter=exporter, rewrites=[entry])
    assert not [note for note in result.notes if "was not used" in note]
    told = export_compat(Swish().eval(), X, exporter=exporter, rewrites=[entry], exclude=["mine"])
    assert [note for note in told.notes if "was not used: excluded." in note]


def test_an_entry_that_is_wrong_is_named(exporter):
    model = nn.Sequential(Norm(), nn.Linear(4, 3)).eval()
    with pytest.raises(VerificationError, match="may be what is wrong: 0: mine applied"):
        export_compat(model, X, exporter=exporter, rewrites=[replacing(Norm, Wrong)])
    with pytest.raises(VerificationError, match="may be what is wrong: the model: wrong_relu applied") as failure:
        export_compat(nn.ReLU().eval(), X, exporter=exporter, symbolics=[wrong_relu])
    assert "contextlib" not in str(failure.value)
