"""A copy of a model refers to its own parts, wherever the model refers to its own: weakly, and from functions."""

import weakref

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.twin import twin_of


class Child(nn.Module):
    def __init__(self, parent):
        super().__init__()
        self.parent = parent

    def forward(self, x):
        return x * self.parent().scale


class Model(nn.Module):
    """Reads its scale in a way of its own, after forward has set it."""

    def __init__(self):
        super().__init__()
        self.scale = 1.0
        self.take()

    def forward(self, x):
        self.scale = 3.0
        return self.apply_scale(x)

    def scaled(self, x):
        return x * self.scale


class WeakParent(Model):
    def take(self):
        self.child = Child(weakref.ref(self))

    def apply_scale(self, x):
        return self.child(x)


class Proxy(Model):
    def take(self):
        self.itself = [weakref.proxy(self)]

    def apply_scale(self, x):
        return x * self.itself[0].scale


class WeakMethod(Model):
    def take(self):
        self.method = weakref.WeakMethod(self.scaled)

    def apply_scale(self, x):
        return self.method()(x)


class WeakTables(Model):
    def take(self):
        self.values = weakref.WeakValueDictionary(me=self)
        self.keys = weakref.WeakKeyDictionary({self: 2.0})
        self.all = weakref.WeakSet([self])

    def apply_scale(self, x):
        return self.values["me"].scaled(x) * self.keys.get(self, 5.0) * len([one for one in self.all if one is self])


class Settings:
    scale = 1.0


class WeakSettings(Model):
    """The reference is met before what it refers to, which is no module."""

    def take(self):
        settings = Settings()
        self.reference = weakref.ref(settings)
        self.settings = settings

    def apply_scale(self, x):
        self.settings.scale = 2.0
        return self.scaled(x) * self.reference().scale


class InList(Model):
    def take(self):
        self.functions = [lambda x: x * self.scale]

    def apply_scale(self, x):
        return self.functions[0](x)


class InItself(InList):
    def take(self):
        super().take()
        self.functions.append(self.functions)


class InTuple(Model):
    def take(self):
        self.functions = {"a": [(1, lambda x: x * self.scale)]}

    def apply_scale(self, x):
        return self.functions["a"][0][1](x)


class InObject(Model):
    def take(self):
        self.settings = Settings()
        self.settings.function = lambda x: x * self.scale

    def apply_scale(self, x):
        return self.settings.function(x)


MODELS = [WeakParent, Proxy, WeakMethod, WeakTables, WeakSettings, InList, InItself, InTuple, InObject]


@pytest.mark.parametrize("kind", MODELS)
def test_a_copy_reads_what_is_its_own(kind):
    model = kind().eval()
    wanted = kind().eval()(torch.ones(2))
    assert torch.equal(twin_of(model)(torch.ones(2)), wanted)
    assert wanted[0] >= 3
    assert model.scale == 1
    assert torch.equal(model(torch.ones(2)), wanted)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("kind", [WeakParent, InList, InTuple, InObject])
def test_files_are_right(kind, exporter, tmp_path):
    export_compat(kind().eval(), torch.ones(2, 3), tmp_path / "m.onnx", dynamic={"x": {0: "b"}}, exporter=exporter)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for size in (1, 2, 5):
        x = torch.rand(size, 3)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], kind().eval()(x).numpy(), rtol=1e-6)


class Outside(Model):
    """Refers to what is no part of it, and to what is gone."""

    def take(self):
        self.reference = weakref.ref(OTHER)
        gone = Settings()
        self.gone = weakref.ref(gone), weakref.proxy(gone)


OTHER = Settings()


def test_references_to_others_stay():
    twin = twin_of(Outside())
    assert twin.reference() is OTHER
    assert twin.gone[0]() is None
