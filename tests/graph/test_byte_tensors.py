"""Tensors of bytes, such as pictures, for targets that have them at a file's inputs and outputs alone."""

from collections import Counter

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.engines.compare import reference
from torch_onnx_compat.engines.type_probes import BYTES, type_probes
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.graph.adapt.adapt import adapt_to_target
from torch_onnx_compat.graph.adapt.byte_tensors import DATA
from torch_onnx_compat.targets import Target, load_target

UINT8 = onnx.TensorProto.UINT8
REFUSED = frozenset({*DATA, "Add"})
PICKY = Target("picky", opset=17, types={"uint8": {"refused": REFUSED}, "int8": {"refused": REFUSED}})
PROBES = [probe for probe in type_probes() if probe.name.endswith(f"_as_{BYTES}")]


def of_bytes(model):
    """The operators that read bytes."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    values = (*inferred.input, *inferred.value_info, *inferred.output)
    kinds = {value.name: value.type.tensor_type.elem_type for value in values}
    kinds |= {weight.name: weight.data_type for weight in inferred.initializer}
    return Counter(node.op_type for node in inferred.node if any(kinds.get(name) == UINT8 for name in node.input))


def test_every_operator_that_gives_the_same_is_tried():
    assert DATA.keys() == {probe.op_type for probe in PROBES}


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_an_operator_in_float32_gives_the_same(probe):
    model = ir.from_proto(probe.model)
    counts = adapt_to_target(model, PICKY)
    assert counts["tensors of bytes"] == 1
    made = ir.to_proto(model)
    assert set(of_bytes(made)) <= {"Cast"}
    wanted = reference(probe.model.SerializeToString(), probe.feeds)
    for a, b in zip(reference(made.SerializeToString(), probe.feeds), wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


class Camera(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, picture):
        turned = picture[..., [2, 1, 0]].permute(0, 3, 1, 2)
        return self.conv(turned[:, :, ::2].float() / 255), turned.amax((2, 3)), torch.maximum(picture, picture[:, :1])


@pytest.fixture
def camera():
    torch.manual_seed(0)
    return Camera().eval(), torch.randint(0, 256, (2, 9, 8, 3), dtype=torch.uint8)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_picture_as_a_camera_gives_it(camera, exporter):
    model, picture = camera
    result = export_compat(model, picture, target=PICKY, exporter=exporter, dynamic={"picture": {0: "n", 1: "h"}})
    file = result.model_proto
    assert [value.type.tensor_type.elem_type for value in file.graph.output] == [onnx.TensorProto.FLOAT, UINT8, UINT8]
    assert set(of_bytes(file)) <= {"Cast"}
    to = [node.attribute[0].i for node in file.graph.node if node.op_type == "Cast"]
    assert Counter(to)[UINT8] == 2  # at the outputs alone
    for a, b in zip(result(picture[:1]), model(picture[:1]), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_nothing_changes_where_the_target_has_bytes(camera):
    plain, picky = (export_compat(*camera, target=target).nodes for target in (Target("any", opset=17), PICKY))
    assert plain["Cast"] == 1 < picky["Cast"]
    assert plain["Transpose"] == picky["Transpose"]


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_arithmetic_in_bytes_is_refused(exporter):
    with pytest.raises(UnsupportedError, match="Add refused on picky where type=uint8"):
        export_compat(lambda x: x.flatten(1) + x[:, 0, :1], torch.ones(2, 3, 4).byte(), target=PICKY, exporter=exporter)


def test_a_scatter_that_adds_is_left_alone():
    def add(x, index):
        return x.scatter_add(0, index, x)

    with pytest.raises(UnsupportedError, match="ScatterElements refused"):
        export_compat(add, (torch.full((3, 2), 200).byte(), torch.zeros(3, 2).long()), target=PICKY)


@pytest.mark.parametrize("name", ["tensorrt-10", "tensorrt-11", "tensorrt-rtx"])
def test_tensorrt_gets_a_picture_cast_first(camera, name):
    target = load_target(name)
    assert target.judge("Transpose", 17, {"type": "uint8"}).verdict == "refused"
    result = export_compat(*camera, target=name, dynamic="batch")
    assert set(of_bytes(result.model_proto)) <= {"Cast"}
