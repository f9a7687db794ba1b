import pytest
import torch
from torch import nn
from torchvision.models.detection import ssd
from torchvision.models.detection._utils import BoxCoder

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "ssd_detections_at_once"
TARGET = "torchvision.models.detection.ssd.SSD.postprocess_detections"


class Head(nn.Module):
    """What torchvision's SSD does with the outputs of its network."""

    def __init__(self, anchors=60):
        super().__init__()
        self.box_coder = BoxCoder((10.0, 10.0, 5.0, 5.0))
        self.score_thresh, self.topk_candidates, self.nms_thresh, self.detections_per_img = 0.2, 20, 0.45, 30
        corner = torch.rand(anchors, 2) * 40
        self.anchors = torch.cat((corner, corner + torch.rand(anchors, 2) * 20 + 4), 1)

    def forward(self, codes, logits):
        outputs = {"bbox_regression": codes, "cls_logits": logits}
        count = codes.shape[0] if isinstance(codes.shape[0], int) else 2
        return ssd.SSD.postprocess_detections(self, outputs, [self.anchors] * count, [(50, 60)] * count)


def sample(anchors=60, spread=3.0, shift=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, anchors, 5, generator=generator) * spread
    logits[..., 0] += shift
    return torch.randn(2, anchors, 4, generator=generator), logits


@pytest.mark.parametrize("anchors", [60, 12])
def test_matches(exporter, anchors):
    samples = [sample(anchors, shift=9.0, seed=1), sample(anchors, shift=40.0)]  # few detections, none
    result = assert_entry(NAME, Head(anchors).eval(), sample(anchors), exporter, samples=samples)
    assert result.nodes["TopK"] == 2  # one for each picture


def test_sentinel(exporter):
    @rewrite(TARGET, name=NAME, always=True, registry=None)
    def broken(self, head_outputs, image_anchors, image_shapes):
        scores = head_outputs["cls_logits"].softmax(-1)[..., 1]
        return [{"boxes": a, "scores": s, "labels": s.long()} for a, s in zip(image_anchors, scores, strict=True)]

    with pytest.raises(CompatError):
        assert_same_outputs(Head().eval(), sample(), exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Head().eval(), sample(), exporter)
