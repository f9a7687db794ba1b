"""Files of few bits run in their target's engine; what it gets wrong stays in float32."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import Dynamic, Int8, export_compat
from torch_onnx_compat.engines import ENGINES, EngineProcess, find_engine
from torch_onnx_compat.precision.int8 import on_engine
from torch_onnx_compat.session import open_session


class Gated(nn.Module):
    """Two gates behind convolutions, as squeeze and excitation has them."""

    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)
        self.gates = nn.ModuleList(nn.Conv2d(8, 8, 1) for _ in range(2))

    def forward(self, x):
        x = self.stem(x).relu()
        for gate in self.gates:
            x = x * torch.sigmoid(gate(x.mean((2, 3), keepdim=True)))
        return self.head(x.mean((2, 3)))


class Tokens(nn.Module):
    """A vision transformer's first steps: patches, and a token that is repeated for each image."""

    def __init__(self):
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, 16, 4, 4), nn.Linear(16, 5)
        self.token = nn.Parameter(torch.randn(1, 1, 16))

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        return self.head(torch.tanh(x).mean(1))


def batches(*shape):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=generator) for _ in range(6)]


def narrow_reads(model, op_type):
    """The nodes of an operator all of whose inputs are in eight bits; biases are in int32."""
    made = {o: node for node in model.graph.node for o in node.output}
    weights = {tensor.name for tensor in model.graph.initializer}

    def is_narrow(name):
        node = made.get(name)
        return node is not None and node.op_type == "DequantizeLinear"

    found = [node for node in model.graph.node if node.op_type == op_type]
    return [node for node in found if all(is_narrow(name) for name in node.input if name not in weights)]


@pytest.fixture
def engine(monkeypatch):
    """onnxruntime, but for files of which `fails` tells a fault: a factor of the outputs, or None for an error."""
    made = SimpleNamespace(fails=lambda model: 1.0, files=0)

    class Session:
        def __init__(self, process, path):
            model = onnx.load(path)
            made.files += 1
            self.factor = made.fails(model)
            self.session = open_session(model.SerializeToString())
            self.get_inputs, self.get_outputs = self.session.get_inputs, self.session.get_outputs

        def run_with_ort_values(self, names, feeds):
            if self.factor is None:
                raise RuntimeError("not implemented")
            outputs = self.session.run(names, {name: value.numpy() for name, value in feeds.items()})
            factor = np.float32(self.factor)
            return [onnxruntime.OrtValue.ortvalue_from_numpy(array * factor) for array in outputs]

    @contextmanager
    def process(engine, limit):
        yield SimpleNamespace(version="1.0")

    monkeypatch.setattr(type(ENGINES["opencv"]), "interpreter", lambda self: "python")
    monkeypatch.setattr(on_engine, "EngineProcess", process)
    monkeypatch.setattr(on_engine, "EngineSession", Session)
    return made


def exported(**options):
    torch.manual_seed(0)
    asked = options.pop("asked", Int8(batches(4, 3, 12, 12), limit=0.5))
    model, x = Gated().eval(), batches(4, 3, 12, 12)[0]
    return export_compat(model, x, dynamic="batch", precision=asked, **{"target": "opencv", **options})


def test_an_engine_that_is_right_changes_nothing(engine):
    told = exported().precision
    assert not told.kept
    assert engine.files == 1
    assert any(note.startswith("run on opencv 1.0: off by") for note in told.notes)


def test_the_only_layer_that_is_wrong_stays_in_float32(engine):
    engine.fails = lambda model: 1.0 + 0.5 * bool(narrow_reads(model, "Gemm"))
    result = exported()
    assert [layer.op_type for layer in result.precision.kept] == ["Gemm"]
    assert "opencv 1.0 computes something else" in result.precision.kept[0].why
    assert any("unless these stay in float32: Gemm" in note for note in result.precision.notes)
    assert not narrow_reads(result.model_proto, "Gemm")
    assert len(narrow_reads(result.model_proto, "Conv")) == 3


def test_layers_of_a_kind_that_an_engine_does_not_run_stay_in_float32(engine):
    engine.fails = lambda model: None if narrow_reads(model, "Mul") else 1.0
    result = exported(target="openvino")
    assert {layer.op_type for layer in result.precision.kept} <= {"Conv", "Mul", "Sigmoid"}
    assert not narrow_reads(result.model_proto, "Mul")
    assert narrow_reads(result.model_proto, "Conv")
    assert any("does not run the file unless" in note for note in result.precision.notes)


def test_an_engine_that_is_wrong_in_float32_too_is_noted(engine):
    engine.fails = lambda model: 1.5
    told = exported().precision
    assert not told.kept
    assert any("with every layer in float32 too" in note for note in told.notes)


def test_few_bits_without_calibration_are_run_too(engine):
    engine.fails = lambda model: 1.0 + sum(node.op_type == "MatMulInteger" for node in model.graph.node)
    (layer,) = exported(target="openvino", asked=Dynamic(limit=0.5)).precision.layers
    assert layer.kept
    assert "openvino 1.0 computes something else" in layer.why


def test_no_engine_is_run_for_onnxruntime(engine):
    exported(target="onnxruntime")
    assert not engine.files


@pytest.mark.parametrize(("name", "model", "static"), [("opencv", Gated, False), ("openvino", Tokens, False)])
def test_what_the_engine_gives(name, model, static):
    """Both were wrong at these networks: off by their outputs' size, and more."""
    found = find_engine(name)
    if found.interpreter() is None:
        pytest.skip(f"{name} is not installed")
    torch.manual_seed(0)
    model, inputs = model().eval(), batches(4, 3, 12, 12)
    result = export_compat(model, inputs[0], dynamic="batch", target=name, precision=Int8(inputs, limit=0.5))
    x = torch.randn(5, 3, 12, 12)
    feeds = {key: value.numpy() for key, value in result.signature.feeds((x,), {}).items()}
    with EngineProcess(found, limit=60.0) as process:
        outcome = process.run(result.model_bytes, feeds, [result.model_proto.graph.output[0].name])
    wanted = model(x).detach().numpy()
    assert outcome.status == "ran", outcome.error
    assert np.sqrt(np.mean((outcome.outputs[0] - wanted) ** 2) / np.mean(wanted**2)) < 0.05
