"""Which functions are noted once a tensor stands for a number, and which libraries are followed."""

import sys

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.caller.reach import is_followed
from torch_onnx_compat.control_flow.find.users import NumberUsers, PauseInCalls
from torch_onnx_compat.watch import Watcher


class AfterBegin(nn.Module):
    def forward(self):
        return 1


class BeforeBegin(nn.Module):
    def forward(self):
        return 2


class FailsInPause(nn.Module):
    def forward(self):
        assert sys.getprofile() is None
        raise ValueError("within")


def test_a_pause_notes_nothing():
    users = NumberUsers()
    before = sys.getprofile()
    with users.watch():
        with users.pause():  # nothing is noted yet
            BeforeBegin()()
        users.begin()
        with pytest.raises(ValueError, match="within"), users.pause():
            FailsInPause()()
        AfterBegin()()
    assert sys.getprofile() is before
    assert AfterBegin.forward.__code__ in users.codes
    assert not {BeforeBegin.forward.__code__, FailsInPause.forward.__code__} & set(users.codes)


@pytest.mark.parametrize(
    ("module", "is_models"), [("sympy.core.add", False), ("mpmath", False), ("networkx", True), ("einx._src", True)]
)
def test_the_arithmetic_of_sizes_is_not_followed(module, is_models):
    """sympy alone has more functions than are followed, and each decision would look at what they hold.

    A model may keep a graph of networkx, which torch requires too, and change it in a branch.
    """
    assert is_followed(module) is is_models


def test_what_runs_at_the_beginning_is_returned_to():
    users = NumberUsers()

    class Inner(nn.Module):
        def forward(self):
            users.begin()

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self):
            self.inner()

    with users.watch():
        Outer()()
    assert {Inner.forward.__code__, Outer.forward.__code__} <= set(users.codes)


def test_nothing_is_noted_inside_of_torchs_c_functions():
    inside = {}

    class Look(Watcher):
        def watch(self, func, args, kwargs):
            inside[func] = sys.getprofile()
            return self.pass_on(func, args, kwargs)

    class Calls(nn.Module):
        def forward(self, x):
            users.begin()
            return nn.functional.gelu(torch.relu(x))

    users = NumberUsers()
    with users.watch(), Look(), PauseInCalls(users):
        Calls()(torch.ones(2))
        AfterBegin()()
        assert sys.getprofile() is not None
    assert inside[torch.relu] is inside[nn.functional.gelu] is None
    assert {Calls.forward.__code__, AfterBegin.forward.__code__} <= set(users.codes)


def scaled(x, least):
    if not isinstance(least, torch.Tensor):
        return x * torch.Tensor([least]).to(x)
    return x * 0


DECORATORS = {
    "autocast": torch.autocast("cpu", enabled=False),
    "autocast, of a device that is absent": torch.amp.autocast("cuda", enabled=False),
    "custom_fwd": torch.amp.custom_fwd(device_type="cuda"),
    "compiler.disable": torch.compiler.disable,
    "no_grad": torch.no_grad(),
}


class Decorated(nn.Module):
    def __init__(self, decorator):
        super().__init__()
        self.function = decorator(scaled)

    def forward(self, x):
        return self.function(x, min(4.5, x.shape[0]))


@pytest.mark.parametrize("name", DECORATORS)
def test_what_a_decorator_of_torch_calls_is_the_models(name, exporter):
    """The function hears that the number is none of torch's tensors."""
    model = Decorated(DECORATORS[name])
    result = export_compat(model, torch.randn(3, 4), dynamic="batch", exporter=exporter)
    for size in (1, 4, 5, 9):
        x = torch.randn(size, 4)
        torch.testing.assert_close(result(x)[0], model(x))
