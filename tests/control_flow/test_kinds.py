"""Names that are a tensor after one branch and None, or a longer list, after the other; liveness in loops."""

import importlib.util

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import CompatError, export_compat

X = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))


def compare(model, result, *inputs):
    wanted = model(*inputs)
    names = [value.name for value in result.session().get_inputs()]
    (found,) = result.session().run(None, {n: t.numpy() for n, t in zip(names, inputs, strict=True)})
    assert found.shape == tuple(wanted.shape)
    np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-4, atol=1e-5)


class Padding(nn.Module):
    """The mask is None where nothing is to be masked."""

    def forward(self, x):
        padding = None
        if (x > 5).any():
            padding = (x > 5).any(2)
        y = x * 2
        if padding is not None:
            y = y.masked_fill(padding.unsqueeze(2), 0.0)
        return y.sum(1)


class Choice(nn.Module):
    """The same as an expression over several lines, annotated."""

    def forward(self, x):
        high = x > 5
        padding: torch.Tensor | None = (
            high.any(2)
            if high.any()
            else None
        )  # fmt: skip
        return x * 2 if padding is None else (x * 2).masked_fill(padding.unsqueeze(2), 0.0)


class Items(nn.Module):
    """A list of one item or of two."""

    def forward(self, x):
        parts = [x]
        if x.sum() > 50:
            parts = [x, x * 3]
        return sum(parts)


class Inside(nn.Module):
    """The decision is inside another one, which is fixed, and in a nested function."""

    def __init__(self, flag=True):
        super().__init__()
        self.flag = flag

    def forward(self, x):
        def limited(y):
            top = None
            if self.flag:
                if y.max() > 5:
                    top = y.max() / 2
                y = y + 1
            return y if top is None else y.clamp(max=top)

        return limited(x) * 2


class Twice(nn.Module):
    """Two such decisions, one after the other."""

    def forward(self, x):
        low, high = None, None
        if x.min() < -5:
            low = x.min() / 2
        if x.max() > 5:
            high = x.max() / 2
        y = x * 3
        if low is not None:
            y = y.clamp(min=low)
        if high is not None:
            y = y.clamp(max=high)
        return y


class Longer(nn.Module):
    """The result is longer after one branch."""

    def forward(self, x):
        parts = [x]
        if x.sum() > 0:
            parts.append(x * 2)
        return torch.cat(parts)


LONGER = pytest.param(Longer, marks=pytest.mark.dynamo_from("2.9", "branches of torch.cond have one shape"))


class Texts(nn.Module):
    """A text is chosen."""

    def forward(self, x):
        mode = "nearest" if x.sum() > 0 else "linear"
        return F.interpolate(x, scale_factor=2.0, mode=mode)


class Layers(nn.Module):
    """A module is chosen."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        layer = self.a if x.sum() > 0 else self.b
        return layer(x)


@pytest.mark.one_exporter
@pytest.mark.parametrize("kind", [Padding, Choice, Items, Inside, Twice, LONGER, Texts, Layers])
def test_names_of_several_kinds(kind, exporter):
    model = kind().eval()
    result = export_compat(model, X, dynamic={"x": {0: "b"}}, exporter=exporter)
    for scale in (1.0, 30.0, -30.0, 0.01):
        compare(model, result, scale * X)
        compare(model, result, scale * torch.randn(3, 4, 3))


class OtherMask(nn.Module):
    """A causal mask where the keys are more than the queries."""

    def forward(self, q, k):
        mask = None
        if k.shape[1] > q.shape[1]:
            mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1])
        scores = q @ k.transpose(1, 2)
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return scores.softmax(-1)


@pytest.mark.dynamo_from("2.10", "torch writes a file that is wrong for a single query")
def test_a_mask_that_sizes_decide(exporter):
    model = OtherMask()
    axes = {"q": {1: "n"}, "k": {1: "m"}}
    result = export_compat(model, (X, torch.randn(2, 6, 3)), dynamic=axes, exporter=exporter)
    for n, m in ((4, 6), (4, 4), (5, 3), (2, 9)):
        compare(model, result, torch.randn(2, n, 3), torch.randn(2, m, 3))


class MixtureOfExperts(nn.Module):
    """As Mixtral computes it: what a round binds is of another shape in the next one."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        flat = x.reshape(-1, 8)
        weights, chosen = self.gate(flat).softmax(-1).topk(2)
        out = torch.zeros_like(flat)
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        for index, expert in enumerate(self.experts):
            idx, top = torch.where(mask[index])
            if top.shape[0] == 0:
                continue
            current = flat[None, top].reshape(-1, 8)
            current = expert(current) * weights[top, idx, None]
            out.index_add_(0, top, current)
        return out.reshape(x.shape)


def test_mixture_of_experts(exporter):
    torch.manual_seed(0)
    model = MixtureOfExperts().eval()
    result = export_compat(model, torch.randn(2, 5, 8), dynamic={"x": {0: "b", 1: "t"}}, exporter=exporter)
    compare(model, result, torch.randn(3, 7, 8))
    compare(model, result, torch.randn(1, 1, 8))  # some experts have nothing to do


class SkipsTheLast(nn.Module):
    """What the decision binds is bound again, but not in the round that goes on early."""

    def forward(self, x):
        y = x
        for i in range(3):
            if x.sum() > 50:
                y = x * 2
            if i == 2:
                continue
            y = x + 1
        return y


class BreaksInTheLast(nn.Module):
    def forward(self, x):
        y = x
        for i in range(3):
            if x.sum() > 50:
                y = x * 2
            if i == 2:
                break
            y = x + 1
        return y


class CarriesOver(nn.Module):
    """What a round binds is read in the next round, before it is bound."""

    def forward(self, x):
        last, y = x, x
        for _ in range(3):
            y = y + last
            if x.sum() > 50:
                last = x * 2
            if x.sum() > 5000:
                continue
            y = y * 2
        return y


@pytest.mark.parametrize("kind", [SkipsTheLast, BreaksInTheLast, CarriesOver])
def test_what_is_live_at_the_end_of_a_round(kind, exporter):
    model = kind()
    result = export_compat(model, X.abs(), exporter=exporter)
    for scale in (0.1, 1.0, 10.0, 1000.0):
        compare(model, result, scale * X.abs())


def is_number(value):
    return isinstance(value, (int, float))


class NumberOrTensor(nn.Module):
    """A number after one branch, a tensor after the other; a helper asks which."""

    def forward(self, x):
        y = 0 if x.sum() > 0 else x
        return x + 1 if is_number(y) else y * 2


class MeanOrNumber(nn.Module):
    """The tensor has one element, as a number has."""

    def forward(self, x):
        scale = x.mean()
        if x.shape[0] > 4:
            scale = 1.5
        return x - 1 if torch.is_tensor(scale) else x * scale


@pytest.mark.parametrize("kind", [NumberOrTensor, MeanOrNumber])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_or_a_tensor(kind, sign, exporter):
    model = kind().eval()
    result = export_compat(model, X.abs() * sign, dynamic={"x": {0: "b"}}, exporter=exporter)
    for rows in (1, 3, 7):
        for x in (torch.rand(rows, 4, 3) + 0.1, -torch.rand(rows, 4, 3) - 0.1):
            compare(model, result, x)


class OneNumberOrAnother(nn.Module):
    """A number after both branches, and one of another type that is computed of it."""

    def forward(self, x):
        n = 3 if x.sum() > 0 else 5
        y = x * 2 if isinstance(n, torch.Tensor) else x * n
        return y + 1 if type(n / 2) is float else y


class SizeOrNone(nn.Module):
    """One size or another, with which a decision began that sizes take."""

    def forward(self, x):
        n = x.shape[1] if x.shape[0] % 2 else 0
        n = n.clone() if isinstance(n, torch.Tensor) else n
        return x * (n if isinstance(n, int) else 7)


class TensorOfSize(nn.Module):
    """A tensor that the model makes of a number is none."""

    def forward(self, x):
        n = x.shape[0] if x.sum() > 0 else 7
        m = torch.as_tensor(n)
        return x + (m if torch.is_tensor(m) and not torch.is_tensor(n) else 100)


class Truth(nn.Module):
    """What compares or negates is a bool, which a tensor stands for as well."""

    def forward(self, x):
        flag = x.shape[0] > 2 if x.sum() > 0 else False
        if flag is True:
            return x * 2
        return x * 3 if isinstance(not flag, bool) and hasattr(flag, "real") and not hasattr(flag, "shape") else x


class IntOrFloat(nn.Module):
    """Numbers of two types."""

    def forward(self, x):
        n = 0.1 if x.sum() > 0 else 3
        return x.double() * n + (1 if isinstance(n, float) else 2)


@pytest.mark.one_exporter
@pytest.mark.parametrize("kind", [OneNumberOrAnother, SizeOrNone, TensorOfSize, Truth, IntOrFloat])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_after_both_branches(kind, sign, exporter):
    """Without a proof, which would refuse a wrong answer too."""
    model = kind().eval()
    result = export_compat(model, X.abs() * sign, dynamic={"x": {0: "b"}}, exporter=exporter, verify=False)
    for rows in (1, 2, 3, 7):
        for x in (torch.rand(rows, 4, 3) + 0.1, -torch.rand(rows, 4, 3) - 0.1):
            compare(model, result, x)


class ChecksSizes(nn.Module):
    """As einops checks sizes: only where they are numbers, which they are not in a trace."""

    def check(self, length):
        if isinstance(length, int) and length % 4 not in (0, 1, 2, 3):
            raise ValueError(f"{length} is no such size")
        return length

    def forward(self, x):
        n = 2 if x.sum() > 0 else 3
        try:
            return x.reshape(self.check(x.shape[0]), -1) * n
        except TypeError:
            return x.flatten(1)


class AsksPlainly(nn.Module):
    """No decision at all: the file of a plain trace is wrong at the example."""

    def forward(self, x):
        return x * 2 if is_number(x.shape[0] + 1) and isinstance(x.shape[0], int) else x * 3


@pytest.mark.parametrize(("kind", "verify"), [(ChecksSizes, True), (ChecksSizes, False), (AsksPlainly, True)])
def test_sizes_that_code_asks_about(kind, verify, exporter):
    model = kind().eval()
    result = export_compat(model, X.abs(), dynamic={"x": {0: "b"}}, exporter=exporter, verify=verify)
    for rows in (1, 3, 7):
        for x in (torch.rand(rows, 4, 3) + 0.1, -torch.rand(rows, 4, 3) - 0.1):
            compare(model, result, x)


@pytest.mark.parametrize(("caught", "is_refused"), [("TypeError", False), ("(KeyError, ValueError)", True), ("", True)])
def test_a_check_whose_error_is_caught(caught, is_refused, tmp_path):
    """A handler of another class does not catch it, so the check may be dropped."""
    source = f"""
import torch

class Checked(torch.nn.Module):
    def check(self, x):
        if x.sum() > 100:
            raise ValueError("too large")
        return x * 2

    def forward(self, x):
        try:
            return self.check(x)
        except {caught}:
            return x * 3
"""
    (tmp_path / "checked_model.py").write_text(source.replace("except :", "except:"))
    spec = importlib.util.spec_from_file_location("checked_model", tmp_path / "checked_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if is_refused:
        with pytest.raises(CompatError, match="caught around"):
            export_compat(module.Checked().eval(), X, exporter="torchscript")
        return
    compare(module.Checked(), export_compat(module.Checked().eval(), X, exporter="torchscript"), X)


def test_the_largest_of_several_types_is_refused_where_it_decides(exporter):
    class Largest(nn.Module):
        def forward(self, x):
            n = max(2 if x.sum() > 0 else 1, x.shape[0] / 2)
            return x * 2 if isinstance(n, int) else x * 3

    with pytest.raises(CompatError, match=r"not of one type|data-dependent"):
        export_compat(Largest(), X, dynamic={"x": {0: "b"}}, exporter=exporter)


class SetOfTwo(nn.Module):
    """A method of a container that takes any number of arguments."""

    def forward(self, x):
        seen = set()
        if x.sum() > 0:
            seen.update([1], [2])
        return x + len(seen)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_set_that_a_branch_updates(sign, exporter):
    model = SetOfTwo().eval()
    result = export_compat(model, X.abs() * sign, dynamic={"x": {0: "b"}}, exporter=exporter)
    for x in (X.abs(), -X.abs()):
        compare(model, result, x)


def checked(x):
    """A generator, in which no decision is rewritten."""
    if x.max() > 5:
        raise ValueError("too large")
    yield x * 2


class ChecksInGenerator(nn.Module):
    """On the example the branch that is not taken raises; elsewhere it does not."""

    def forward(self, x):
        if x.sum() > 50:
            for y in checked(x):
                return y
        return x * 3


def test_a_check_that_fails_in_a_branch_is_no_mere_check():
    x = torch.cat([torch.full((1, 3), 6.0), torch.full((3, 3), -2.0)])
    with pytest.raises(CompatError, match="would freeze"):
        export_compat(ChecksInGenerator().eval(), x, exporter="torchscript", verify=False)


# Numbers that a branch of an ONNX If reads


def halved_if_number(x, number):
    return x * 0.5 + number if not isinstance(number, torch.Tensor) else x * number


def asked_in_an_if(x):
    rows = x.shape[0]
    if rows < 4:
        return x
    return halved_if_number(x, rows * 2) + x.topk(4, dim=0).values.sum(0)


def asked_of_either_in_an_if(x):
    rows = x.shape[0]
    least = min(6.5, rows)
    if rows < 4:
        return x
    return halved_if_number(x, least) + halved_if_number(x, max(rows, 7.5)) + x.topk(4, dim=0).values.sum(0)


@pytest.mark.parametrize("model", [asked_in_an_if, asked_of_either_in_an_if])
def test_numbers_are_numbers_in_an_if(model, exporter):
    result = export_compat(model, torch.randn(9, 4), exporter=exporter, dynamic="batch")
    for rows in (1, 3, 4, 6, 7, 8, 12):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(result(x)[0], model(x), rtol=1e-4, atol=1e-5)
