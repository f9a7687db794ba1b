import pytest
import torch
from torchvision import ops

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "ps_roi_pool"


def regions(batch):
    """Feature maps and regions, some beyond the border or empty, some with corners at halves."""
    corner = torch.rand(6 * batch, 2) * 20 - 4
    boxes = torch.cat((corner, corner + torch.rand(6 * batch, 2) * 12), 1)
    boxes[1, 2:] = boxes[1, :2]
    boxes[2] = torch.tensor([-3.0, 1.0, 7.0, 9.0])
    return torch.randn(batch, 12, 12, 10), torch.cat((torch.arange(6 * batch)[:, None] % batch, boxes), 1)


def many(x, rois):
    return (
        ops.ps_roi_pool(x, rois, 2, 0.5),
        ops.ps_roi_pool(x, rois, (2, 3), 0.7),
        ops.PSRoIPool((3, 1), 1.0)(x, rois),
        ops.ps_roi_pool(x + 1000, rois, 1),
    )


def test_matches(exporter):
    assert_entry(NAME, many, regions(2), exporter)


def test_matches_any_batch_and_height(exporter):
    dynamic = {"x": {0: "batch", 2: "height"}, "rois": {0: "regions"}}
    assert_entry(NAME, many, regions(2), exporter, dynamic=dynamic)


def test_declines_varying_channels():
    with pytest.raises(CompatError, match="the number of channels must be fixed"):
        assert_same_outputs(
            lambda x, r: ops.ps_roi_pool(x, r, 1), regions(2), "torchscript", dynamic={"x": {1: "channels"}}
        )


def test_sentinel(exporter):
    @symbolic("torchvision::ps_roi_pool", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(
        op: Ops, input: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int
    ) -> tuple[Value, Value]:
        shape = op.constant([12, 3, pooled_height, pooled_width], torch.int64)
        return op.Expand(op.constant([[[[0.0]]]], torch.float32), shape), op.constant(0, torch.int32)

    with pytest.raises(VerificationError):
        assert_same_outputs(lambda x, r: ops.ps_roi_pool(x, r, 2, 0.5), regions(2), exporter, symbolics=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, regions(2), exporter)
