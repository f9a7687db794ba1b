"""convert(): the new file computes what the original computes, or nothing is written."""

import dataclasses

import numpy as np
import onnx
import onnxruntime
import pytest
from files.file_models import net, write
from onnx import TensorProto, helper, numpy_helper

from torch_onnx_compat import CompatError, engines
from torch_onnx_compat.errors import UnsupportedError, VerificationError
from torch_onnx_compat.files import convert, opset
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.reading import read
from torch_onnx_compat.files.runner import Runner
from torch_onnx_compat.graph.opset import lowering

GELU = """<ir_version: 9, opset_import: ["": 20]>
g (float[n, 4] x) => (float[n, 4] y) { h = Gelu(x)  y = Add(h, w) }"""


@pytest.fixture
def image():
    return np.random.default_rng(1).standard_normal((4, 3, 8, 8)).astype(np.float32)


def run(source, **feeds):
    session = source.session() if hasattr(source, "session") else onnxruntime.InferenceSession(str(source))
    return session.run(None, feeds)


@pytest.fixture(scope="module")
def runner():
    """One process that runs files for many tests."""
    with Runner() as runner:
        yield runner


@pytest.mark.parametrize("wanted", [11, 17, 18, 23])
@pytest.mark.parametrize("source", [7, 10, 13, 22])
def test_from_opset_to_opset(tmp_path, source, wanted, image, runner):
    path = net(tmp_path / "a.onnx", source)
    data = path.read_bytes()
    result = convert(path, tmp_path / "b.onnx", opset=wanted, runner=runner)
    assert (result.opset, result.source_opset, result.path) == (wanted, source, tmp_path / "b.onnx")
    assert onnx.load(result.path).opset_import[0].version == wanted
    onnx.checker.check_model(str(result.path), full_check=True)
    np.testing.assert_allclose(run(result, image=image)[0], run(path, image=image)[0], 1e-5, 1e-6)
    assert path.read_bytes() == data
    assert result.axes[0].name == "n"
    assert result.axes[0].tried == (1, 2, 5)
    assert {"random values", "unit values", "zeros values", "n=1", "n=5"} <= {row.case for row in result.table}


def test_the_result_tells_what_was_done(tmp_path):
    result = convert(write(tmp_path / "a.onnx", GELU, w=np.ones(4, np.float32)), opset=17, simplify=True)
    assert result.path is None
    assert "opset 20 -> 17" in result.done
    text = str(result)
    assert text.startswith("a model in memory: equal to ")
    assert "judged by onnxruntime" in text
    assert result.to_dict()["nodes"]["Erf"] == 1
    assert result.source_nodes == {"Gelu": 1, "Add": 1}
    assert result.model_proto.graph.output[0].name == "y"


def test_a_wrong_rule_is_found_and_the_old_file_stays(tmp_path, monkeypatch):
    path = write(tmp_path / "a.onnx", GELU, w=np.ones(4, np.float32))
    (tmp_path / "b.onnx").write_bytes(b"old")
    wrong = {**lowering.RULES["Gelu"], 20: lambda op, node: op.Mul(node.inputs[0], 0.5)}
    monkeypatch.setitem(lowering.RULES, "Gelu", wrong)
    with pytest.raises(
        VerificationError, match=r"does not compute what a\.onnx computes: case 'random values'"
    ) as caught:
        convert(path, tmp_path / "b.onnx", opset=17)
    assert not caught.value.table[-1].ok
    assert (tmp_path / "b.onnx").read_bytes() == b"old"
    assert {p.name for p in tmp_path.iterdir()} == {"a.onnx", "b.onnx"}


def test_an_operator_that_the_opset_lacks_is_named(tmp_path):
    text = """<ir_version: 9, opset_import: ["": 19]> g (float[3] x) => (float[7] y) { y = Pad<mode = "wrap">(x, p) }"""
    path = write(tmp_path / "a.onnx", text, p=np.array([2, 2], np.int64))
    with pytest.raises(UnsupportedError, match=r"Pad, 1 node.*padding mode 'wrap'; ask for opset_version >= 19"):
        convert(path, tmp_path / "b.onnx", opset=17)
    assert not (tmp_path / "b.onnx").exists()


def test_the_original_is_no_place_for_the_new_file(tmp_path):
    path = net(tmp_path / "a.onnx")
    (tmp_path / "link.onnx").symlink_to(path)
    for place in (path, tmp_path / "link.onnx"):
        with pytest.raises(CompatError, match="is the original itself"):
            convert(path, place, opset=13)


def test_weights_beside_the_file_stay_where_they_are(tmp_path, image):
    (tmp_path / "in").mkdir()
    model = onnx.load(net(tmp_path / "a.onnx"))
    onnx.save(model, tmp_path / "in" / "a.onnx", save_as_external_data=True, location="a.bin", size_threshold=64)
    before = (tmp_path / "in" / "a.bin").read_bytes()
    result = convert(tmp_path / "in" / "a.onnx", tmp_path / "b.onnx", opset=21)
    np.testing.assert_array_equal(run(result, image=image)[0], run(tmp_path / "a.onnx", image=image)[0])
    assert (tmp_path / "in" / "a.bin").read_bytes() == before


def test_bodies_of_if_loop_and_scan_are_converted(tmp_path):
    text = """<ir_version: 9, opset_import: ["": 20]>
    g (float[n, 4] x, bool c) => (float[n, 4] y, float[n, 4] z, float[n, 4] u) {
        y = If (c) <then_branch = t () => (float[n, 4] a) { a = Gelu(x) },
                    else_branch = e () => (float[n, 4] b) { b = Neg(x) }>
        rounds = Constant <value = int64 {3}> ()
        go = Constant <value = bool {1}> ()
        z = Loop (rounds, go, x) <body = l (int64 i, bool k, float[n, 4] p) => (bool q, float[n, 4] r) {
            q = Identity(k)  r = Gelu(p) }>
        u = Scan (x) <num_scan_inputs = 1, body = s (float[4] v) => (float[4] w) { w = Gelu(v) }>
    }"""
    result = convert(write(tmp_path / "a.onnx", text), opset=13)
    assert result.nodes["Gelu"] == 0
    assert result.nodes["Erf"] == 3
    inner = result.model_proto.graph.node
    assert {node.op_type for node in inner} >= {"If", "Loop", "Scan"}


def test_bodies_are_raised_too(tmp_path):
    text = """<ir_version: 4, opset_import: ["": 9]>
    g (float[n, 4, 3] x, bool c) => (float[n, 4, 3] y) {
        y = If (c) <then_branch = t () => (float[n, 4, 3] a) { a = Softmax<axis = 1>(x) },
                    else_branch = e () => (float[n, 4, 3] b) { b = Hardmax<axis = 1>(x) }>
    }"""
    result = convert(write(tmp_path / "a.onnx", text), opset=17)
    assert result.nodes["Hardmax"] == result.nodes["Softmax"] == 1


def test_without_its_repairs_onnx_converter_is_found_out(tmp_path, monkeypatch):
    text = """<ir_version: 4, opset_import: ["": 9]>
    g (float[2, 4, 3] x) => (float[2, 4, 3] y) { y = Hardmax<axis = 1>(x) }"""
    path = write(tmp_path / "a.onnx", text)
    assert convert(path, opset=17).table
    monkeypatch.setattr(opset, "_prepare", lambda *_: None)
    with pytest.raises(VerificationError, match="values differ"):
        convert(path, opset=17)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_numbers_that_were_attributes_get_the_type_of_the_tensor(tmp_path, kind):
    nodes = [
        helper.make_node("Clip", ["x"], ["c"], min=-0.5, max=0.25),
        helper.make_node("Pad", ["c"], ["y"], pads=[1, 0, 0, 2], value=1.5),
    ]
    if kind == TensorProto.DOUBLE:
        nodes = [helper.make_node("Pad", ["x"], ["y"], pads=[1, 0, 0, 2], value=1.5)]  # onnxruntime has no such Clip
    values = [helper.make_tensor_value_info(name, kind, shape) for name, shape in (("x", ["n", 3]), ("y", None))]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    path = tmp_path / "a.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=3), path)
    assert convert(path, opset=13).judges == ("onnxruntime",)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample_becomes_resize(tmp_path, mode):
    nodes = [helper.make_node("Upsample", ["x"], ["y"], mode=mode, scales=[1.0, 1.0, 2.0, 1.5])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    path = tmp_path / "a.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=3), path)
    assert convert(path, opset=17).nodes == {"Resize": 1, "Constant": 2}


def test_a_scan_over_batches_is_refused_by_name(tmp_path):
    text = """<ir_version: 4, opset_import: ["": 8]> g (float[1, 3, 2] x) => (float[1, 3, 2] y) {
        y = Scan (, x) <num_scan_inputs = 1, body = b (float[2] v) => (float[2] w) { w = Relu(v) }> }"""
    with pytest.raises(UnsupportedError, match="Scan, written for opset 8, runs over batches"):
        convert(write(tmp_path / "a.onnx", text), opset=13)


@pytest.mark.parametrize(
    ("source", "wanted", "kind", "message"),
    [(7, 11, "float", "gives a mask of numbers"), (10, 17, "bool", "gives a mask that says nothing")],
)
def test_masks_of_other_meanings_are_refused_by_name(tmp_path, source, wanted, kind, message):
    text = f"""<ir_version: 5, opset_import: ["": {source}]> g (float[n, 4] x) => (float[n, 4] y, {kind}[n, 4] m) {{
        y, m = Dropout (x) }}"""
    with pytest.raises(UnsupportedError, match=f"Dropout, written for opset {source}, {message}"):
        convert(write(tmp_path / "a.onnx", text), opset=wanted)


def test_functions(tmp_path):
    text = """<ir_version: 9, opset_import: ["": 20, "local": 1]>
    g (float[n, 4] x) => (float[n, 4] y) { y = local.f(x) }
    <domain: "local", opset_import: ["": 20]> f (a) => (b) { c = Gelu(a)  b = Add(c, a) }"""
    path = write(tmp_path / "a.onnx", text)
    assert convert(path, opset=13).nodes["Erf"] == 1
    assert convert(path).nodes["local::f"] == 1


def test_a_file_without_shapes(tmp_path):
    text = """<ir_version: 9, opset_import: ["": 20]> g (float x) => (float y) { h = Conv(x, w)  y = Gelu(h) }"""
    model = onnx.load(write(tmp_path / "a.onnx", text, w=np.ones((2, 3, 3, 3), np.float32)))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "a.onnx")
    result = convert(tmp_path / "a.onnx", opset=13)
    assert [axis.name for axis in result.axes] == ["batch_", "axis1_", "axis2_", "axis3_"]


def test_weights_that_are_inputs(tmp_path):
    """Before IR version 4 all of them are, and are taken out; later they are defaults, and other values work too."""
    text = (
        """<ir_version: 3, opset_import: ["": 8]> g (float[n, 4] x, float[4] w) => (float[n, 4] y) { y = Mul(x, w) }"""
    )
    path = write(tmp_path / "a.onnx", text, w=np.arange(4, dtype=np.float32))
    result = convert(path, opset=13)
    assert [value.name for value in result.model_proto.graph.input] == ["x"]
    assert "weights are no inputs any more" in result.done[0]
    model = onnx.load(path)
    model.ir_version = 4
    onnx.save(model, path)
    result = convert(path, opset=13, simplify=True)
    assert [value.name for value in result.model_proto.graph.input] == ["x", "w"]
    assert "other default inputs" in {row.case for row in result.table}


def test_indices_are_drawn_within_the_table(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (int64[batch, length] ids, float[batch, length] mask) => (float[batch, length] y) {
        a = Gather(w, ids)  b = ReduceSum(a, axes)  c = Squeeze(b, axes)  y = Mul(c, mask) }"""
    weights = {"w": np.random.rand(5, 3).astype(np.float32), "axes": np.array([2], np.int64)}
    with Proof(read(write(tmp_path / "a.onnx", text, **weights))) as proof:
        drawn = np.concatenate([case.feeds["ids"].ravel() for case in proof.cases])
        assert not proof.notes
    assert (drawn.min(), drawn.max()) == (0, 4)


def test_other_inputs_are_drawn_where_the_original_refuses_some(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2, 3] x, int64[1] k) => (float v, int64 i) { v, i = TopK(x, k) }"""
    result = convert(write(tmp_path / "a.onnx", text), opset=13)
    assert len({row.case for row in result.table}) >= 4


def test_given_inputs(tmp_path, image):
    path = net(tmp_path / "a.onnx", batch=4)
    result = convert(path, opset=13, inputs={"image": image})
    assert result.table[0].case == "given"
    with pytest.raises(CompatError, match="no input 'picture'; it has image"):
        convert(path, opset=13, inputs={"picture": image})
    with pytest.raises(CompatError, match="'image' is missing"):
        convert(path, opset=13, inputs={})
    with pytest.raises(CompatError, match="refuses the given inputs"):
        convert(path, opset=13, inputs={"image": image[:1]})


def test_sizes_that_a_file_wants(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, width] x) => (float y) { y = Reshape(x, s) }"""
    path = write(tmp_path / "a.onnx", text, s=np.array([-1, 5, 13], np.int64))
    with pytest.raises(CompatError, match="Give inputs, or sizes of its dynamic axes"):
        convert(path, opset=13)
    result = convert(path, opset=13, sizes={"width": (65, 130)})
    assert {axis.name: axis.tried for axis in result.axes}["width"] == (65, 130)
    with pytest.raises(CompatError, match="no dynamic axis 'height'; it has n, width"):
        convert(path, opset=13, sizes={"height": 3})


def test_static_axes(tmp_path, image):
    result = convert(net(tmp_path / "a.onnx"), static={"n": 4})
    shape = result.session().get_inputs()[0].shape
    assert shape == [4, 3, 8, 8]
    assert result.session().get_outputs()[0].shape == [4, 5]
    assert convert(net(tmp_path / "a.onnx"), static={"image": {0: 4}}).session().get_inputs()[0].shape == shape
    for wrong, message in (({"m": 1}, "no dynamic axis 'm'; it has n"), ({"image": {1: 3}}, "axis 1 of input 'image'")):
        with pytest.raises(CompatError, match=message):
            convert(net(tmp_path / "a.onnx"), static=wrong)
    with pytest.raises(CompatError, match="wanted a whole number from 1"):
        convert(net(tmp_path / "a.onnx"), static={"n": 0})


@pytest.mark.parametrize("batch", [1, 2])
def test_a_batch_axis_is_freed(tmp_path, batch, image):
    path = net(tmp_path / "a.onnx", batch=batch)
    result = convert(path, dynamic="batch")
    rows = [run(path, image=image[i : i + batch])[0] for i in range(0, 4, batch)]
    np.testing.assert_allclose(run(result, image=image)[0], np.concatenate(rows), 1e-5, 1e-6)
    assert {f"batch={2 * batch + 1}", f"batch={3 * batch}"} <= {row.case for row in result.table}


def test_rows_that_depend_on_each_other_are_found(tmp_path):
    text = (
        """<ir_version: 8, opset_import: ["": 17]> g (float[2, 4] x) => (float[2, 4] y) { y = Softmax<axis = 0>(x) }"""
    )
    with pytest.raises(VerificationError, match=r"batch="):
        convert(write(tmp_path / "a.onnx", text), dynamic="batch")
    with pytest.raises(UnsupportedError, match="dynamic already"):
        convert(net(tmp_path / "b.onnx"), dynamic="batch")


def test_a_batch_axis_is_freed_within_branches_and_bodies(tmp_path, runner):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2, 4, 3] x, bool[2] c) => (float[2, 12] y, float[2, 6, 2] z) {
        r = ReduceMax<keepdims = 0>(f)
        d = Cast<to = 9>(r)
        y = If (d) <then_branch = t () => (float[2, 12] a) { a = Reshape(x, s) },
                    else_branch = e () => (float[2, 12] b) { m = Neg(x)  b = Reshape(m, s) }>
        go = Constant <value = bool {1}> ()
        z = Loop (rounds, go, i) <body = l (int64 k, bool q, float[2, 6, 2] p) => (bool v, float[2, 6, 2] w) {
            v = Identity(q)  j = Reshape(p, s)  o = Reshape(j, u)  w = Neg(o) }>
        i = Reshape(x, u)
    }"""
    model = onnx.load(write(tmp_path / "a.onnx", text, s=np.array([2, 12]), u=np.array([2, 6, 2]), rounds=np.array(3)))
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([nodes[-1], *nodes[:-1]])
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "f"))
    del model.graph.input[1]
    onnx.save(model, tmp_path / "a.onnx")
    result = convert(tmp_path / "a.onnx", dynamic="batch", runner=runner)
    shapes = [output.shape for output in result.session().get_outputs()]
    assert shapes == [["batch", 12], ["batch", 6, 2]]
    x = np.random.default_rng(0).random((5, 4, 3)).astype(np.float32)
    y, z = run(result, x=x)
    np.testing.assert_array_equal(y, x.reshape(5, 12))
    np.testing.assert_array_equal(z, -x.reshape(5, 6, 2))


def test_a_wrong_declaration_of_an_output_decides_no_other_form(tmp_path, runner):
    """ncnn runs no Unsqueeze along axes that are an input; a Reshape to what is declared is right for some of them."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[3, 4, 5] x, int64[1] axes) => (float[3, 4, 1, 5] y)
    { y = Unsqueeze(x, axes) }"""
    with pytest.raises(UnsupportedError, match=r"Unsqueeze wrong on ncnn where axes"):
        convert(write(tmp_path / "a.onnx", text), target="ncnn", runner=runner)


def test_a_wrong_declaration_of_an_output_is_left_open(tmp_path, runner):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x) => (float[7, 4] y, float[2, 3, 4] z, float[m, 4] u) { y = Relu(x)  z = Neg(x)  u = Abs(x) }"""
    result = convert(write(tmp_path / "a.onnx", text), runner=runner)
    y, z, u = result.model_proto.graph.output
    assert [(d.dim_value, d.dim_param) for d in y.type.tensor_type.shape.dim][1:] == [(4, "")]
    assert not y.type.tensor_type.shape.dim[0].dim_value
    assert not z.type.tensor_type.HasField("shape")
    assert u.type.tensor_type.shape.dim[0].dim_param == "m"
    assert "output 'y' was declared as [7,4], and is of shape (2, 4); that is left open." in result.notes


@pytest.mark.parametrize("wanted", [11, 12])
@pytest.mark.parametrize("source", [8, 11, 17])
def test_a_file_is_simplified_below_opset_13_too(tmp_path, source, wanted, runner):
    text = f"""<ir_version: 4, opset_import: ["": {source}]> g (float[n, 4] x) => (float[n, 4] y) {{
        a = Add(one, one)  b = Sqrt(a)  y = Mul(x, b) }}"""
    path = write(tmp_path / "a.onnx", text, one=np.array([1], np.float32))
    result = convert(path, opset=wanted, simplify=True, runner=runner)
    assert result.opset == wanted == result.model_proto.opset_import[0].version
    assert result.nodes == {"Mul": 1}


def test_a_target_gets_a_simplified_file_where_it_refuses_the_plain_one(tmp_path, runner):
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[1, 4] x) => (float[1, 4] y) {
        y = If (c) <then_branch = t () => (float[1, 4] a) { a = Relu(x) },
                    else_branch = e () => (float[1, 4] b) { b = Neg(x) }> }"""
    path = write(tmp_path / "a.onnx", text, c=np.array(True))
    result = convert(path, target="rknn", runner=runner)
    assert result.nodes == {"Relu": 1}
    assert any(
        note.startswith("simplified, as the file is rejected without that: target 'rknn'") for note in result.notes
    )
    free = write(tmp_path / "b.onnx", text.replace("x) =>", "x, bool c) =>"))
    with pytest.raises(UnsupportedError, match="If refused on rknn"):
        convert(free, target="rknn", runner=runner)


def test_a_target_gets_what_it_runs(tmp_path):
    path = write(tmp_path / "a.onnx", GELU, w=np.ones(4, np.float32))
    result = convert(path, target="tract")
    assert (result.opset, result.target) == (17, "tract")
    assert "Gelu" not in result.nodes
    with pytest.raises(UnsupportedError, match=r"takes fixed shapes only, and axes of x may vary; .*--static"):
        convert(path, target="rknn")
    assert convert(path, target="rknn", static={"n": 1}).session().get_inputs()[0].shape == [1, 4]


ENGINE = """
import onnxruntime

def version():
    return "1"

def load(path, feeds, outputs, variant):
    session = onnxruntime.InferenceSession(path)
    return lambda feeds: session.run(outputs, feeds)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Puts an engine that runs everything, or of another text, where a target's is."""

    def install(name, text=ENGINE):
        (tmp_path / "adapter.py").write_text(text)

        @dataclasses.dataclass(frozen=True)
        class Installed(engines.Engine):
            @property
            def path(self):
                return tmp_path / "adapter.py"

        monkeypatch.setitem(engines.ENGINES, name, Installed(name, "onnxruntime", ()))

    return install


def test_the_engine_that_is_installed_has_the_last_word_on_what_its_profile_refuses(
    tmp_path, installed, runner, monkeypatch
):
    monkeypatch.delitem(engines.ENGINES, "tract")  # it may be installed
    text = """<ir_version: 7, opset_import: ["": 12]> g (float[n, 3] x) => (int64[2] y) { y = Shape(x) }"""
    path = write(tmp_path / "a.onnx", text)
    with pytest.raises(UnsupportedError, match="Shape refused on tract where result=output"):
        convert(path, target="tract", runner=runner)
    installed("tract")
    result = convert(path, target="tract", runner=runner)
    assert (result.opset, result.nodes) == (12, {"Shape": 1})
    assert any(note.startswith("left to tract as it is; suited to it, the file is rejected:") for note in result.notes)
    assert any(" on tract 1" in row.case for row in result.table)
    wrong = ENGINE.replace("session.run(outputs, feeds)", "[value + 1 for value in session.run(outputs, feeds)]")
    installed("tract", wrong)
    with pytest.raises(UnsupportedError, match="Shape refused on tract where result=output"):
        convert(path, tmp_path / "b.onnx", target="tract", runner=runner)
    assert not (tmp_path / "b.onnx").exists()


def test_what_an_engine_was_seen_to_compute_wrong_stays_refused(tmp_path, installed, runner):
    text = """<ir_version: 6, opset_import: ["": 11]> g (float[2, 1, 3] x) => (float[2, 1, 1, 4] y) {
        y = LSTM<hidden_size = 4, direction = "DIRECTION">(x, w, r) }"""
    weights = {name: np.full(shape, 0.1, np.float32) for name, shape in (("w", (1, 16, 3)), ("r", (1, 16, 4)))}
    installed("mnn")
    reverse = write(tmp_path / "a.onnx", text.replace("DIRECTION", "reverse"), **weights)
    with pytest.raises(UnsupportedError, match="LSTM wrong on mnn"):
        convert(reverse, target="mnn", runner=runner)
    forward = write(tmp_path / "b.onnx", text.replace("DIRECTION", "forward"), **weights)
    made = onnx.load_model_from_string(convert(forward, target="mnn", runner=runner).model_bytes)
    assert [bool(name) for node in made.graph.node for name in node.output] == [True] * 3


def test_operators_of_other_domains(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    g (float[n, 4] x) => (float[n, 4] y) { h = com.microsoft.Gelu(x)  y = Relu(h) }"""
    path = write(tmp_path / "a.onnx", text)
    assert convert(path, opset=21).nodes["com.microsoft::Gelu"] == 1
    with pytest.raises(UnsupportedError, match=r"no standard ONNX operators: com\.microsoft::Gelu"):
        convert(path, target="openvino")


def test_random_numbers_are_not_compared(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[3, 4] x) => (float[3, 4] y, float[3, 4] z) { y = RandomUniformLike(x)  z = Relu(x) }"""
    result = convert(write(tmp_path / "a.onnx", text), opset=13)
    assert "output 'y' differs from run to run; its type and shape were compared." in result.notes
    assert {row.tolerance for row in result.table if row.output == "y"} == {"type and shape"}


def test_rounding_excuses_only_what_the_original_does_too(tmp_path, monkeypatch):
    """1 + x - 1 loses most digits of a small x: any two programs differ there, but by no more than these."""
    text = """<ir_version: 9, opset_import: ["": 20]>
    g (float[100] x) => (float[100] y) { s = Mul(x, w)  h = Gelu(s)  a = Add(h, one)  y = Sub(a, one) }"""
    path = write(tmp_path / "a.onnx", text, w=np.array([1e-4], np.float32), one=np.array([1], np.float32))
    result = convert(path, opset=17)
    assert result.table
    with Proof(read(path)) as proof:
        case = proof.cases[0]
        noisy = case.outputs[0] + np.float32(2**-23) * (case.outputs[0] != 0)
        assert [row.ok for row in proof.compare_outputs(case, [noisy])] == [True]
        assert [row.ok for row in proof.compare_outputs(case, [case.outputs[0] + np.float32(1e-4)])] == [False]


def test_the_reference_evaluator_judges_what_onnxruntime_does_not_run(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (int16[n, 4] x) => (int16[n, 4] y) { a = Max(x, x)  y = Mul(a, x) }"""
    result = convert(write(tmp_path / "a.onnx", text), opset=14)
    assert result.judges == ("reference",)
    assert "onnxruntime does not open the original, so onnx's reference evaluator ran it" in result.notes[0]
    with pytest.raises(VerificationError, match="NOT_IMPLEMENTED"):
        convert(tmp_path / "a.onnx", target="onnxruntime")


def test_large_weights_are_not_seen_by_the_converter(tmp_path, monkeypatch):
    seen = []
    convert_version = onnx.version_converter.convert_version
    monkeypatch.setattr(
        onnx.version_converter, "convert_version", lambda m, v: seen.append(m.ByteSize()) or convert_version(m, v)
    )
    text = """<ir_version: 4, opset_import: ["": 9]>
    g (float[n, 300] x) => (float[n, 300] y) { h = MatMul(x, w)  y = Softmax(h) }"""
    path = write(tmp_path / "a.onnx", text, w=np.random.rand(300, 300).astype(np.float32))
    result = convert(path, opset=17)
    assert seen
    assert max(seen) < 5000
    assert numpy_helper.to_array(result.model_proto.graph.initializer[0]).shape == (300, 300)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opset": 10}, "opset_version=10: out of range, the opsets that can be written are 11"),
        ({"opset": 99}, "out of range"),
        ({"dynamic": "height"}, "wanted 'batch'"),
        ({"dynamic": "batch", "static": {"n": 1}}, "contradict each other"),
        ({"target": "nothing"}, "unknown target"),
    ],
)
def test_arguments_that_make_no_sense(tmp_path, options, message):
    with pytest.raises(CompatError, match=message):
        convert(net(tmp_path / "a.onnx"), **options)


def test_onnxruntime_decides_where_the_reference_evaluator_is_off(tmp_path, runner):
    """The evaluator takes the half_pixel of opset 16 for opset 10; onnxruntime has no RoiAlign of opset 22."""
    text = """<ir_version: 10, opset_import: ["": 22]> g (float[1, 1, 10, 10] x) => (float[2, 1, 3, 3] y)
    { r = Constant<value = float[2, 4] {0.0, 0.0, 7.0, 8.0, 2.0, 3.0, 9.0, 5.0}>()
      i = Constant<value = int64[2] {0, 0}>()
      y = RoiAlign<coordinate_transformation_mode = "output_half_pixel", output_height = 3, output_width = 3,
                   sampling_ratio = 2>(x, r, i) }"""
    result = convert(write(tmp_path / "a.onnx", text), opset=11, runner=runner)
    assert result.judges == ("reference", "onnxruntime")
