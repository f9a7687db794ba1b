"""export_compat(preprocess=...): extracted, folded, put before a model."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, Normalize, export_compat
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.surgery.on_graph import absorb, leading

BOTH = ["torchscript", pytest.param("dynamo", marks=pytest.mark.slow)]
_spec = importlib.util.spec_from_file_location("pictures", Path(__file__).with_name("pictures.py"))
pictures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(pictures)
MEAN, STD = pictures.MEAN, pictures.STD


def eager(model, inputs):
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    with torch.no_grad():
        return model(*inputs).numpy()


def composed(result, *arrays):
    """network(preprocess(x)), by hand."""
    session = result.session()
    values = result.preprocess(*arrays)
    values = values if isinstance(values, tuple) else (values,)
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], values, strict=True)))[0]


@pytest.mark.parametrize("name", pictures.MOVED)
@pytest.mark.parametrize("dynamic", [None, "batch"])
def test_extracted(name, dynamic):
    make, example, moved = pictures.MOVED[name]
    model, picture = make().eval(), example()
    if picture.dim() == 3:
        dynamic = None
    result = export_compat(model, picture, preprocess="extract", exporter="torchscript", dynamic=dynamic)
    network = {node.op_type for node in result.model_proto.graph.node}
    before = [node.op_type for node in result.preprocess.model_proto.graph.node]
    assert set(moved) <= set(before)
    assert not network & {"Sub", "Div", "Resize", "Cast", "Pow"} or name.startswith("timm")
    wanted = eager(model, picture)
    np.testing.assert_allclose(composed(result, picture.numpy()), wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", pictures.MOVED)
@pytest.mark.parametrize("dynamic", [None, "batch"])  # dynamo's networks ask the raw picture for its batch size
def test_extracted_from_dynamo(name, dynamic):
    make, example, moved = pictures.MOVED[name]
    model, picture = make().eval(), example()
    if picture.dim() == 3:
        dynamic = None
    result = export_compat(model, picture, preprocess="extract", exporter="dynamo", dynamic=dynamic)
    assert set(moved) - {"Gather", "ReduceSum"} <= {n.op_type for n in result.preprocess.model_proto.graph.node}
    wanted = eager(model, picture)
    np.testing.assert_allclose(composed(result, picture.numpy()), wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("name", pictures.STAYS)
def test_left_where_it_is(name):
    make, example, reason = pictures.STAYS[name]
    result = export_compat(make().eval(), example(), preprocess="extract", exporter="torchscript")
    assert result.preprocess is None
    (note, *_) = (note for note in result.notes if note.startswith("preprocess:"))
    assert re.search(reason, note), note


@pytest.mark.parametrize("exporter", BOTH)
def test_two_inputs_have_a_chain_each(exporter):
    model = pictures.Pair().eval()
    left, right = torch.rand(1, 3, 32, 32), torch.rand(1, 3, 32, 32)
    result = export_compat(model, (left, right), preprocess="extract", exporter=exporter)
    assert result.preprocess.inputs == ("left", "right")
    assert "Div" not in result.nodes
    wanted = eager(model, (left, right))
    np.testing.assert_allclose(composed(result, left.numpy(), right.numpy()), wanted, rtol=1e-3, atol=1e-5)


def test_what_comes_with_it(tmp_path, exporter):
    model = nn.Sequential(pictures.transforms.Normalize(MEAN, STD), pictures.network()).eval()
    x = torch.rand(2, 3, 32, 32)
    result = export_compat(
        model, x, tmp_path / "m.onnx", preprocess="extract", exporter=exporter, input_names=["picture"]
    )
    assert [i.name for i in result.session().get_inputs()] == ["picture"]
    steps = result.preprocess.description["picture"]
    assert [step["operator"] for step in steps] == ["Sub", "Div"]
    assert np.allclose(steps[0]["inputs"][1], MEAN)
    written = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert json.loads(written["torch_onnx_compat.preprocess"]) == {"picture": steps}
    result.preprocess.save(tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "m.preprocess.onnx").read_bytes()
    np.testing.assert_allclose(
        result.preprocess(x.numpy()), pictures.transforms.Normalize(MEAN, STD)(x).numpy(), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(CompatError, match="preprocess takes picture; got 2 arrays"):
        result.preprocess(x.numpy(), x.numpy())


def test_a_wrong_extraction_is_seen(monkeypatch):
    real = leading.find_leading

    def broken(model, source):
        found = real(model, source)
        for node in found.nodes:
            if node.op_type == "Sub":
                node.op_type = "Add"
        return found

    monkeypatch.setattr("torch_onnx_compat.surgery.on_graph.extract.find_leading", broken)
    with pytest.raises(VerificationError):
        export_compat(
            pictures.With(pictures.normalized).eval(),
            torch.rand(1, 3, 32, 32),
            preprocess="extract",
            exporter="torchscript",
        )


# Folded


class Before(nn.Module):
    def __init__(self, layer, mean=MEAN, std=STD, shape=(-1, 1, 1)):
        super().__init__()
        self.layer = layer
        self.register_buffer("mean", torch.as_tensor(mean).reshape(shape))
        self.register_buffer("std", torch.as_tensor(std).reshape(shape))

    def forward(self, x):
        return self.layer((x / 255 - self.mean) / self.std)


FOLDED = {
    "plain": (lambda: nn.Conv2d(3, 6, 3), {"Conv": 1}),
    "padded": (lambda: nn.Conv2d(3, 6, 3, padding=1), {"Conv": 1, "Split": 1, "Pad": 3, "Concat": 1}),
    "strided": (lambda: nn.Conv2d(3, 6, 5, stride=2, padding=2), {"Conv": 1, "Split": 1, "Pad": 3, "Concat": 1}),
    "dilated": (lambda: nn.Conv2d(3, 6, 3, dilation=2, padding=(2, 1)), {"Conv": 1, "Split": 1, "Pad": 3, "Concat": 1}),
    "grouped": (lambda: nn.Conv2d(3, 6, 3, groups=3), {"Conv": 1}),
    "grouped, padded": (
        lambda: nn.Conv2d(3, 9, 3, groups=3, padding=1),
        {"Conv": 1, "Split": 1, "Pad": 3, "Concat": 1},
    ),
    "without bias": (lambda: nn.Conv2d(3, 6, 3, bias=False), {"Conv": 1}),
}


@pytest.mark.parametrize("name", FOLDED)
@pytest.mark.parametrize("opset", [11, 13, 20])
def test_folded(name, opset):
    make, nodes = FOLDED[name]
    model, x = Before(make()).eval(), torch.rand(2, 3, 20, 24) * 255
    result = export_compat(model, x, preprocess="fold", exporter="torchscript", opset_version=opset, dynamic="batch")
    assert dict(result.nodes) == nodes
    wanted = eager(model, x)
    assert np.abs(result(x)[0].numpy() - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_folded_from_dynamo():
    model, x = Before(nn.Conv2d(3, 6, 3, padding=1)).eval(), torch.rand(2, 3, 20, 24) * 255
    result = export_compat(model, x, preprocess="fold", exporter="dynamo")
    assert not {"Sub", "Div", "Mul"} & set(result.nodes)
    np.testing.assert_allclose(result(x)[0].numpy(), eager(model, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 7), (2, 5, 7)])
@pytest.mark.parametrize("bias", [True, False])
def test_folded_into_a_linear_layer(shape, bias):
    model = Before(nn.Linear(7, 4, bias), torch.rand(7), torch.rand(7) + 0.5, (-1,)).eval()
    x = torch.rand(shape) * 255
    result = export_compat(model, x, preprocess="fold", exporter="torchscript")
    assert not {"Sub", "Div"} & set(result.nodes)
    np.testing.assert_allclose(result(x)[0].numpy(), eager(model, x), rtol=1e-5, atol=1e-5)


def test_one_number_is_one_pad():
    model, x = Before(nn.Conv2d(3, 6, 3, padding=1), 0.5, 0.5).eval(), torch.rand(1, 3, 9, 9) * 255
    result = export_compat(model, x, preprocess="fold", exporter="torchscript")
    assert dict(result.nodes) == {"Pad": 1, "Conv": 1}


def test_channels_in_another_order_are_folded():
    model = pictures.With(lambda self, x: (1 - x[:, [2, 0, 1]] - self.mean) * -self.std, nn.Conv2d(3, 5, 3, padding=1))
    x = torch.rand(1, 3, 9, 9)
    result = export_compat(model.eval(), x, preprocess="fold", exporter="torchscript")
    assert dict(result.nodes) == {"Split": 1, "Pad": 3, "Concat": 1, "Conv": 1}
    np.testing.assert_allclose(result(x)[0].numpy(), eager(model, x), rtol=1e-5, atol=1e-5)


class Twice(Before):
    def forward(self, x):
        x = (x / 255 - self.mean) / self.std
        return self.layer(x) + self.layer(x.flip(-1))


UNFOLDED = {
    "used twice": (lambda: Twice(nn.Conv2d(3, 6, 3)), 3, "what it reads is used 2 times"),
    "padded with six numbers": (
        lambda: Before(nn.Conv2d(6, 6, 3, padding=1), torch.rand(6), torch.rand(6) + 1),
        6,
        "a number of its own in each of 6 channels",
    ),
    "reflected": (lambda: Before(nn.Conv2d(3, 6, 3, padding=1, padding_mode="reflect")), 3, "Pad"),
    "a factor of zero": (
        lambda: pictures.With(lambda self, x: x * torch.tensor([1.0, 0, 2]).view(3, 1, 1), nn.Conv2d(3, 6, 3)),
        3,
        "a factor is zero",
    ),
    "order before groups": (
        lambda: pictures.With(lambda self, x: x[:, [2, 1, 0]], nn.Conv2d(3, 6, 3, groups=3)),
        3,
        "before a grouped convolution",
    ),
    "nothing there": (lambda: nn.Conv2d(3, 6, 3), 3, "nothing is computed before it"),
}


@pytest.mark.parametrize("name", UNFOLDED)
def test_not_folded(name):
    make, channels, reason = UNFOLDED[name]
    model, x = make().eval(), torch.rand(1, channels, 9, 9)
    result = export_compat(model, x, preprocess="fold", exporter="torchscript")
    assert any(reason in note for note in result.notes), result.notes
    np.testing.assert_allclose(result(x)[0].numpy(), eager(model, x), rtol=1e-4, atol=1e-5)


def test_a_wrong_fold_is_seen(monkeypatch):
    monkeypatch.setattr(absorb.Dense, "absorb_offset", lambda self, offset: None)
    with pytest.raises(VerificationError):
        export_compat(
            Before(nn.Conv2d(3, 6, 3)).eval(), torch.rand(1, 3, 9, 9), preprocess="fold", exporter="torchscript"
        )


# Put before


def test_normalize_before_a_model(exporter):
    model = pictures.network().eval()
    picture = pictures.bytes_(1, 40, 64, 3)
    normalize = Normalize(MEAN, STD, 1 / 255, "NHWC", bgr=True, size=(32, 32), fit="letterbox")
    result = export_compat(model, picture, preprocess=normalize, exporter=exporter, dynamic="batch")
    assert result.session().get_inputs()[0].type == "tensor(uint8)"
    x = picture.permute(0, 3, 1, 2).flip(1).float()
    x = nn.functional.interpolate(x, (20, 32), mode="bilinear", align_corners=False)
    x = nn.functional.pad(x, (0, 0, 6, 6), value=114.0) / 255
    x = (x - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)
    np.testing.assert_allclose(result(picture)[0].numpy(), eager(model, x), rtol=1e-3, atol=1e-5)


def test_normalize_names_its_input():
    class Two(nn.Module):
        def forward(self, table, picture):
            return table + picture

    inputs = (torch.rand(1, 3, 4, 4), torch.rand(1, 3, 4, 4))
    result = export_compat(Two(), inputs, preprocess=Normalize(1.0, 2.0, input="picture"))
    torch.testing.assert_close(result(*inputs)[0], inputs[0] + (inputs[1] - 1) / 2)
    with pytest.raises(CompatError, match="unknown input 'pictures'; did you mean 'picture'"):
        export_compat(Two(), inputs, preprocess=Normalize(input="pictures"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normalize(layout="CHW"), "unknown layout of Normalize 'CHW'"),
        (lambda: Normalize(fit="crop"), "unknown fit of Normalize 'crop'"),
        (lambda: Normalize(layout="HWC"), r"the example has the shape \(1, 3, 32, 32\)"),
        (lambda: Normalize([1.0, 2.0]), "2 numbers were given for a picture with 3 channels"),
        (lambda: Normalize(std=[1, 0, 1]), r"Normalize\(std=\[1, 0, 1\]\): wanted numbers other than 0"),
        (lambda: Normalize(std=float("nan")), r"Normalize\(std=nan\): wanted a number"),
        (lambda: Normalize(mean=[1.0, "x"]), "wanted a number, or one for a channel"),
        (lambda: Normalize(scale=None), r"Normalize\(scale=None\): wanted a number"),
        (lambda: Normalize(size=(0, 3)), r"Normalize\(size=\(0, 3\)\): wanted height and width from 1"),
        (lambda: Normalize(size=64), r"Normalize\(size=64\): wanted height and width from 1"),
        (lambda: "extrct", "unknown preprocess 'extrct'; did you mean 'extract'"),
    ],
)
def test_wrong_preprocessing(make, message):
    with pytest.raises(CompatError, match=message):
        export_compat(pictures.network().eval(), torch.rand(1, 3, 32, 32), preprocess=make())


def test_nothing_folded_is_not_told_as_done():
    result = export_compat(nn.Conv2d(3, 6, 3).eval(), torch.rand(1, 3, 9, 9), preprocess="fold", exporter="torchscript")
    assert "nothing is folded into" in str(result)
    assert "fold_preprocessing" not in str(result)
