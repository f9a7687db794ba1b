"""The facts that conditions are about, read from a graph."""

import onnx_ir as ir
import pytest

from torch_onnx_compat.targets.facts import node_facts


def facts(text, index=0, opset=18):
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    return node_facts(model.graph[index], opset)


def test_attributes_and_defaults():
    found = facts(
        "g (float[1,3,9,9] x) => (float[1,3,4,4] y)"
        "{ y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[0,0,1,0]>(x) }"
    )
    assert (found["kernel_shape"], found["strides"], found["pads"]) == (3, 2, "mixed")
    assert (found["ceil_mode"], found["auto_pad"], found["version"]) == (0, "NOTSET", 12)
    assert (found["rank"], found["type"], found["inputs"], found["outputs"]) == (4, "float", 1, 1)


def test_kinds_of_inputs():
    found = facts("g (float[2] x, float low) => (float[2] y) <float high = {6.0}> { y = Clip(x, low, high) }")
    assert (found["input.1"], found["input.2"]) == ("computed", "constant")
    assert facts("g (float[2] x) => (float[2] y) { y = Clip(x) }")["input.2"] == "absent"


@pytest.mark.parametrize(("a", "b", "shapes"), [("1,3", "1,3", "equal"), ("1,3", "3", "broadcast")])
def test_shapes(a, b, shapes):
    assert facts(f"g (float[{a}] x, float[{b}] z) => (float[1,3] y) {{ y = Add(x, z) }}")["shapes"] == shapes


@pytest.mark.parametrize(("scale", "name"), [("2.0", "whole"), ("1.5", "exact"), ("1.3", "rounded")])
def test_scales(scale, name):
    text = f"g (float[1,1,4,4] x) => (float[1,1,h,w] y) <float[4] s = {{1.0, 1.0, {scale}, {scale}}}>"
    assert facts(f'{text} {{ y = Resize(x, "", s) }}')["scales"] == name


@pytest.mark.parametrize(("size", "window"), [(9, "inside"), (10, "beyond"), (8, "padding")])
def test_last_window(size, window):
    kernel, stride, pad = (2, 3, 1) if window == "padding" else (3, 2, 0)
    pool = f"MaxPool<kernel_shape=[{kernel}], strides=[{stride}], pads=[{pad},{pad}], ceil_mode=1>"
    assert facts(f"g (float[1,1,{size}] x) => (float[1,1,n] y) {{ y = {pool}(x) }}")["last_window"] == window


@pytest.mark.parametrize(("slope", "name"), [("1", "one"), ("3,1,1", "channel"), ("5", "other")])
def test_slope(slope, name):
    text = f"g (float[1,3,4,5] x, float[{slope}] s) => (float[1,3,4,5] y) {{ y = PRelu(x, s) }}"
    assert facts(text)["slope"] == name


def test_gates():
    text = "g (float[2] x, float[2] z) => (float[2] y) { s = HardSigmoid(x) y = Mul(@, s) }"
    assert facts(text.replace("@", "z"))["gates"] == "another"
    assert facts(text.replace("@", "x"))["gates"] == "no"


def test_reused():
    text = "g (float[2] x) => (float[2] y, float[2] z) { h = Neg(x) y = Exp(h) z = @ }"
    assert facts(text.replace("@", "Abs(h)"), 1)["reused"] == "yes"
    assert facts(text.replace("@", "Abs(x)"), 1)["reused"] == "no"


def test_unknown_shapes_are_left_out():
    found = facts("g (float[2] x) => (y) { h = Foo(x) y = Neg(h) }", 1)
    assert "rank" not in found
    assert "type" not in found


@pytest.mark.parametrize(("steps", "name"), [("1", "1"), ("2", "more"), ("-1", "negative")])
def test_step(steps, name):
    text = "g (float[9] x) => (float[n] y) <int64[1] a = {0}, int64[1] b = {9}, int64[1] c = {0}, int64[1] d = {@}>"
    assert facts(f"{text} {{ y = Slice(x, a, b, c, d) }}".replace("@", steps))["step"] == name
