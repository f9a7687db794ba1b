"""export_compat(submodule=...) and export_compat(split=...)."""

from pathlib import Path

import onnx
import pytest
import torch
import torchvision
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.check import chain
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.surgery.on_graph import split as split_module

BOTH = ["torchscript", pytest.param("dynamo", marks=pytest.mark.slow)]
PICTURE = torch.rand(1, 3, 32, 32)


def resnet():
    return torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1]).eval()


def test_a_part_alone(exporter):
    model = resnet()
    result = export_compat(
        model, PICTURE, submodule="layer2", exporter=exporter, dynamic={"x": {0: "batch", 2: "h", 3: "w"}}
    )
    (given,) = result.session().get_inputs()
    assert given.shape == ["batch", 64, "input_2", "input_3"]  # h and w are four times these
    features = torch.rand(2, 64, 9, 7)
    torch.testing.assert_close(result(features)[0], model.layer2(features).detach(), rtol=1e-3, atol=1e-5)


def test_axes_of_one_size_share_a_name():
    class Inner(nn.Module):
        def forward(self, x, *, other):
            return x + other

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            doubled = torch.cat([x, x], 1)
            return self.inner(doubled, other=doubled * 2)

    result = export_compat(
        Outer(), torch.rand(2, 3), submodule="inner", input_names=["one", "two"], dynamic={"x": {0: "n", 1: "m"}}
    )
    assert [(i.name, i.shape) for i in result.session().get_inputs()] == [
        ("one", ["n", "one_1"]),
        ("two", ["n", "one_1"]),
    ]


def test_an_axis_of_which_nothing_is_learnt_is_fixed():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.ReLU()

        def forward(self, x):
            return self.part(x).reshape(4, 3)

    result = export_compat(Model(), torch.rand(4, 3), submodule="part", dynamic={"x": {0: "n"}})
    # The part itself ran at another size before the model refused it, which is not known to be right.
    assert result.session().get_inputs()[0].shape in ([4, 3], ["n", 3])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("layer9", "submodule: the model has no module 'layer9'"),
        ("", "names no part of the model"),
        ("layer1.0.relu", "is called 2 times"),
    ],
)
def test_wrong_parts(path, message):
    with pytest.raises(CompatError, match=message):
        export_compat(resnet(), PICTURE, submodule=path)


@pytest.mark.parametrize("exporter", BOTH)
def test_a_resnet_in_three(exporter, tmp_path):
    model = resnet()
    result = export_compat(
        model, PICTURE, tmp_path / "m.onnx", split=["layer2", "layer4"], exporter=exporter, dynamic="batch"
    )
    assert [(p.name, p.inputs, p.outputs) for p in result.parts] == [
        ("part1", ("x",), ("layer2",)),
        ("part2", ("layer2",), ("layer4",)),
        ("part3", ("layer4",), ("output",)),
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.part1.onnx", "m.part2.onnx", "m.part3.onnx"]
    x = torch.rand(3, 3, 32, 32)
    value = x.numpy()
    for part in result.parts:
        onnx.checker.check_model(part.model_proto, full_check=True)
        value = part(value)
    torch.testing.assert_close(torch.from_numpy(value), model(x).detach(), rtol=1e-3, atol=1e-5)
    whole = sum(t.ByteSize() for t in result.model_proto.graph.initializer)
    parts = sum(t.ByteSize() for p in result.parts for t in p.model_proto.graph.initializer)
    assert parts < 1.01 * whole  # no weight is in two parts


def test_what_passes_a_cut_elsewhere_is_handed_on(exporter):
    class Skips(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x, y):
            early = torch.sin(x)
            first = self.a(early)
            second = self.b(first)
            return {"sum": self.c(second) + early + y, "second": second}

    model = Skips().eval()
    result = export_compat(model, (torch.rand(2, 4), torch.rand(2, 4)), split=["a", "b"], exporter=exporter)
    first, second, third = result.parts
    assert len(first.outputs) == 2
    assert "y" in third.inputs
    assert "y" not in (*first.inputs, *second.inputs)
    assert [o.name for o in result.session().get_outputs()] == ["sum", "second"]


def test_parts_fit_together_by_position(exporter):
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            early = torch.relu(self.a(x))
            second = self.b(early)
            last = torch.sin(second)
            return last - early, last

    model, x = Skip().eval(), torch.rand(2, 4)
    result = export_compat(model, x, split=["a", "b"], exporter=exporter)
    _, middle, end = result.parts
    assert len(middle.outputs) == 2
    assert middle.outputs == end.inputs
    values = [x.numpy()]
    for part in result.parts:
        values = part.session().run(None, dict(zip(part.inputs, values, strict=True)))
    for value, expected in zip(values, model(x), strict=True):
        torch.testing.assert_close(torch.from_numpy(value), expected.detach(), rtol=1e-3, atol=1e-5)


def test_the_composition_is_verified(monkeypatch):
    def broken(self, names, feeds):
        return [feeds["x"]]

    monkeypatch.setattr(chain.Chain, "run_with_ort_values", broken)
    with pytest.raises(VerificationError):
        export_compat(resnet(), PICTURE, split=["layer2"], exporter="torchscript")


def test_a_wrong_partition_is_seen(monkeypatch):
    real = split_module.excerpt

    def broken(model, inputs, outputs, name):
        part = real(model, inputs, outputs, name)
        for node in part.graph:
            if name == "part2" and node.op_type == "Relu":
                node.op_type = "Sigmoid"
        return part

    monkeypatch.setattr(split_module, "excerpt", broken)
    with pytest.raises(VerificationError):
        export_compat(resnet(), PICTURE, split=["layer2"], exporter="torchscript")


def test_cuts_out_of_order():
    with pytest.raises(CompatError, match="nothing is computed between 'layer4' and 'layer2'"):
        export_compat(resnet(), PICTURE, split=["layer4", "layer2"])
    with pytest.raises(CompatError, match="nothing is computed between 'fc' and \"the model's end\""):
        export_compat(resnet(), PICTURE, split=["fc"])


@pytest.mark.parametrize("exporter", BOTH)
def test_outputs_and_split_together(exporter):
    model = resnet()
    result = export_compat(model, PICTURE, outputs=["layer3", "layer1"], split=["layer1"], exporter=exporter)
    assert [o.name for o in result.session().get_outputs()] == ["layer3", "layer1"]
    assert [p.outputs for p in result.parts] == [("layer1",), ("layer3",)]


def test_a_stage_that_cannot_be_written_leaves_the_old_files(tmp_path, monkeypatch):
    old = {"m.onnx": b"old", "m.part1.onnx": b"older"}
    for name, data in old.items():
        (tmp_path / name).write_bytes(data)
    real = Path.write_bytes

    def full(path, data):
        if "part2" in path.name:
            raise OSError(28, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CompatError, match=r"cannot write '.*m\.part2\.onnx'"):
        export_compat(resnet(), PICTURE, tmp_path / "m.onnx", split=["layer2"], exporter="torchscript")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == old
