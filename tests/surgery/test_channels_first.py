"""Detections of boxes (N, 4, A) and scores (N, C, A)."""

import numpy as np
import pytest
import torch
from torch import nn
from torchvision import ops

from torch_onnx_compat import CompatError, Detections, export_compat


class Rows(nn.Module):
    """Boxes (N, 4, A), scores (N, C, A), and something else."""

    def forward(self, boxes, scores):
        return boxes * 2, scores.sigmoid(), boxes.mean()


@pytest.mark.parametrize("form", ["nms", "nms-dense"])
def test_boxes_and_scores_may_both_have_their_channels_first(form, exporter):
    """By one of them nobody can tell, so what was taken for four anchors of many classes is asked about."""
    torch.manual_seed(3)
    boxes, scores = torch.rand(2, 4, 30), torch.randn(2, 5, 30)
    with pytest.raises(CompatError, match=r"say Detections\(boxes=0, scores=1, channels_first=True\)"):
        export_compat(Rows(), (boxes, scores), postprocess=Detections(form, box_format="xywh"), exporter=exporter)
    declared = Detections(form, scores=1, channels_first=True, box_format="xywh", candidates=30)
    result = export_compat(Rows(), (boxes, scores), postprocess=declared, exporter=exporter, dynamic="batch")
    assert any("not in the file, as neither boxes nor scores: output '2'" in note for note in result.notes)
    boxes, scores = torch.rand(3, 4, 30), torch.randn(3, 5, 30)
    found = result(boxes, scores)
    corners = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1).transpose(1, 2) * 2
    best, classes = scores.sigmoid().max(1)
    for image in range(3):
        kept = ops.batched_nms(corners[image], best[image], classes[image], 0.45)
        kept = kept[best[image][kept] > 0.25]
        count = int(found[3][image])
        assert count == len(kept)
        np.testing.assert_allclose(found[0][image][:count], corners[image][kept], rtol=1e-4)
        assert found[2][image][:count].tolist() == classes[image][kept].tolist()
