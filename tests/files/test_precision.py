"""Files in narrower formats, by the passes and judges of a model's file."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from files.faults import deep
from files.file_models import net, write

from torch_onnx_compat import CompatError, Float16, Int8, engines
from torch_onnx_compat.errors import ArgumentError, VerificationError
from torch_onnx_compat.files import convert
from torch_onnx_compat.files.double import to_double
from torch_onnx_compat.files.reading import read
from torch_onnx_compat.files.runner import Runner
from torch_onnx_compat.precision import narrow


@pytest.fixture(scope="module")
def runner():
    """One process that runs files for many tests."""
    with Runner() as runner:
        yield runner


def test_float16(tmp_path, runner):
    deep(tmp_path / "a.onnx")
    result = convert(tmp_path / "a.onnx", tmp_path / "b.onnx", precision="float16", runner=runner)
    kinds = {tensor.data_type for tensor in onnx.load(result.path).graph.initializer}
    assert onnx.TensorProto.FLOAT16 in kinds
    assert onnx.TensorProto.FLOAT not in kinds
    image = np.random.default_rng(0).standard_normal((3, 3, 8, 8)).astype(np.float32)
    wanted = onnxruntime.InferenceSession(str(tmp_path / "a.onnx")).run(None, {"image": image})[0]
    found = result.session().run(None, {"image": image})[0]
    assert found.dtype == np.float32
    assert 0 < np.abs(found - wanted).max() < 0.02 * np.abs(wanted).max()
    rows = result.precision.errors
    assert rows[0].case == "example"
    assert rows[0].float32 is not None, "the reference is float64's"
    assert 0 < rows[0].float32.worst < 1e-5
    assert "of the multiplications" in str(result)
    assert result.to_dict()["precision"]["format"] == "float16"


def test_what_does_not_fit_stays_in_float32(tmp_path, runner):
    """Products of 1e5 overflow in float16."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x) => (float[n, 4] y) { h = Mul(x, w)  s = Mul(h, w)  r = Div(s, w)  t = Div(r, w)  y = Relu(t) }"""
    path = write(tmp_path / "a.onnx", text, w=np.array([1e5], np.float32))
    result = convert(path, precision="float16", runner=runner)
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    np.testing.assert_allclose(result.session().run(None, {"x": x})[0], np.maximum(x, 0), 2e-2, 1e-2)
    assert {row.op_type for row in result.precision.kept} >= {"Mul"}


def test_the_judge_does_judge(tmp_path, runner, monkeypatch):
    """A pass that puts something else into the format is seen, whatever stays in float32."""
    deep(tmp_path / "a.onnx")
    real = narrow.convert

    def broken(*args):
        model = real(*args)
        node = next(node for node in model.graph if node.op_type == "LeakyRelu")
        node.attributes["alpha"] = ir.AttrFloat32("alpha", 0.9)
        return model

    monkeypatch.setattr(narrow, "convert", broken)
    result = convert(tmp_path / "a.onnx", precision="float16", runner=runner)
    assert not all(row.ok for row in result.precision.errors)


def test_bfloat16_inputs_and_outputs_in_the_format_and_another_opset(tmp_path, runner):
    deep(tmp_path / "a.onnx")
    result = convert(tmp_path / "a.onnx", precision="bfloat16", opset=22, runner=runner)
    assert result.precision.judges == "the rendering"
    half = convert(tmp_path / "a.onnx", precision=Float16(keep_io=False, keep=["Softmax"]), runner=runner)
    assert half.model_proto.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    assert "Softmax" in {row.op_type for row in half.precision.kept}


def test_a_misspelt_place_to_keep_is_refused(tmp_path, runner):
    deep(tmp_path / "a.onnx")
    with pytest.raises(CompatError, match=r"unknown place to keep in float32 'Softmx'; did you mean 'Softmax'\?"):
        convert(tmp_path / "a.onnx", precision=Float16(keep=["Softmx"]), runner=runner)


def test_int8_with_calibration(tmp_path, runner):
    path = net(tmp_path / "a.onnx")
    random = np.random.default_rng(0)
    items = [random.random((2, 3, 8, 8)).astype(np.float32) for _ in range(6)]
    result = convert(path, precision=Int8(calibration=items), target="onnxruntime", runner=runner)
    assert result.nodes["QuantizeLinear"] > 0
    assert (result.precision.calibrated_on, result.precision.judged_on) == (3, 3)
    assert result.precision.is_proven
    image = random.random((4, 3, 8, 8)).astype(np.float32)
    wanted = onnxruntime.InferenceSession(str(path)).run(None, {"image": image})[0]
    found = result.session().run(None, {"image": image})[0]
    assert np.sqrt(np.square(found - wanted).mean()) < 0.1 * np.sqrt(np.square(wanted).mean())
    named = convert(path, precision=Int8(calibration=[{"image": items[0]}, (items[1],)]), runner=runner)
    assert named.precision.judged_on == 1


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """An engine that runs files as onnxruntime does, and then adds what the file `error` beside it holds."""
    adapter = tmp_path / "adapter.py"
    adapter.write_text(
        "import numpy, onnxruntime\n"
        "def version():\n    return '1'\n"
        "def load(path, feeds, outputs, variant):\n"
        "    session = onnxruntime.InferenceSession(path)\n"
        "    error = float(open(variant).read())\n"
        "    return lambda feeds: [(a * (1 + error)).astype(a.dtype) for a in session.run(outputs, feeds)]\n"
    )
    (tmp_path / "error").write_text("0")

    class Likewise(engines.Engine):
        @property
        def path(self):
            return adapter

    made = Likewise("openvino", "onnxruntime", (), variant=str(tmp_path / "error"))
    monkeypatch.setitem(engines.ENGINES, "openvino", made)
    return tmp_path / "error"


def test_an_engine_is_held_against_the_same_file(tmp_path, runner, engine):
    """Inputs that the calibration did not foresee are off from the original in every engine alike."""
    random = np.random.default_rng(0)
    items = [random.random((1, 3, 8, 8)).astype(np.float32) for _ in range(4)]
    far = {"image": 40 * random.standard_normal((1, 3, 8, 8)).astype(np.float32)}
    path = net(tmp_path / "a.onnx", batch=1)
    keywords = {"precision": Int8(calibration=items), "target": "openvino", "inputs": far, "runner": runner}
    result = convert(path, tmp_path / "b.onnx", **keywords)
    assert any("of its size" in row.detail for row in result.table if "openvino" in row.case)
    engine.write_text("0.5")
    with pytest.raises(VerificationError, match="openvino computes something else"):
        convert(path, tmp_path / "c.onnx", **keywords)
    assert not (tmp_path / "c.onnx").exists()


@pytest.mark.parametrize(
    ("precision", "message"),
    [
        ("float15", "unknown precision 'float15'"),
        (Int8(calibration=[{"picture": np.zeros(3)}]), "calibration input 0: .*no input 'picture'"),
        (Int8(calibration=[np.zeros((1, 3), np.float32)]), "calibration input 0: .*Invalid rank"),
    ],
)
def test_what_cannot_be(tmp_path, runner, precision, message):
    with pytest.raises(CompatError, match=message):
        convert(net(tmp_path / "a.onnx"), tmp_path / "b.onnx", precision=precision, runner=runner)
    assert not (tmp_path / "b.onnx").exists()


def test_int8_for_an_engine_of_which_nothing_is_known(tmp_path, runner):
    with pytest.raises(ArgumentError, match="has no table"):
        convert(net(tmp_path / "a.onnx", batch=1), precision=Int8(), target="rknn", runner=runner)


def test_precision_after_surgery(tmp_path, runner):
    deep(tmp_path / "a.onnx")
    result = convert(
        tmp_path / "a.onnx", start=["act2", "sum1"], outputs=["scores"], precision="float16", runner=runner
    )
    assert result.precision.narrow > 5
    assert [v.name for v in result.model_proto.graph.input] == ["act2", "sum1"]


def test_texts_are_no_numbers(tmp_path, runner):
    text = """<ir_version: 8, opset_import: ["": 17]> g (string[n] x) => (string[n] y) { y = Identity(x) }"""
    with pytest.raises(CompatError, match="holds more than plain tensors"):
        convert(write(tmp_path / "a.onnx", text), precision="float16", runner=runner)


def test_a_file_in_float64(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x) => (float[n, 4] y) {
        c = Constant<value_float = 0.1>()  k = Cast<to = 1>(i)  s = Shape(x)  z = ConstantOfShape(s)
        a = Add(x, c)  b = Mul(a, k)  y = Add(b, z)
    }"""
    model = read(write(tmp_path / "a.onnx", text, i=np.array([3], np.int64))).graph()
    to_double(model)
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    x = torch.rand(2, 4, dtype=torch.float64).numpy()
    (found,) = session.run(None, {"x": x})
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, (x + np.float64(np.float32(0.1))) * 3, 1e-12)


def of_weights(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


BRANCHES = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 3] x) => (float[n, 4] y) {
    s = ReduceSum<keepdims = 0>(x)
    c = Greater(s, zero)
    h = If (c) <then_branch = t () => (float[n, 3] a) <float[3] w = {1, 2, 3}> { k = Add(x, w)  a = MatMul(k, square) },
                else_branch = e () => (float[n, 3] b) <float[3] w = {-1, 0.5, 4}> { b = Mul(x, w) }>
    y = MatMul(h, wide)
}"""


def test_weights_within_branches(tmp_path, runner):
    weights = {"zero": np.float32(0), "square": of_weights(3, 3), "wide": of_weights(3, 4)}
    path = write(tmp_path / "a.onnx", BRANCHES, **weights)
    result = convert(path, tmp_path / "b.onnx", precision="float16", runner=runner)
    assert not result.precision.kept
    branches = [a.g for node in onnx.load(result.path).graph.node for a in node.attribute if a.g.node]
    assert {t.data_type for graph in branches for t in graph.initializer} == {onnx.TensorProto.FLOAT16}
    for x in (of_weights(2, 3), -np.abs(of_weights(5, 3)), np.abs(of_weights(1, 3))):
        wanted = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
        np.testing.assert_allclose(result.session().run(None, {"x": x})[0], wanted, 1e-2, 1e-2 * np.abs(wanted).max())


@pytest.mark.parametrize("precision", ["float16", "int8-dynamic", "int4-weights"])
def test_weights_that_are_inputs_too_become_constants(tmp_path, runner, precision):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 32] x, float[32, 32] w) => (float[n, 32] y) { y = MatMul(x, w) }"""
    path = write(tmp_path / "a.onnx", text, w=of_weights(32, 32))
    result = convert(path, tmp_path / "b.onnx", precision=precision, runner=runner)
    assert "weights are no inputs any more" in result.done
    assert result.path.stat().st_size < 0.7 * path.stat().st_size
    x = of_weights(3, 32)
    wanted = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
    np.testing.assert_allclose(result.session().run(None, {"x": x})[0], wanted, atol=0.2 * np.abs(wanted).max())
    with pytest.raises(CompatError, match="contradict each other: weights that are inputs keep their types"):
        convert(path, precision=precision, keep_initializers_as_inputs=True, runner=runner)


@pytest.mark.parametrize(("precision", "opset"), [("float16", 11), ("bfloat16", 13), ("int8-dynamic", 11)])
def test_an_old_file_gets_the_opset_that_the_format_needs(tmp_path, runner, precision, opset):
    text = """<ir_version: 3, opset_import: ["": 7]>
    g (float[n, 4] x, float[4, 4] w) => (float[n, 4] y) {
        d = Dropout<ratio = 0.5>(x)  h = MatMul(d, w)  y = Relu(h) }"""
    path = write(tmp_path / "a.onnx", text, w=of_weights(4, 4))
    result = convert(path, precision=precision, runner=runner)
    assert result.opset == opset
    assert f"opset 7 -> {opset}" in result.done
    if precision != "bfloat16":
        x = of_weights(3, 4)
        wanted = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
        np.testing.assert_allclose(result.session().run(None, {"x": x})[0], wanted, atol=0.05 * np.abs(wanted).max())


def test_a_file_with_a_sequence(tmp_path, runner):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x) => (float[n, 4] y) {
        h = MatMul(x, w)  s = SplitToSequence<keepdims = 0>(h)  y = ConcatFromSequence<axis = 0, new_axis = 1>(s) }"""
    path = write(tmp_path / "a.onnx", text, w=of_weights(4, 4))
    result = convert(path, precision="float16", runner=runner)
    assert {row.op_type for row in result.precision.kept} == {"SplitToSequence", "ConcatFromSequence"}
    x = of_weights(3, 4)
    wanted = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
    np.testing.assert_allclose(result.session().run(None, {"x": x})[0], wanted, atol=0.01 * np.abs(wanted).max())


def test_a_node_whose_results_have_other_shapes_on_rounded_inputs(tmp_path, runner):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 900] x) => (float[m] y, float[n, 4] z) { z = MatMul(x, w)  u, i = Unique(x)  y = Exp(u) }"""
    path = write(tmp_path / "a.onnx", text, w=of_weights(900, 4))
    result = convert(path, precision="float16", runner=runner)
    assert "Unique" in {row.op_type for row in result.precision.kept}
    x = of_weights(2, 900)
    wanted = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})
    for one, other in zip(result.session().run(None, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(one, other, 1e-2, 1e-2 * np.abs(other).max())
