"""What an engine does not load is written otherwise, or refused before a file is written."""

import pytest
import torch
import torch.nn.functional as F

from torch_onnx_compat import CompatError, export_compat

DYNAMIC = {"x": {0: "batch", 1: "n"}}


def sorts(x):
    return x.sort(1).values


@pytest.mark.parametrize(("target", "why"), [("tract", "input.1=computed"), ("opencv-classic", "sizes=dynamic")])
def test_sorts_of_dynamic_axes(target, why, exporter):
    with pytest.raises(CompatError, match=rf"TopK refused on {target} where {why}"):
        export_compat(sorts, torch.randn(2, 5), target=target, dynamic=DYNAMIC, exporter=exporter)
    assert export_compat(sorts, torch.randn(2, 5), target=target, exporter=exporter).nodes["TopK"] == 1


def test_no_softmin_for_ncnn(exporter):
    nodes = export_compat(lambda x: F.softmin(x, 1), torch.randn(2, 5), target="ncnn", exporter=exporter).nodes
    assert (nodes["Mul"], nodes["Softmax"], nodes.get("Neg", 0)) == (1, 1, 0)
    assert export_compat(lambda x: F.softmin(x, 1), torch.randn(2, 5), exporter=exporter).nodes["Neg"] == 1
