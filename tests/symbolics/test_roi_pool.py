import pytest
import torch
from torchvision import ops

from torch_onnx_compat import symbolic
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "roi_pool"
REGIONS = torch.tensor(
    [[0, 1.0, 1, 6, 7], [1, -2, -3, 5, 4], [1, 3, 3, 3, 3], [0, 8, 8, 30, 40], [1, 2.5, 1.5, 4.5, 9]]
)
EXAMPLE = (torch.randn(2, 3, 12, 10), REGIONS)
DYNAMIC = {"x": {0: "images"}, "regions": {0: "regions"}}


def many(x, regions):
    return ops.roi_pool(x, regions, (3, 2), 0.5), ops.roi_pool(x, regions, 2, 1.0), ops.RoIPool(1, 1.5)(x, regions)


def test_matches(exporter):
    uses = (NAME,) if exporter == "dynamo" else ()
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=[(EXAMPLE[0], REGIONS[:1])], uses=uses)


def test_applied():
    result = assert_same_outputs(lambda x, r: ops.roi_pool(x, r, 2, 1.0), EXAMPLE, "dynamo", uses=(NAME,))
    assert set(result.nodes) - {"Constant"} == {"MaxRoiPool"}


def test_roi_align_is_left_alone():
    result = assert_same_outputs(lambda x, r: ops.roi_align(x, r, 2, 1.0, 2), EXAMPLE, "dynamo")
    assert NAME not in {note.entry for note in result.applied}


def test_places_of_the_maxima_are_not_given():
    def model(x, regions):
        return torch.ops.torchvision.roi_pool(x, regions, 1.0, 2, 2)[1]

    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(model, EXAMPLE, "dynamo")


def test_sentinel():
    @symbolic("torchvision::roi_pool", name=NAME, needed_on=("dynamo",), registry=None)
    def broken(op, input, rois, spatial_scale: float, pooled_height: int, pooled_width: int):
        pooled = op.MaxRoiPool(input, rois, pooled_shape=[pooled_height, pooled_width], spatial_scale=1.0)
        return pooled, op.Shape(pooled)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, r: ops.roi_pool(x, r, 2, 0.5), EXAMPLE, "dynamo", symbolics=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="roi_pool"):
        assert_same_outputs(many, EXAMPLE, "dynamo", exclude=[NAME])
