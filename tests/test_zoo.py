"""Whole zoo models with a dynamic batch, at three opsets, on both exporters: verified, or refused by operator."""

import pytest

from torch_onnx_compat import Verify, export_compat
from torch_onnx_compat.zoo import load

pytestmark = pytest.mark.slow

SPECS = [
    "torchvision:raft_small",
    "timm:cs3darknet_focus_s",
    "torchvision:vit_b_32",
    "torchvision:swin_t",
]


@pytest.mark.parametrize("opset", [13, 17, 20])
@pytest.mark.parametrize("spec", SPECS)
def test_verified_at_batches_1_2_and_5(spec, opset, exporter):
    sample = load(spec)
    result = export_compat(
        sample.model,
        sample.args,
        kwargs=sample.kwargs,
        dynamic="batch",
        exporter=exporter,
        opset_version=opset,
        verify=Verify(sizes={"batch": (1, 2, 5)}),
    )
    assert result.opset == opset
    assert {"example", "batch=1", "batch=2", "batch=5"} == {row.case for row in result.table}
    assert all(row.ok and row.max_abs == row.max_abs for row in result.table)
