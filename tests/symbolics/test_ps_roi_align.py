import pytest
import torch
from torchvision import ops

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "ps_roi_align"
OPSET = {"torchscript": 17, "dynamo": 18}


def regions(batch):
    """Feature maps and regions, some beyond the border or empty."""
    corner = torch.rand(4 * batch, 2) * 20 - 2
    boxes = torch.cat((corner, corner + torch.rand(4 * batch, 2) * 12), 1)
    boxes[1, 2:] = boxes[1, :2]
    return torch.randn(batch, 12, 12, 10), torch.cat((torch.arange(4 * batch)[:, None] % batch, boxes), 1)


def many(x, rois):
    return (
        ops.ps_roi_align(x, rois, 2, 0.5, 2),
        ops.ps_roi_align(x, rois, (2, 3), 0.7, -1),
        ops.PSRoIAlign((3, 1), 1.0, 3)(x, rois),
    )


def test_matches(exporter):
    assert_entry(NAME, many, regions(2), exporter, opset=OPSET[exporter])


def test_matches_any_batch(exporter):
    dynamic = {"x": {0: "batch", 2: "height"}, "rois": {0: "regions"}}
    model = lambda x, rois: ops.ps_roi_align(x, rois, (2, 3), 0.5, 2)  # noqa: E731
    assert_entry(NAME, model, regions(2), exporter, opset=OPSET[exporter], dynamic=dynamic)


def test_roi_align_is_left_alone(exporter):
    result = assert_same_outputs(lambda x, r: ops.roi_align(x, r, 2, 0.5, 2), regions(2), exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_needs_opset_16():
    with pytest.raises(CompatError):
        assert_same_outputs(many, regions(2), "torchscript", opset=15)


def test_sentinel(exporter):
    @symbolic("torchvision::ps_roi_align", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(
        op: Ops,
        input: Value,
        rois: Value,
        spatial_scale: float,
        pooled_height: int,
        pooled_width: int,
        sampling_ratio: int,
    ) -> tuple[Value, Value]:
        zeros = op.constant([[[[0.0]]]], torch.float32)
        shape = op.constant([8, 3, pooled_height, pooled_width], torch.int64)
        return op.Expand(zeros, shape), op.constant(0, torch.int32)

    model = lambda x, r: ops.ps_roi_align(x, r, 2, 0.5, 2)  # noqa: E731
    with pytest.raises(VerificationError):
        assert_same_outputs(model, regions(2), exporter, symbolics=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, regions(2), exporter, opset=OPSET[exporter])
