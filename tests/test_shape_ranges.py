"""The shapes that an engine is built for: the caller's bounds, else what the file was tried at."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.check.verdicts import AxisProof
from torch_onnx_compat.inputs.dynamic import with_axes
from torch_onnx_compat.inputs.inputs import bind
from torch_onnx_compat.shape_ranges import ShapeRange, shape_ranges, tensorrt_command


class Pair(nn.Module):
    def forward(self, x, y):
        return x.sum() + y


def inputs(dynamic, *shapes):
    return with_axes(bind(Pair(), tuple(torch.rand(shape) for shape in shapes), {}, None), dynamic, None, None)


def test_bounds_of_the_caller():
    found = shape_ranges(inputs({"x": {0: ("batch", 2, 16), 1: ("size", 1, 9)}}, (4, 5), (3,)))
    assert found == {"x": ShapeRange((2, 1), (4, 5), (16, 9))}


def test_sizes_that_were_tried():
    proofs = [AxisProof("batch", 1, None, (1, 7), True)]
    found = shape_ranges(inputs({"x": {0: "batch"}, "y": {0: "batch"}}, (4, 5), (4,)), proofs)
    assert found == {"x": ShapeRange((1, 5), (4, 5), (7, 5)), "y": ShapeRange((1,), (4,), (7,))}


def test_a_smallest_size_that_the_model_refuses_is_left_out():
    """The caller's bound begins at 1, and the file was right from 3."""
    proofs = [AxisProof("h", 1, 64, (3, 9), False)]
    assert shape_ranges(inputs({"x": {0: ("h", 1, 64)}}, (9, 5), (3,)), proofs)["x"].least == (3, 5)


def test_an_axis_that_was_not_tried_stays():
    assert shape_ranges(inputs({"x": {0: "batch"}}, (4, 5), (3,))) == {"x": ShapeRange((4, 5), (4, 5), (4, 5))}


@pytest.mark.parametrize(
    ("axis", "shapes", "least", "most"),
    [
        ("past + new", (5, 4, 9), 3, 30),
        ("2 * past + 1", (5, 4, 11), 5, 41),
        ("3 * past - new", (5, 4, 11), 0, 59),  # falls where `new` rises
    ],
)
def test_derived_axes(axis, shapes, least, most):
    dynamic = {"x": {0: ("past", 2, 20), 1: ("new", 1, 10)}, "y": {0: axis}}
    found = shape_ranges(inputs(dynamic, shapes[:2], shapes[2:]))["y"]
    assert found == ShapeRange((least,), shapes[2:], (most,))


def test_the_result_has_them(tmp_path):
    dynamic = {"x": {0: ("batch", 1, 32)}, "y": {0: ("batch", 1, 32)}}
    result = export_compat(
        Pair().eval(), (torch.rand(2, 3), torch.rand(2)), tmp_path / "m.onnx", dynamic=dynamic, target="tensorrt-11"
    )
    assert result.shapes == {"x": ShapeRange((1, 3), (2, 3), (32, 3)), "y": ShapeRange((1,), (2,), (32,))}
    assert result.to_dict()["shapes"]["y"] == {"least": (1,), "usual": (2,), "most": (32,)}
    command = f"trtexec --onnx={result.path} --saveEngine={result.path.with_suffix('.engine')}"
    assert f"build: {command} --minShapes=x:1x3,y:1 --optShapes=x:2x3,y:2 --maxShapes=x:32x3,y:32" in str(result)


def test_the_command_line_quotes_what_a_shell_would_split():
    ranges = {"input:0": ShapeRange((1, 3), (2, 3), (4, 3)), "other": ShapeRange((1,), (1,), (1,))}
    text = tensorrt_command("tensorrt-10", "my model.onnx", ranges, ["input:0"])
    assert text is not None
    assert "'--onnx=my model.onnx'" in text
    assert "input:0" in text
    assert "other" not in text
    assert tensorrt_command("openvino", "m.onnx", ranges, ["other"]) is None
