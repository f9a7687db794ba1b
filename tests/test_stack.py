import copy
import sys

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.rewrite import calling_module, module_paths
from torch_onnx_compat.stack import frames, own_stacks

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*torch.jit.*is deprecated:FutureWarning", "ignore:.*torch.jit.*:DeprecationWarning"
)


def depth():
    frame, count = sys._getframe(1), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


class Leaf(nn.Module):
    def forward(self, x):
        self.depth, self.depth_across = depth(), len(list(frames()))
        self.path = calling_module(self.paths) if hasattr(self, "paths") else ""
        return x + 1


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Sequential(nn.Sequential(Leaf())))

    def forward(self, x):
        return self.body(x)

    @property
    def leaf(self):
        return self.body[0][0][0]


def test_a_traced_forward_has_a_stack_of_its_own():
    """Fails when torch calls forward in another way while it traces: then exports are slower, not wrong."""
    model = Tree()
    with own_stacks(model):
        torch.jit.trace(model, torch.ones(2), check_trace=False)
    assert model.leaf.depth <= 3
    assert model.leaf.depth_across > 15
    assert "_slow_forward" not in vars(model.leaf)


def test_eager_calls_are_as_ever():
    model = Tree()
    with own_stacks(model):
        model(torch.ones(2))
    assert model.leaf.depth == model.leaf.depth_across > 15


def test_callers_are_found_across_stacks():
    model = Tree()
    model.leaf.paths = module_paths(model)
    with own_stacks(model):
        torch.jit.trace(model, torch.ones(2), check_trace=False)
    assert model.leaf.path == "body.0.0.0"


def test_errors_come_through_with_their_places():
    class Fails(nn.Module):
        def forward(self, x):
            raise ZeroDivisionError("of all things")

    model = nn.Sequential(Fails())
    with own_stacks(model), pytest.raises(ZeroDivisionError, match="of all things") as caught:
        torch.jit.trace(model, torch.ones(2))
    assert caught.traceback[-1].name == "forward"
    assert "_slow_forward" not in vars(model[0])


def test_a_module_that_forward_copies_calls_itself():
    class Copies(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            other = copy.deepcopy(self.layer)
            other.bias = nn.Parameter(torch.full((2,), 5.0))
            return other(x) - self.layer(x)

    result = export_compat(Copies(), torch.ones(1, 2), exporter="torchscript")
    assert result.table


def test_scripted_modules_are_left_alone():
    model = nn.Sequential(torch.jit.script(nn.Linear(2, 2)))
    with own_stacks(model):
        torch.jit.trace(model, torch.ones(1, 2))
