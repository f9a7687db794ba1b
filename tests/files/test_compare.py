"""compare(): outputs, and the first value that differs, between two files, a file and a model, a file and an engine."""

import dataclasses
import textwrap

import numpy as np
import onnx
import pytest
import torch
from files.faults import KINDS, deep, plant
from files.file_models import write
from torch import nn

from torch_onnx_compat import CompatError, engines, export_compat
from torch_onnx_compat.files import compare, convert
from torch_onnx_compat.files.compare import compare_with_model
from torch_onnx_compat.files.layers import EngineValues


def test_a_file_is_equal_to_its_conversion(tmp_path):
    deep(tmp_path / "a.onnx")
    convert(tmp_path / "a.onnx", tmp_path / "b.onnx", opset=13, simplify=True)
    found = compare(tmp_path / "a.onnx", tmp_path / "b.onnx", layers=True)
    assert found.is_equal
    assert not found.first.found
    assert str(found).splitlines()[1] == "  no difference was found that rounding does not explain."


@pytest.mark.parametrize("where", [0, 2, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_fault_is_found(tmp_path, kind, where):
    model = deep(tmp_path / "a.onnx", seed=where)
    broken, node = plant(model, kind, where)
    onnx.save(broken, tmp_path / "b.onnx")
    found = compare(tmp_path / "a.onnx", tmp_path / "b.onnx", layers=True)
    assert not found.is_equal
    assert found.first.found
    assert found.first.node == node
    assert f"'{node}'" in str(found)
    assert found.to_dict()["first"]["node"] == node
    off = [layer.module for layer in found.first.layers if layer.error > layer.tolerance]
    assert off[0].endswith(f" {node}")
    assert len(found.first.layers) > len(off)


def test_files_that_take_other_inputs(tmp_path):
    deep(tmp_path / "a.onnx")
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 3, 8, 8] one, float[1] two) => (float[n, 3, 8, 8] y) { y = Add(one, two) }"""
    with pytest.raises(CompatError, match=r"the inputs are image on one side and one, two on the other"):
        compare(tmp_path / "a.onnx", write(tmp_path / "b.onnx", text))
    with pytest.raises(CompatError, match="give another file, or an engine"):
        compare(tmp_path / "a.onnx")


def test_other_names_are_paired_by_order(tmp_path):
    model = deep(tmp_path / "a.onnx")
    broken, _node = plant(model, "weight", 0)
    for node in broken.graph.node:
        for names in (node.input, node.output):
            for index, value in enumerate(names):
                names[index] = {"image": "picture", "result": "answer"}.get(value, value)
    broken.graph.input[0].name, broken.graph.output[0].name = "picture", "answer"
    onnx.save(broken, tmp_path / "b.onnx")
    found = compare(tmp_path / "a.onnx", tmp_path / "b.onnx", layers=True)
    assert found.first.node == "conv0"


def test_a_model_and_a_file(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1)).eval()
    image = torch.rand(2, 3, 8, 8)
    export_compat(model, (image,), tmp_path / "a.onnx")
    found = compare_with_model(tmp_path / "a.onnx", "model", model, (image,), layers=True)
    assert found.is_equal
    model[2].weight.data *= 1.5
    found = compare_with_model(tmp_path / "a.onnx", "model", model, (image,), layers=True)
    assert not found.is_equal
    assert found.first.operator == "Conv"
    assert found.first.reference == "aten.convolution in 2"
    assert next(layer.module for layer in found.first.layers if layer.error > layer.tolerance) == "2"


ADAPTER = """
    import onnx
    import onnxruntime

    def version():
        return "1"

    def load(path, feeds, outputs, variant):
        model = onnx.load(path)
        if variant == "whole" and len(model.graph.output) > 1:
            raise ValueError("one output at most")
        for node in model.graph.node:
            if node.name == "act3":
                node.attribute[0].f = 0.25
        session = onnxruntime.InferenceSession(model.SerializeToString())
        return lambda feeds: session.run(outputs, feeds)
"""


@pytest.fixture(params=["", "whole"])
def engine(request, tmp_path, monkeypatch):
    """An engine that gets one layer wrong; another one that takes files of one output only."""
    (tmp_path / "faulty.py").write_text(textwrap.dedent(ADAPTER))

    @dataclasses.dataclass(frozen=True)
    class Faulty(engines.Engine):
        @property
        def path(self):
            return tmp_path / "faulty.py"

    made = Faulty("faulty", "onnxruntime", (), variant=request.param)
    monkeypatch.setitem(engines.ENGINES, "faulty", made)
    return made


def test_the_first_wrong_layer_of_an_engine(tmp_path, engine):
    deep(tmp_path / "a.onnx")
    found = compare(tmp_path / "a.onnx", engine="faulty", layers=True)
    assert not found.is_equal
    assert (found.first.node, found.first.operator) == ("act3", "LeakyRelu")
    assert "values differ" in found.first.detail
    off = [layer.module for layer in found.first.layers if layer.error > layer.tolerance]
    assert off[0] == "LeakyRelu act3"
    assert len(found.first.layers) > len(off)


def test_cutting_finds_it_too(tmp_path, engine, monkeypatch):
    deep(tmp_path / "a.onnx")
    run = EngineValues._run
    sizes = []
    monkeypatch.setattr(
        EngineValues, "_run", lambda self, n: sizes.append(len(n)) or (run(self, n) if len(n) == 1 else {})
    )
    assert compare(tmp_path / "a.onnx", engine="faulty", layers=True).first.node == "act3"
    assert sizes[0] > 1
    assert 3 <= sizes.count(1) <= 12  # of 18 values


def test_a_right_path_beside_a_wrong_one_hides_nothing(tmp_path, engine, monkeypatch):
    run = EngineValues._run
    monkeypatch.setattr(EngineValues, "_run", lambda self, n: run(self, n) if len(n) == 1 else {})
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2, 3] y) {
        [act3] a = LeakyRelu<alpha = 0.2>(x)
        [other1] b = Exp(x)  [other2] c = Sqrt(b)  [other3] d = Sigmoid(c)
        [sum] y = Add(a, d) }"""
    assert compare(write(tmp_path / "a.onnx", text), engine="faulty", layers=True).first.node == "act3"


def test_an_engine_that_wants_types_of_outputs(tmp_path, engine):
    adapter = engine.path.read_text().replace(
        "for node in", "assert all(v.HasField('type') for v in model.graph.output)\n    for node in"
    )
    engine.path.write_text(adapter)
    deep(tmp_path / "a.onnx")
    assert compare(tmp_path / "a.onnx", engine="faulty", layers=True).first.node == "act3"


def test_an_engine_that_is_right(tmp_path):
    deep(tmp_path / "a.onnx")
    found = compare(tmp_path / "a.onnx", engine="onnxruntime", layers=True, sizes={"n": (3,)})
    assert found.is_equal
    assert not found.first.found
    assert np.isfinite([row.max_abs for row in found.table]).all()
    assert len(found.first.layers) > 10
    assert all(layer.error <= layer.tolerance for layer in found.first.layers)


def training(path, scale):
    """Normalised by each batch's own statistics; onnxruntime changes the running ones in its weights as it runs."""
    text = """<ir_version: 8, opset_import: ["": 15]>
    g (float[n, 3] x) => (float[n, 3] y) {
        h = Mul(x, scale)
        k, mean, variance = BatchNormalization<training_mode = 1>(h, ones, zeros, zeros, ones)
        y = Mul(k, scale) }"""
    weights = {"scale": np.float32(scale), "ones": np.ones(3, np.float32), "zeros": np.zeros(3, np.float32)}
    return write(path, text, **weights)


def test_files_that_change_their_weights_as_they_run(tmp_path):
    one, other = training(tmp_path / "a.onnx", 1), training(tmp_path / "b.onnx", 5)
    found = compare(one, other)
    assert not found.is_equal
    assert any("a run changes what the next one computes" in note for note in found.notes)
    assert compare(one, training(tmp_path / "c.onnx", 1)).is_equal


def test_two_files_whose_values_could_not_be_compared_are_not_called_equal(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[3, 4] x) => (float[3, 4] y{}) {{ y = RandomUniformLike<high = {}>(x){} }}"""
    one = write(tmp_path / "a.onnx", text.format("", "1.0", ""))
    found = compare(one, write(tmp_path / "b.onnx", text.format("", "9.0", "")))
    assert not found.is_equal
    assert "no value could be compared" in str(found)
    assert "of the types and shapes of" in str(convert(one, opset=13))
    relu = (", float[3, 4] z", "1.0", "  z = Relu(x)")
    one = write(tmp_path / "a.onnx", text.format(*relu))
    found = compare(one, write(tmp_path / "b.onnx", text.format(*relu)))
    assert found.is_equal
    assert "equal, but for the values of y, which were not compared" in str(found)
