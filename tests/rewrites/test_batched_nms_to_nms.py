import numpy as np
import pytest
import torch
from torchvision import ops

from torch_onnx_compat import export_compat, rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "batched_nms_to_nms"
EXAMPLE = (
    torch.tensor([[0.0, 0, 4, 4], [1, 1, 5, 5], [0, 0, 4, 4], [2, 2, 2, 2]]),
    torch.tensor([0.5, 0.7, 0.9, 0.1]),
    torch.tensor([0, 0, 1, 1]),
)
DYNAMIC = {name: {0: "count"} for name in ("boxes", "scores", "classes")}


def kept(boxes, scores, classes):
    return ops.batched_nms(boxes, scores, classes, 0.3)


def sets(generator):
    """Boxes on a grid, many of them equal or empty, of three classes; none in some sets, over 1000 in the last."""
    counts = [*torch.randint(0, 12, (300,), generator=generator).tolist(), 1100]
    for count in counts:
        corner = torch.randint(0, 7 if count < 100 else 300, (count, 2), generator=generator)
        boxes = torch.cat((corner, corner + torch.randint(0, 5, (count, 2), generator=generator)), 1).float()
        scores = torch.randperm(count, generator=generator) / max(count, 1)
        yield boxes, scores, torch.randint(0, 3, (count,), generator=generator)


def test_keeps_what_torchvision_keeps(exporter):
    session = export_compat(kept, EXAMPLE, exporter=exporter, dynamic=DYNAMIC).session()
    for args in sets(torch.Generator().manual_seed(0)):
        feeds = {name: arg.numpy() for name, arg in zip(DYNAMIC, args, strict=True)}
        np.testing.assert_array_equal(session.run(None, feeds)[0], kept(*args).numpy())


def test_applied(exporter):
    result = assert_same_outputs(kept, EXAMPLE, exporter, dynamic=DYNAMIC, uses=(NAME, "nms"))
    assert result.nodes["NonMaxSuppression"] == 1
    assert "If" not in result.nodes


def test_nms_of_one_class_is_left_alone(exporter):
    result = assert_same_outputs(lambda boxes, scores: ops.nms(boxes, scores, 0.3), EXAMPLE[:2], exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite("torchvision.ops.batched_nms", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(boxes, scores, idxs, iou_threshold):
        return torch.ops.torchvision.nms(boxes, scores, iou_threshold)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(kept, EXAMPLE, exporter, rewrites=[broken])


def test_still_needed(exporter):
    # Masked, torchvision's decision is right through TorchScript too, in a file with both of its ways.
    assert_still_needed(NAME, kept, EXAMPLE, exporter, dynamic=DYNAMIC, control_flow=False)
