"""What shares memory in a model shares it in the copy of it, and in no other way with the caller's model."""

import copy

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.twin import twin_of


class Kept(nn.Module):
    """Has a buffer and a parameter of four values; a class of it writes through another name for a part of them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("values", torch.zeros(4))
        self.weight = nn.Parameter(torch.zeros(4))
        self.view = self.make_view()

    def forward(self, x):
        self.write(self.view)
        return x + self.values[2] + self.weight[2]


class ArrayOfBuffer(Kept):
    def make_view(self):
        return self.values.numpy()

    def write(self, view):
        view[2] += 3


class ArrayBackwards(ArrayOfBuffer):
    def make_view(self):
        return [{"part": self.values.numpy()[::-1]}]

    def write(self, view):
        view[0]["part"][1] = 3


class ArrayOfParameter(ArrayOfBuffer):
    def make_view(self):
        return self.weight.detach().numpy()


class TensorOfArray(ArrayOfBuffer):
    def make_view(self):
        array = np.zeros(4, np.float32)
        self.part = array[1:3]  # is copied before the whole
        self.values = torch.from_numpy(array)
        return array

    def write(self, view):
        self.part[1] = 3


class ViewInObjects(ArrayOfBuffer):
    def make_view(self):
        whole = np.array([None, self.values[2:]], dtype=object)
        return whole, whole[1:]

    def write(self, view):
        view[1][0].fill_(3)


class TwoBuffers(ArrayOfBuffer):
    def make_view(self):
        self.register_buffer("other", self.values[1:3])

    def write(self, view):
        self.other.add_(3)


class TensorOfParameter(ArrayOfBuffer):
    def make_view(self):
        return self.weight.data.view(2, 2).t()

    def write(self, view):
        view[0, 1] = 3


class Storage(ArrayOfBuffer):
    def make_view(self):
        return self.values.untyped_storage()

    def write(self, view):
        view.fill_(0x40)


class View(ArrayOfBuffer):
    def make_view(self):
        return memoryview(self.values.numpy())


class ListedParameter(ArrayOfBuffer):
    def make_view(self):
        listed = nn.Parameter(self.values[:3])
        return [listed, listed.detach().numpy()]

    def write(self, view):
        view[1][2] = 3


MODELS = [
    ArrayOfBuffer,
    ArrayBackwards,
    ArrayOfParameter,
    TensorOfArray,
    ViewInObjects,
    TwoBuffers,
    TensorOfParameter,
    Storage,
    View,
    ListedParameter,
]


@pytest.mark.parametrize("kind", MODELS)
def test_a_copy_computes_the_same(kind):
    model, x = kind().eval(), torch.ones(2)
    before = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        found = [twin_of(model)(x) for _ in range(2)]
        assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
        wanted = kind().eval()(x)
    assert torch.equal(found[0], wanted)
    assert torch.equal(found[1], wanted)
    assert not torch.equal(wanted, x)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("kind", MODELS)
def test_no_file_is_wrong(kind, exporter, tmp_path):
    model, file = kind().eval(), tmp_path / "model.onnx"
    before = copy.deepcopy(model.state_dict())
    try:
        export_compat(model, torch.ones(2, 4), file, dynamic={"x": {0: "batch"}}, exporter=exporter)
    except CompatError:
        assert not file.exists()
    else:
        session = onnxruntime.InferenceSession(file)
        for size in (1, 2, 5):
            x = torch.rand(size, 4)
            wanted = kind().eval()(x).detach().numpy()
            np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], wanted, rtol=1e-6)
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())


class ReadOnly(nn.Module):
    """Has values under several names that share memory, and writes to none."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 3))
        self.turned = self.weight.data.t()
        self.register_buffer("row", self.weight.data[0])
        self.array = self.weight.detach().numpy()
        self.register_buffer("one", torch.rand(1).expand(3))
        self.rows = [self.weight.detach()[1], self.row[1:]]

    def forward(self, x):
        known = self.weight.sum(0) + self.turned[:, 1] + self.row + self.one
        return x * known + float(self.array.sum()) + self.rows[0] + self.rows[1][0]


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_what_is_only_read_is_exported(exporter, tmp_path):
    model = ReadOnly().eval()
    export_compat(model, torch.ones(2, 3), tmp_path / "m.onnx", dynamic={"x": {0: "batch"}}, exporter=exporter)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for size in (1, 2, 5):
        x = torch.rand(size, 3)
        found = session.run(None, {"x": x.numpy()})[0]
        np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5)


def test_parts_that_do_not_overlap_have_memory_of_their_own():
    """A small view of large memory does not copy all of it."""
    model = nn.Module()
    model.register_buffer("part", torch.zeros(2**20)[:4])
    assert twin_of(model).part.untyped_storage().nbytes() == 16


def test_other_copies_of_arrays_are_python_s():
    array = np.array([1.0, 2.0])
    assert copy.deepcopy({"a": array})["a"].base is None
