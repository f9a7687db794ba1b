"""Broken and hostile files: one clear error, nothing written, bounded memory."""

import os
import resource
import struct

import numpy as np
import onnx
import pytest
from files.file_models import net, write
from onnx import TensorProto, helper, numpy_helper

from torch_onnx_compat import CompatError
from torch_onnx_compat.files import convert
from torch_onnx_compat.files.drawing import Plan
from torch_onnx_compat.files.runner import Refused, Runner

BYTES_LEFT = 400 * 2**20
"""What the caller's own process may grow by."""


def refuse(path, message, **options):
    """Converts a file; checks that it is refused in these words, and that nothing was written."""
    before, memory = path.read_bytes() if path.is_file() else None, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    there = {p.name for p in path.parent.iterdir()}
    with pytest.raises(CompatError, match=message) as caught:
        convert(path, path.parent / "new.onnx", **{"opset": 13, **options})
    assert {p.name for p in path.parent.iterdir()} == there, "something was written"
    assert before is None or path.read_bytes() == before
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) * 1024 < BYTES_LEFT
    assert len(str(caught.value)) < 2000
    return caught.value


def save(path, nodes, weights=(), outputs=("y",), inputs=(("x", [2, 3]),), opset=17):
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        list(weights),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("data", [b"hello world, this is no model", bytes(range(256)) * 40, b"\x08\x09"])
def test_what_is_no_model(tmp_path, data):
    path = tmp_path / "a.onnx"
    path.write_bytes(data)
    refuse(path, "no ONNX file")


def test_an_empty_file_a_folder_and_a_file_that_is_not_there(tmp_path):
    (tmp_path / "a.onnx").touch()
    refuse(tmp_path / "a.onnx", "the file is empty")
    refuse(tmp_path, "no file; wanted an ONNX file")
    refuse(tmp_path / "b.onnx", "cannot be read: No such file")


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path):
    data = net(tmp_path / "whole.onnx").read_bytes()
    (tmp_path / "whole.onnx").unlink()
    for end in range(1, len(data), 37):
        path = tmp_path / "a.onnx"
        path.write_bytes(data[:end])
        refuse(path, "no ONNX file|cut off|holds|opset|no outputs|does not run as it is|negative size")


def test_maps_are_named_and_what_to_do(tmp_path):
    out = onnx.ValueInfoProto(name="chances")
    out.type.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
    out.type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    node = helper.make_node("ZipMap", ["x"], ["chances"], domain="ai.onnx.ml", classlabels_int64s=[0, 1])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])], [out])
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "a.onnx")
    refuse(tmp_path / "a.onnx", "'chances' holds maps.*options=.'zipmap': False")


def test_sizes_of_a_file_without_shapes(tmp_path):
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "x"],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "y"],
        ),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    onnx.save(model, tmp_path / "a.onnx")
    refuse(tmp_path / "a.onnx", "no dynamic axis 'height'.*declares no shapes; give inputs", sizes={"height": 16})


def test_a_cycle(tmp_path):
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    refuse(save(tmp_path / "a.onnx", nodes, outputs=["b"]), "does not run as it is|cannot be read")


def test_a_value_that_nothing_computes(tmp_path):
    refuse(save(tmp_path / "a.onnx", [helper.make_node("Add", ["x", "nowhere"], ["y"])]), "nowhere")


def test_two_values_of_one_name(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])]
    refuse(save(tmp_path / "a.onnx", nodes), "the graph cannot be read: Output 'y' is redeclared")


def test_a_weight_that_says_it_is_huge(tmp_path):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**20, 2**20], raw_data=b"1234")
    refuse(save(tmp_path / "a.onnx", [helper.make_node("Add", ["x", "w"], ["y"])], [tensor]), "holds 4 bytes")


def test_a_graph_that_computes_a_huge_tensor(tmp_path):
    """The terabyte is asked for in the process that runs files, which may not have it."""
    shape = numpy_helper.from_array(np.array([2**20, 2**18], np.int64), "s")
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["big"]),
        helper.make_node("ReduceSum", ["big"], ["sum"]),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    refuse(save(tmp_path / "a.onnx", nodes, [shape]), "does not run as it is|refuses every input", simplify=True)


def test_an_input_that_is_too_large_to_draw(tmp_path):
    path = save(tmp_path / "a.onnx", [helper.make_node("Relu", ["x"], ["y"])], inputs=[("x", [2**16, 2**16])])
    refuse(path, "too large to draw")


def test_sizes_that_are_guessed_stay_small(tmp_path, monkeypatch):
    """A file that refuses every input of unknown rank is not asked with gigabytes."""
    drawn = []
    draw = Plan.draw
    monkeypatch.setattr(Plan, "draw", lambda self, sizes, *a: drawn.append(self.count(sizes)) or draw(self, sizes, *a))
    text = """<ir_version: 8, opset_import: ["": 17]> g (float x) => (float y) { y = Reshape(x, s) }"""
    model = onnx.load(write(tmp_path / "a.onnx", text, s=np.array([65537], np.int64)))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    refuse(tmp_path / "a.onnx", "refuses every input")
    assert 2**20 < max(drawn) <= 2**22


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "sub/../../secret.bin", "link.bin"])
def test_weights_outside_of_the_folder(tmp_path, location):
    (tmp_path / "secret.bin").write_bytes(struct.pack("<3f", 1, 2, 3))
    folder = tmp_path / "models"
    folder.mkdir()
    os.symlink(tmp_path / "secret.bin", folder / "link.bin")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    path = save(folder / "a.onnx", [helper.make_node("Add", ["x", "w"], ["y"])], [tensor])
    refuse(path, "outside of the file's folder")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "is not there"),
        ({"offset": "4"}, "12 from 4 on"),
        ({"length": "9"}, "wants 12 bytes"),
        ({"offset": "x"}, "numbers"),
    ],
)
def test_weights_that_are_not_there(tmp_path, entries, message):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    if entries:
        (tmp_path / "w.bin").write_bytes(struct.pack("<3f", 1, 2, 3))
    refuse(save(tmp_path / "a.onnx", [helper.make_node("Add", ["x", "w"], ["y"])], [tensor]), message)


def wire(field, data):
    """A field of a protobuf message that holds another message."""
    head, length = bytes([field << 3 | 2]), len(data)
    while length > 0x7F:
        head, length = head + bytes([length & 0x7F | 0x80]), length >> 7
    return head + bytes([length]) + data


@pytest.mark.parametrize("depth", [60, 5000])
def test_deep_nesting(tmp_path, depth):
    graph = wire(12, wire(1, b"y"))
    for _ in range(depth):
        graph = wire(1, wire(5, wire(6, graph))) + wire(12, wire(1, b"y"))  # a node's attribute that is a graph
    path = tmp_path / "a.onnx"
    path.write_bytes(b"\x08\x08" + wire(7, graph) + wire(8, b"\x10\x11"))
    refuse(path, "deeper within each other than the 100 messages")


@pytest.mark.parametrize("name", [b"image", b"onnx-producer", b"Relu", b"main_domain"])
def test_names_that_are_no_text(tmp_path, name):
    model = onnx.load(net(tmp_path / "a.onnx"))
    model.producer_name, model.domain = "onnx-producer", "main_domain"
    data = model.SerializeToString()
    (tmp_path / "a.onnx").write_bytes(data.replace(name, b"\xff" * len(name)))
    refuse(tmp_path / "a.onnx", "holds bytes that are no text")


def test_functions_that_call_each_other(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17, "local": 1]>
    g (float[2] x) => (float[2] y) { y = local.f(x) }
    <domain: "local", opset_import: ["": 17, "local": 1]> f (a) => (b) { b = local.h(a) }
    <domain: "local", opset_import: ["": 17, "local": 1]> h (a) => (b) { b = local.f(a) }"""
    refuse(write(tmp_path / "a.onnx", text), "does not run as it is|refuses every input")


def test_a_graph_that_divides_by_zero(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]> g (int64[2] x) => (int64[2] y) { y = Div(x, z) }"""
    path = write(tmp_path / "a.onnx", text, z=np.zeros(2, np.int64))
    refuse(path, "does not run as it is|refuses every input")  # older versions of onnxruntime die of it
    assert convert(net(tmp_path / "b.onnx"), opset=13).table


def test_an_opset_that_is_too_old_and_one_that_is_missing(tmp_path):
    refuse(net(tmp_path / "a.onnx", opset=6), "opset 6; wanted 7 or later")
    model = onnx.load(net(tmp_path / "b.onnx"))
    del model.opset_import[:]
    (tmp_path / "b.onnx").write_bytes(model.SerializeToString())
    refuse(tmp_path / "b.onnx", "does not say which opset")


def test_a_runner_starts_again_after_a_crash(tmp_path):
    path = write(
        tmp_path / "a.onnx", """<ir_version: 8, opset_import: ["": 17]> g (int64[2] x) => (int64[2] y) { y = Abs(x) }"""
    )
    feeds = {"x": np.ones(2, np.int64)}
    with Runner() as runner:
        runner.open("a", path)
        runner._process.kill()
        with pytest.raises(Refused, match=r"the engine's process died \(SIGKILL\)") as caught:
            runner.run("a", feeds)
        assert caught.value.is_crash
        assert runner.run("a", feeds)[0].tolist() == [1, 1]
        (process,) = [runner._process]
    assert process.poll() is not None


def test_a_runner_gives_up_on_what_takes_too_long(tmp_path):
    body = """<ir_version: 8, opset_import: ["": 17]>
    g (float[400,400] x, int64 n) => (float[400,400] y) {
        go = Constant <value = bool {1}> ()
        y = Loop (n, go, x) <body = b (int64 i, bool c, float[400,400] a) => (bool d, float[400,400] e) {
            d = Identity(c)
            e = MatMul(a, a) } > }"""
    path = write(tmp_path / "a.onnx", body)
    with Runner(limit=5.0) as runner:
        runner.open("a", path)
        with pytest.raises(Refused, match=r"no answer within 5 s"):
            runner.run("a", {"x": np.zeros((400, 400), np.float32), "n": np.array(10**6)})


@pytest.mark.parametrize("given", [b"model", onnx.ModelProto(), None])
def test_what_is_no_path(given):
    with pytest.raises(CompatError, match=rf"path of an ONNX file, not {type(given).__name__}; write the model"):
        convert(given)
