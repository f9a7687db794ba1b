"""What is held against an engine: its own mistakes, neither its number format nor inputs that decide nothing."""

import dataclasses

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from files.file_models import write
from onnx import numpy_helper

from torch_onnx_compat.engines import ENGINES, Outcome
from torch_onnx_compat.files import convert, noise
from torch_onnx_compat.files.on_engine import EngineFault, compare_in_engine, verify_in_engine
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.reading import read
from torch_onnx_compat.files.runner import Runner
from torch_onnx_compat.publish.publish import draft
from torch_onnx_compat.targets import load_target

HALF = dataclasses.replace(ENGINES["opencv"], computes_in="float16", tolerance=(1e-5, 1e-5))
SINGLE = dataclasses.replace(ENGINES["opencv"], tolerance=(1e-5, 1e-5))

NETWORK = """<ir_version: 8, opset_import: ["": 17]> g (float[4, 64] x) => (float[4, 16] y)
{ h = MatMul(x, w)  r = Relu(h)  p = Mul(r, r)  y = MatMul(p, v) }"""

CHAOS = """<ir_version: 8, opset_import: ["": 17]> g (float[8, 8] x) => (float[8, 8] y)
{ big = Constant<value = float {FACTOR}>()  a = Mul(x, big)  b = Exp(x)  c = Add(a, b)  y = Sin(c) }"""


class Process:
    """An engine that gives what a function makes of the inputs."""

    version = "1"

    def __init__(self, compute):
        self.compute = compute

    def run(self, path, feeds, names, ranges=None):
        return Outcome("ran", tuple(map(np.asarray, self.compute(feeds))))

    def restart(self):
        pass


def network(path):
    random = np.random.default_rng(0)
    model = onnx.parser.parse_model(NETWORK)
    for name, shape in {"w": (64, 32), "v": (32, 16)}.items():
        model.graph.initializer.append(numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name))
    onnx.save(model, path)
    return path


def compute_in_half(feeds):
    random = np.random.default_rng(0)
    w, v = (random.standard_normal(shape).astype(np.float32).astype(np.float16) for shape in ((64, 32), (32, 16)))
    h = np.maximum((feeds["x"].astype(np.float16).astype(np.float32) @ w.astype(np.float32)).astype(np.float16), 0)
    return [((h * h).astype(np.float32) @ v.astype(np.float32)).astype(np.float32)]


def rows_of(path, compute, engine):
    with Proof(read(path)) as proof:
        proof.make_cases()
        rows = [row for _, _, rows in compare_in_engine(path, proof, engine, Process(compute)) for row in rows]
        return rows, proof.notes


def test_an_engine_in_half_precision_is_as_far_off_as_the_original_is_there(tmp_path):
    rows, _ = rows_of(network(tmp_path / "a.onnx"), compute_in_half, HALF)
    assert all(row.ok for row in rows)
    assert any("the original's own rounding error in float16" in row.detail for row in rows)
    rows, _ = rows_of(tmp_path / "a.onnx", compute_in_half, SINGLE)  # no excuse for another engine
    assert not all(row.ok for row in rows)


def test_what_half_precision_does_not_explain_is_wrong(tmp_path):
    def compute(feeds):
        (y,) = compute_in_half(feeds)
        y[0, 0] *= 1.1
        return [y]

    rows, _ = rows_of(network(tmp_path / "a.onnx"), compute, HALF)
    assert not all(row.ok for row in rows)


@pytest.mark.parametrize(("engine", "factor"), [(HALF, 5e3), (SINGLE, 3e7)])
def test_inputs_at_which_rounding_decides_everything_say_nothing(tmp_path, engine, factor):
    path = write(tmp_path / "a.onnx", CHAOS.replace("FACTOR", str(factor)))

    def compute(feeds):
        x = feeds["x"].astype(np.float64)
        x = x.astype(np.float16).astype(np.float64) if engine is HALF else x
        return [np.sin(x * factor + np.exp(x)).astype(np.float32)]

    rows, notes = rows_of(path, compute, engine)
    assert all(row.ok for row in rows)
    assert any("'random values' says nothing about opencv: the original's own values move by" in note for note in notes)
    assert any("zeros" in row.case for row in rows)  # where nothing is rounded, the engine is judged

    rows, _ = rows_of(path, lambda feeds: [20 * compute(feeds)[0]], engine)  # farther off than rounding moves anything
    assert not all(row.ok for row in rows)


def test_a_narrow_original_rounds_inputs_weights_and_results(tmp_path):
    model = read(network(tmp_path / "a.onnx")).graph()
    noise.make_narrow(model, ir.DataType.FLOAT16)
    x = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    with Runner() as runner, draft(model, None, False) as written:
        runner.open("narrow", written.path, plain=True)
        (found,) = runner.run("narrow", {"x": x})
    np.testing.assert_allclose(found, compute_in_half({"x": x})[0], rtol=2e-3, atol=2e-2)
    assert (found == found.astype(np.float16)).all()


def test_what_overflows_in_half_precision_excuses_nothing(tmp_path):
    path = write(tmp_path / "a.onnx", CHAOS.replace("FACTOR", "1e6").replace("Sin(c)", "Tanh(c)"))
    rows, _ = rows_of(path, lambda feeds: [np.cos(feeds["x"])], HALF)
    assert not any(row.ok for row in rows if "zeros" not in row.case)
    path = write(tmp_path / "b.onnx", CHAOS.replace("FACTOR", "1e6"))  # the original gives NaN in float16
    rows, _ = rows_of(path, lambda feeds: [feeds["x"]], HALF)
    assert not any(row.ok for row in rows if "zeros" not in row.case)


def test_where_both_leave_the_range_of_half_precision_nothing_is_known(tmp_path):
    path = write(tmp_path / "a.onnx", CHAOS.replace("FACTOR", "1e6"))

    def compute(feeds):
        x = feeds["x"]
        return [np.where(np.abs(x).max() > 0, np.nan, np.sin(np.exp(x))).astype(np.float32)]

    rows, notes = rows_of(path, compute, HALF)
    assert [row.case for row in rows] == ["zeros values on opencv 1"]
    assert any(
        "'unit values' says nothing about opencv: the original's own values leave the range of" in n for n in notes
    )
    rows, _ = rows_of(path, compute, SINGLE)
    assert not all(row.ok for row in rows)


REDUCE = """<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }"""


def test_an_engine_without_scalars_gives_one_number(tmp_path):
    path = write(tmp_path / "a.onnx", REDUCE)
    for shape in ((1,), ()):
        rows, _ = rows_of(path, lambda feeds, shape=shape: [feeds["x"].sum().reshape(shape)], SINGLE)
        assert all(row.ok for row in rows)
    rows, _ = rows_of(path, lambda feeds: [feeds["x"].sum().reshape(1) + 1], SINGLE)
    assert not any(row.ok for row in rows)


def test_given_inputs_are_run_whatever_comes_of_them(tmp_path):
    path = write(
        tmp_path / "a.onnx",
        """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Exp(x) }""",
    )
    most = np.finfo(np.float32).max
    with Proof(read(path), [{"x": np.array([1.0, 1000.0], np.float32)}]) as proof:
        proof.make_cases()
        process = Process(lambda feeds: [np.where(feeds["x"] > 80, most, np.exp(feeds["x"].clip(max=80)))])
        rows = [row for _, _, rows in compare_in_engine(path, proof, SINGLE, process) for row in rows]
    assert {row.case.partition(" on")[0] for row in rows if not row.ok} == {
        "given"
    }  # the largest number is no infinity


class Fresh(Process):
    """An engine that is right until it is started anew."""

    started = 0

    def restart(self):
        self.started += 1

    def run(self, path, feeds, names, ranges=None):
        return Outcome("ran", tuple(value + self.started for value in self.compute(feeds)))


class Flaky(Process):
    """An engine that is right so many times, and then reads what stands in memory."""

    def __init__(self, compute, count):
        super().__init__(compute)
        self.count = count

    def run(self, path, feeds, names, ranges=None):
        self.count -= 1
        outcome = super().run(path, feeds, names)
        return outcome if self.count >= 0 else Outcome("ran", tuple(value + 1 for value in outcome.outputs))


@pytest.mark.parametrize(("count", "is_right"), [(4, False), (5, False), (9, False), (12, True)])
def test_an_engine_that_is_right_now_and_then_is_not_right(tmp_path, monkeypatch, count, is_right):
    """Four cases, each run twice more."""
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }'
    process = Flaky(lambda feeds: [np.maximum(feeds["x"], 0)], count)
    monkeypatch.setattr(Runner, "engine", lambda self, engine: process)
    monkeypatch.setattr(type(ENGINES["mnn"]), "interpreter", lambda self: "python")
    with Proof(read(write(tmp_path / "a.onnx", text))) as proof:
        assert len(proof.make_cases()) == 4
        if is_right:
            assert len(verify_in_engine(tmp_path / "a.onnx", proof, load_target("mnn"))) == 4
            return
        with pytest.raises(EngineFault, match=r"mnn(, which was right once,)? computes something else"):
            verify_in_engine(tmp_path / "a.onnx", proof, load_target("mnn"))


def test_an_engine_that_is_right_in_an_old_process_alone_is_not_right(tmp_path, monkeypatch):
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }'
    process = Fresh(lambda feeds: [np.maximum(feeds["x"], 0)])
    monkeypatch.setattr(Runner, "engine", lambda self, engine: process)
    monkeypatch.setattr(type(ENGINES["mnn"]), "interpreter", lambda self: "python")
    wanted = pytest.raises(EngineFault, match="mnn, which was right once, computes something else")
    with Proof(read(write(tmp_path / "a.onnx", text))) as proof, wanted:
        verify_in_engine(tmp_path / "a.onnx", proof, load_target("mnn"))


def test_the_node_at_which_an_engine_goes_wrong_is_named(tmp_path, monkeypatch):
    """The engine takes every Mul for an Add. Two ways lead to one file, which is run once, and once for the search."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2, 3] y)
    { a = Sigmoid(x)  b = Mul(a, x)  c = Relu(b)  y = Sub(c, x) }"""
    files = []

    class Wrong(Process):
        def run(self, path, feeds, names, ranges=None):
            model = onnx.load(path)
            files.append((model.graph.name, model.graph.SerializeToString(deterministic=True)))
            for node in model.graph.node:
                node.op_type = "Add" if node.op_type == "Mul" else node.op_type
            session = onnxruntime.InferenceSession(model.SerializeToString())
            return Outcome("ran", tuple(session.run(list(names), dict(feeds))))

    process = Wrong(None)
    monkeypatch.setattr(Runner, "engine", lambda self, engine: process)
    monkeypatch.setattr(type(ENGINES["mnn"]), "interpreter", lambda self: "python")
    with pytest.raises(EngineFault, match=r"first node at which mnn goes wrong is Mul 'b'") as caught:
        convert(write(tmp_path / "a.onnx", text), target="mnn")
    assert (caught.value.place.operator, caught.value.place.tensor) == ("Mul", "b")
    whole = [data for name, data in files if name == "g"]
    assert len(whole) == len(set(whole)) + 1
    single = '<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2, 3] y) { y = Mul(x, x) }'
    with pytest.raises(EngineFault, match=r"goes wrong is Mul 'y'\.$"):
        convert(write(tmp_path / "b.onnx", single), target="mnn")


def test_a_constant_that_an_engine_does_not_give_is_named(tmp_path, monkeypatch):
    class Refusing(Process):
        def run(self, path, feeds, names, ranges=None):
            return Outcome("refused", error="no nodes")

    process = Refusing(None)
    monkeypatch.setattr(Runner, "engine", lambda self, engine: process)
    monkeypatch.setattr(type(ENGINES["mnn"]), "interpreter", lambda self: "python")
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (int64[2] y)
    { y = Constant<value_ints = [2, 3]>() }"""
    with pytest.raises(
        EngineFault, match=r"mnn goes wrong is Constant 'y': the output depends on no input\.$"
    ) as caught:
        convert(write(tmp_path / "a.onnx", text), target="mnn")
    assert caught.value.place.operator == "Constant"
