import numpy as np
import pytest
import torch
from torchvision import ops

from torch_onnx_compat import Ops, Value, export_compat, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "nms"
CORNERS = torch.tensor([[0.0, 0, 4, 4], [1, 1, 5, 5], [4, 4, 0, 0], [2, 2, 2, 2], [1, 1, 5, 5], [9, 9, 2, 2]])
EXAMPLE = (CORNERS, torch.tensor([0.5, 0.5, 0.9, 0.1, 0.7, 0.9]))
DYNAMIC = {"boxes": {0: "boxes"}, "scores": {0: "boxes"}}


def kept(boxes, scores):
    return ops.nms(boxes, scores, 0.3)


def sets(generator):
    """1000 sets of boxes on a grid, so that many are equal, empty or inside out and many scores are."""
    for _ in range(1000):
        count = int(torch.randint(0, 12, (), generator=generator))
        boxes = torch.randint(0, 7, (count, 4), generator=generator).float()
        yield boxes, torch.randint(0, 5, (count,), generator=generator) / 4


@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_keeps_what_torchvision_keeps(threshold):
    session = export_compat(
        lambda boxes, scores: ops.nms(boxes, scores, threshold), EXAMPLE, exporter="torchscript", dynamic=DYNAMIC
    ).session()
    for boxes, scores in sets(torch.Generator().manual_seed(0)):
        found = session.run(None, {"boxes": boxes.numpy(), "scores": scores.numpy()})[0]
        np.testing.assert_array_equal(found, ops.nms(boxes, scores, threshold).numpy())


def test_matches(exporter):
    def model(boxes, scores):
        ordered = torch.cat((boxes[:, :2], boxes[:, 2:] + 9), 1)
        return kept(boxes, scores), ops.nms(ordered, scores, 0.7), boxes[kept(boxes, scores)]

    samples = [(torch.rand(9, 4) * 9, torch.rand(9)), (torch.zeros(0, 4), torch.zeros(0))]
    assert_same_outputs(model, EXAMPLE, exporter, dynamic=DYNAMIC, samples=samples, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(kept, EXAMPLE, exporter, uses=(NAME,))
    assert result.nodes["NonMaxSuppression"] == 1
    assert sum(n for op, n in result.nodes.items() if op != "Constant") == 9


def test_other_operators_are_left_alone():
    result = assert_same_outputs(lambda boxes, scores: ops.box_iou(boxes, boxes), EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @symbolic("torchvision::nms", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, dets: Value, scores: Value, iou_threshold: float) -> Value:
        return op.Reshape(op.TopK(scores, [3], _outputs=2)[1], [-1])

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(kept, EXAMPLE, exporter, symbolics=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(kept, EXAMPLE, exporter, exclude=[NAME])
