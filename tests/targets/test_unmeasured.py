"""Targets that are known from documentation only: what their rows forbid is not in the files made for them."""

import onnx
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.targets import known_targets, load_target

UNMEASURED = [name for name in known_targets() if not load_target(name).measured]


class Sampler(nn.Module):
    def forward(self, x, grid):
        return nn.functional.grid_sample(x, grid, align_corners=False)


class Indices(nn.Module):
    def forward(self, x):
        return nn.functional.max_pool2d(x, 2, return_indices=True)


def exported(model, args, path, **options):
    export_compat(model.eval(), args, path, exporter="torchscript", **options)
    return onnx.load(path).graph.node


def test_which():
    assert set(UNMEASURED) == {"coreml", "qnn", "tensorrt-8.6", "tensorrt-10", "tensorrt-11"}


@pytest.mark.parametrize("name", UNMEASURED)
def test_a_network_is_exported(name, tmp_path):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    result = export_compat(model.eval(), torch.rand(1, 3, 9, 9), tmp_path / "m.onnx", target=name)
    assert (result.opset, result.target) == (17, name)


@pytest.mark.parametrize("name", ["tensorrt-10", "tensorrt-11"])
@pytest.mark.parametrize("opset", [17, 20])
def test_words_that_tensorrt_does_not_know(name, opset, tmp_path):
    nodes = exported(
        Sampler(),
        (torch.rand(1, 3, 8, 8), torch.rand(1, 5, 5, 2)),
        tmp_path / "m.onnx",
        target=name,
        opset_version=opset,
    )
    modes = [a.s for n in nodes if n.op_type == "GridSample" for a in n.attribute if a.name == "mode"]
    assert b"linear" not in modes
    assert modes == ([b"bilinear"] if opset == 17 else [])


@pytest.mark.parametrize("name", ["tensorrt-8.6", "tensorrt-10", "tensorrt-11"])
def test_what_cannot_be_avoided_is_refused_with_its_source(name, tmp_path):
    with pytest.raises(
        UnsupportedError, match=rf"target '{name}' at opset 17: MaxPool refused on {name} where outputs!=0"
    ):
        exported(Indices(), (torch.rand(1, 3, 8, 8),), tmp_path / "m.onnx", target=name)
    row = next(r for r in load_target(name).rows if r.op_type == "MaxPool" and "outputs" in r.when)
    assert "row MaxPool: the output Indices is unsupported" in row.source


class Reductions(nn.Module):
    def forward(self, x):
        return x.amax(1), x.amin(1), x.max(1), x.prod(1), x.logsumexp(1), x.argmax(1)


@pytest.mark.parametrize("name", [name for name in UNMEASURED if name.startswith("tensorrt")])
@pytest.mark.parametrize("opset", [None, 17])
def test_reductions_are_not_refused(name, opset, tmp_path):
    nodes = exported(Reductions(), (torch.rand(2, 3, 4),), tmp_path / "m.onnx", target=name, opset_version=opset)
    assert {"ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp"} <= {node.op_type for node in nodes}


def test_fixed_shapes_only(tmp_path):
    with pytest.raises(UnsupportedError, match="it takes fixed shapes only, and axis 0 of 'input' may vary"):
        exported(nn.ReLU(), (torch.rand(2, 3),), tmp_path / "m.onnx", target="qnn", dynamic="batch")
