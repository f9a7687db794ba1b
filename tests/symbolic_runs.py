"""Runs a function without values and without numbers, for tests of what is heard of its questions."""

import torch
from torch import nn

from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import export_conditions, prepare
from torch_onnx_compat.questions.run import run_symbolically

DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


def run(function, x=None, dynamic=DYNAMIC):
    model = Module(function)
    with export_conditions():
        observation = Observation(
            prepare(model.eval(), (torch.randn(3, 3, 32, 48) if x is None else x,), dynamic=dynamic)
        )
        return run_symbolically(observation, observation.trace_inputs())


class Module(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)
