import pytest
import torch
from torch import nn
from torchvision.ops import MultiScaleRoIAlign, poolers

from torch_onnx_compat import rewrite
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "roi_scales_of_example"
DYNAMIC = {"image": {2: "height", 3: "width"}}
BOXES = torch.tensor([[1.0, 2, 9, 8], [0, 0, 40, 30], [5, 5, 20, 40]])
IMAGE = torch.randn(1, 2, 48, 64)


class NeverRan(nn.Module):
    """Pools from maps of a quarter and an eighth of the picture, of which the pooler has seen none yet."""

    def __init__(self):
        super().__init__()
        self.pool = MultiScaleRoIAlign(["0", "1"], 3, 2, canonical_scale=32, canonical_level=3)

    def forward(self, image):
        maps = {"0": nn.functional.avg_pool2d(image, 4), "1": nn.functional.avg_pool2d(image, 8)}
        return self.pool(maps, [BOXES], [image.shape[-2:]])


def test_matches(exporter):
    verify = Verify(sizes={"height": (64,), "width": (80,)})
    assert_entry(NAME, NeverRan().eval(), IMAGE, exporter, dynamic=DYNAMIC, verify=verify)


def test_a_model_that_ran_keeps_its_scales(exporter):
    model = NeverRan().eval()
    model(IMAGE)
    result = assert_same_outputs(model, IMAGE, exporter, dynamic=DYNAMIC)
    assert NAME not in {note.entry for note in result.applied}


def test_the_model_is_left_as_new(exporter):
    model = NeverRan().eval()
    assert_same_outputs(model, IMAGE, exporter)
    assert model.pool.scales is None


def test_sentinel(exporter):
    @rewrite("torchvision.ops.poolers._setup_scales", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(features, image_shapes, canonical_scale, canonical_level):
        return [0.5, 0.25], poolers.initLevelMapper(1, 2, canonical_scale, canonical_level)

    with pytest.raises(CompatError):
        assert_same_outputs(NeverRan().eval(), IMAGE, exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, NeverRan().eval(), IMAGE, exporter, dynamic=DYNAMIC, control_flow=False)
