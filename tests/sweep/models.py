"""Models for sweeps: good ones, one that torch refuses, and four that end badly. A file of factories, not a test."""

import ctypes
import os
import time

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class Doing(nn.Module):
    """Runs a function of Python when it is called."""

    def __init__(self, what):
        super().__init__()
        self.what = what

    def forward(self, x):
        self.what()
        return x + 1


def _example():
    return torch.arange(6.0).reshape(2, 3)


def double():
    return Scale(2.0), _example()


def triple():
    return Scale(3.0), _example()


def half():
    return Scale(0.5), _example()


class Chosen(nn.Module):
    def forward(self, x):
        modes = [("nearest" if x.mean() > limit else "bilinear") for limit in (0, 1)]
        for mode in modes:
            x = nn.functional.interpolate(x, scale_factor=2, mode=mode)
        return x


def chosen():
    return Chosen(), torch.rand(1, 1, 4, 4)


def _eat():
    held = []
    while True:
        held.append(torch.ones(50_000_000))
        time.sleep(0.02)


def hangs():
    return Doing(lambda: time.sleep(1000)), _example()


def segfaults():
    return Doing(lambda: ctypes.string_at(0)), _example()


def aborts():
    return Doing(os.abort), _example()


def eats():
    return Doing(_eat), _example()


def leaves():
    return Doing(lambda: os._exit(7)), _example()


def raises():
    raise ValueError("no such model")


class Wrong(nn.Module):
    """A batch that torch.onnx.export's TorchScript freezes."""

    def forward(self, x):
        return x.view(int(x.shape[0]), -1) * (1 if int(x.shape[0]) > 2 else -1)


def batched():
    from torch_onnx_compat.zoo import Sample

    return Sample(Wrong(), (_example(),), dynamic={"x": {0: "batch"}})


def writes_a_child():
    """Starts a process that would outlive it, then hangs."""

    def start():
        if os.fork() == 0:
            with open("child.pid", "w") as file:
                file.write(str(os.getpid()))
            time.sleep(1000)
        time.sleep(1000)

    return Doing(start), _example()
