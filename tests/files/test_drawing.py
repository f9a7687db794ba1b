"""Inputs that are drawn for a file, and the process that runs it."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from files.file_models import net, write
from onnx import TensorProto

from torch_onnx_compat import CompatError
from torch_onnx_compat.files import noise
from torch_onnx_compat.files.drawing import plan_inputs, size_of
from torch_onnx_compat.files.opset import raise_opset
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.reading import read
from torch_onnx_compat.files.runner import Refused, Runner


def plan(path, text, **weights):
    return plan_inputs(read(write(path / "a.onnx", text, **weights)).graph())


def test_each_kind_of_number(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 50] x, uint8[n, 50] b, bool[n] c, string[n] s) => (float[n, 50] y) { y = Identity(x) }"""
    made = plan(tmp_path, text)
    assert made.names == ("n",)
    drawn = {kind: made.draw({"n": 4}, kind, 0) for kind in ("normal", "unit", "whole", "zeros")}
    assert drawn["normal"]["x"].min() < -1
    assert drawn["normal"]["x"].dtype == np.float32
    assert (drawn["unit"]["x"] >= 0).all()
    assert (drawn["unit"]["x"] < 1).all()
    assert (drawn["whole"]["x"] * 2 % 1 == 0).all()
    assert not drawn["zeros"]["x"].any()
    assert drawn["normal"]["b"].max() > 200
    assert (drawn["normal"]["c"].dtype, drawn["normal"]["s"].dtype) == (bool, object)
    again = made.draw({"n": 4}, "normal", 0)
    np.testing.assert_array_equal(again["x"], drawn["normal"]["x"])
    assert (made.draw({"n": 4}, "normal", 1)["x"] != again["x"]).any()


def test_divisors_are_not_zero_and_shapes_follow_from_what_is_declared(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (int64[n] x, int64[n] d, float[6] v, int64[2] s) => (int64[n] y, float[2, 3] z) {
        y = Div(x, d)  z = Reshape(v, s) }"""
    drawn = plan(tmp_path, text).draw({"n": 100}, "normal", 0)
    assert drawn["d"].min() >= 1
    assert drawn["s"].tolist() == [2, 3]


def test_an_axis_that_is_a_sum_of_others(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[past, 2] a, float[new, 2] b, float[whole, 2] c) => (float y) {
        d = Concat<axis = 0>(a, b)  y = Add(d, c) }"""
    path = write(tmp_path / "a.onnx", text)
    model = onnx.load(path)
    model.graph.input[2].type.tensor_type.shape.dim[0].dim_param = "past + new"
    onnx.save(model, path)
    made = plan_inputs(read(path).graph())
    assert made.names == ("past", "new")
    assert made.draw({"past": 3, "new": 2}, "unit", 0)["c"].shape == (5, 2)
    assert size_of("past + 1", {"past": 4}) == 5
    with Proof(read(path)) as proof:
        assert len(proof.cases) >= 6


def test_sequences(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (seq(float[2, 3]) x) => (float[2, 3] y) { y = ConcatFromSequence<axis = 0>(x) }"""
    (value,) = plan(tmp_path, text).draw({}, "normal", 0).values()
    assert [array.shape for array in value] == [(2, 3)] * 3


def test_an_input_that_is_no_tensor(tmp_path):
    model = onnx.load(net(tmp_path / "a.onnx"))
    model.graph.input[0].type.map_type.key_type = TensorProto.INT64
    onnx.save(model, tmp_path / "a.onnx")
    with pytest.raises(CompatError, match=r"only tensors and sequences of them are read|cannot be read"):
        plan_inputs(read(tmp_path / "a.onnx").graph())


def test_a_file_may_have_so_much_memory_and_no_more(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]> g (int64[1] n) => (float[k] y) { y = ConstantOfShape(n) }"""
    path = write(tmp_path / "a.onnx", text)
    with Runner(memory=2 * 2**30) as runner:
        runner.open("a", path)
        assert runner.run("a", {"n": np.array([3])})[0].shape == (3,)
        with pytest.raises(Refused):
            runner.run("a", {"n": np.array([2**30])})
        assert runner.run("a", {"n": np.array([3])})[0].shape == (3,)


def test_the_original_that_rounds_otherwise(tmp_path):
    """It moves numbers by a rounding, leaves whole ones and choices alone, and is the original at step 0."""
    text = """<ir_version: 4, opset_import: ["": 9]> g (float[200] x) => (float[200] y, float[200] z, float[200] w) {
        y = Exp(x)  z = Relu(x)  r = Floor(y) w = Mul(r, two) }"""
    path = write(tmp_path / "a.onnx", text, two=np.array([2], np.float32))
    model = raise_opset(read(path).graph(), noise.LOWEST_OPSET)
    noise.make_noisy(model)
    onnx.save(ir.to_proto(model), tmp_path / "b.onnx")
    x = np.random.default_rng(0).standard_normal(200).astype(np.float32)
    with Runner() as runner:
        runner.open("a", path)
        runner.open("b", tmp_path / "b.onnx", plain=True)
        wanted = runner.run("a", {"x": x})
        still = runner.run("b", {"x": x, noise.STEP: np.array(0, np.float32)}, ["y", "z", "w"])
        moved = runner.run("b", {"x": x, noise.STEP: np.array(4, np.float32)}, ["y", "z", "w"])
    for a, b in zip(wanted, still, strict=True):
        np.testing.assert_array_equal(a, b)
    change = np.abs(moved[0] / wanted[0] - 1)
    assert 0 < change.max() <= 6 * 2**-23
    assert (change > 0).mean() > 0.5
    np.testing.assert_array_equal(moved[1], wanted[1])
    np.testing.assert_array_equal(moved[2], wanted[2])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(float[1, 1, 4, 4] x, int64[4] n) => (float[1, 1, 9, 10] y) { y = Resize(x, , , n) }", (1, 1, 9, 10)),
        (
            "(float[1, 1, 4, 4] x, int64[2] n) => (float[1, 1, 9, 10] y) { y = Resize<axes = [3, 2]>(x, , , n) }",
            (10, 9),
        ),
        ("(float[2, 2, 3] x, int64[4] n) => (float[2, 5, 6, 2] y) { y = AffineGrid(x, n) }", (2, 1, 5, 6)),
        ("(float[2, 3, 4] x, int64[5] n) => (float[2, 1, 6, 7, 3] y) { y = AffineGrid(x, n) }", (2, 1, 1, 6, 7)),
        ("(float[3, 4] x, int64[1] n) => (float[3, 2] y, int64[3, 2] i) { y, i = TopK(x, n) }", (2,)),
        ("(float[3, 4] x, int64[2] n) => (float[6, 4] y) { y = Tile(x, n) }", (2, 1)),
        ("(float[3, 4] x, int64[2] n) => (float[5, 2] y) { s = Identity(n)  y = CenterCropPad(x, s) }", (5, 2)),
        ("(float[3, 4] x, int64[2] n) => (float[5, 2] y) { y = CenterCropPad(x, n) }", (5, 2)),
        ("(float x, int64 n) => (float[10] y) { y = HannWindow(n) }", (10,)),
        ("(float x, int64[2] n) => (float[a, 2] y) { y = ConstantOfShape(n) }", None),
    ],
)
def test_sizes_are_those_that_the_file_declares(tmp_path, text, wanted):
    made = plan(tmp_path, f'<ir_version: 8, opset_import: ["": 20]> g {text}')
    spec = next(one for one in made.inputs if one.name == "n")
    assert spec.exactly == wanted
    if wanted is not None:
        assert made.draw({}, "zeros", 0)["n"].reshape(-1).tolist() == list(wanted)
