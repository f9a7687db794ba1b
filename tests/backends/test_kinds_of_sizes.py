"""What the model's code is told a size is, whatever asks: the number that it is in eager torch.

What hangs on the answer shows at few values only, which no proof need try.
"""

import functools
from collections.abc import Callable, Iterable

import numpy as np
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat

check_kind = isinstance


def compare(model, result, x):
    session = result.session()
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_allclose(found, model(x).numpy(), rtol=1e-4, atol=1e-5)


@functools.singledispatch
def is_whole(_):
    return False


@is_whole.register
def _(_: int):
    return True


def has_item(size):
    try:
        size.item()
    except AttributeError:
        return False
    return True


def matches(size):
    match size:
        case int():
            return True
    return False


TESTS: dict[str, Callable[..., bool]] = {
    "isinstance": lambda n: isinstance(n, int),
    "another name": lambda n: check_kind(n, int),
    "type": lambda n: type(n) is int,
    "class": lambda n: n.__class__ is int,
    "name of the class": lambda n: n.__class__.__name__ == "int",
    "is_tensor": lambda n: not torch.is_tensor(n),
    "hasattr": lambda n: not hasattr(n, "item"),
    "getattr": lambda n: getattr(n, "shape", None) is None,
    "an attribute": lambda n: not has_item(n),
    "iterable": lambda n: not isinstance(n, Iterable),
    "numpy": lambda n: bool(np.isscalar(n)),
    "dispatch": lambda n: is_whole(n),
    "pattern": lambda n: matches(n),
    "a quotient": lambda n: isinstance(n / 2, float),
    "a comparison": lambda n: isinstance(n > 3, bool),
}


class Asks(nn.Module):
    def __init__(self, test):
        super().__init__()
        self.test = test

    def forward(self, x):
        return torch.where(x > 1000, 0.0, x) if self.test(x.shape[0]) else x * 1.0


class AsksBehindValues(Asks):
    """The example does not come to the question."""

    def forward(self, x):
        if float(x.abs().max()) > 1:
            return torch.sigmoid(x)
        if self.test(x.shape[0]) and x.shape[0] > 2:
            return torch.where(x == 0.5, 0.0, x)
        return x * 1.0


@pytest.mark.parametrize("name", TESTS)
def test_a_size_is_a_number_whatever_asks(name, exporter):
    model = Asks(TESTS[name])
    result = export_compat(model, torch.randn(3, 5), dynamic={"x": {0: "b"}}, exporter=exporter)
    for x in (torch.full((2, 5), 2000.0), torch.randn(4, 5)):
        compare(model, result, x)


@pytest.mark.parametrize("name", ["isinstance", "type", "hasattr", "pattern", "class"])
def test_a_size_is_a_number_in_a_branch(name):
    model = AsksBehindValues(TESTS[name])
    result = export_compat(model, torch.full((3, 5), 2.0), dynamic={"x": {0: "b"}}, exporter="torchscript")
    for x in (torch.full((3, 5), 0.5), torch.full((2, 5), 0.5), torch.full((4, 5), 3.0)):
        compare(model, result, x)


def test_a_tensor_of_a_size_is_none():
    model = Asks(lambda n: torch.is_tensor(torch.as_tensor(n)) and torch.as_tensor(n).float().dim() == 0)
    result = export_compat(model, torch.randn(3, 5), dynamic={"x": {0: "b"}}, exporter="torchscript")
    compare(model, result, torch.full((2, 5), 2000.0))


class Refused(RuntimeError):
    pass


class Checks(nn.Module):
    """As einops: a handler around the check is there for errors of another class."""

    def checked(self, length):
        if isinstance(length, int) and length % 2 != 0:
            raise Refused(f"{length} is odd")
        return length // 2

    def forward(self, x):
        try:
            half = self.checked(x.shape[1])
        except TypeError:
            half = 1
        return x.reshape(x.shape[0], 2, half).sum(1)


def test_a_check_whose_handler_is_for_other_errors(exporter):
    model = Checks()
    result = export_compat(model, torch.randn(3, 6), dynamic={"x": {0: "b", 1: "n"}}, exporter=exporter)
    assert not result.source, "nothing had to be rewritten"
    for x in (torch.randn(2, 8), torch.randn(1, 2)):
        compare(model, result, x)
