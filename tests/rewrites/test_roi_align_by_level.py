import pytest
import torch
from torch import nn
from torchvision.ops import MultiScaleRoIAlign, roi_align

from torch_onnx_compat import rewrite
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "roi_align_by_level"
TARGET = "torchvision.ops.poolers._multiscale_roi_align"
DYNAMIC = {"boxes": {0: "count"}}


class Pools(nn.Module):
    """Boxes of one picture, or of two, from a pyramid of three levels."""

    def __init__(self, levels=3, pictures=1):
        super().__init__()
        names = [str(level) for level in range(levels)]
        self.pool = MultiScaleRoIAlign(names, 3, 2, canonical_scale=32, canonical_level=3)
        self.pictures = pictures
        size = 64
        self.maps = {name: torch.randn(pictures, 2, size >> i + 2, size >> i + 2) for i, name in enumerate(names)}
        self.pool(self.maps, [torch.rand(1, 4)] * pictures, [(size, size)] * pictures)  # sets its scales for good

    def forward(self, boxes):
        boxes = boxes[boxes[:, 2] > boxes[:, 0]][:30]  # only the data says how many
        return self.pool(self.maps, [boxes] + [boxes * 0.9] * (self.pictures - 1), [(64, 64)] * self.pictures)


def boxes(count=9):
    corner = torch.rand(count, 2) * 30
    return torch.cat((corner, corner + torch.logspace(0.3, 1.8, count, 10.0)[:, None] * torch.rand(count, 2)), 1)


@pytest.mark.parametrize("pictures", [1, 2])
def test_matches(exporter, pictures):
    none = torch.zeros(0, 4)
    samples, verify = [(none,), (boxes(40),)], Verify(random=False)
    model = Pools(pictures=pictures).eval()
    result = assert_entry(NAME, model, boxes(), exporter, dynamic=DYNAMIC, samples=samples, verify=verify)
    assert result.nodes["RoiAlign"] == 3


def test_one_level_is_left_alone(exporter):
    result = assert_same_outputs(Pools(levels=1).eval(), boxes(), exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(TARGET, name=NAME, needed_on=("dynamo",), registry=None)
    def broken(x_filtered, boxes, output_size, sampling_ratio, scales, mapper):
        rois = torch.cat((torch.zeros_like(boxes[0][:, :1]), boxes[0]), dim=1)
        return roi_align(x_filtered[0], rois, output_size, scales[0], sampling_ratio)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Pools().eval(), boxes(), "dynamo", rewrites=[broken])


def test_still_needed():
    assert_still_needed(NAME, Pools().eval(), boxes(), "dynamo", dynamic=DYNAMIC, control_flow=False)
