"""Programs whose parts share memory, or refer to one another: by views, weakly, from functions in containers."""

import weakref

import torch
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=3 4")
class ArrayOfBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(4))
        self.array = self.table.numpy()

    def forward(self, x):
        self.array[1] += 2
        return x + self.table


@program(x="float batch=3 4")
class ClippedWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-3, 3, 16).view(4, 4))
        self.clipped = self.weight.data

    def forward(self, x):
        self.clipped.clamp_(-1, 1)
        return x @ self.weight


@program(x="float batch=3 4")
class BufferOfAnother(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("whole", torch.zeros(4))
        self.register_buffer("part", self.whole[1:3])

    def forward(self, x):
        self.part.add_(2)
        return x + self.whole


@program(x="float batch=3 4")
class FunctionsInList(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 1.0
        self.steps = [lambda x: x * self.factor, (lambda x: x + self.factor,)]

    def forward(self, x):
        self.factor = 3.0
        return self.steps[0](x), self.steps[1][0](x)


class _OfParent(nn.Module):
    def __init__(self, parent):
        super().__init__()
        self.parent = weakref.ref(parent)

    def forward(self, x):
        return x + self.parent().size


@program(x="float batch=3 4")
class WeakParent(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 0
        self.child = _OfParent(self)

    def forward(self, x):
        self.size = x.shape[1]
        return self.child(x)
