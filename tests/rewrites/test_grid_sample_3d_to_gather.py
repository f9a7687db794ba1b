import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "grid_sample_3d_to_gather"
EXAMPLE = (torch.rand(2, 3, 4, 5, 6), torch.rand(2, 3, 4, 5, 3) * 4 - 2)
DYNAMIC = {
    "volume": {0: "batch", 2: "depth", 3: "height", 4: "width"},
    "grid": {0: "batch", 1: "planes", 2: "rows", 3: "columns"},
}


class Samples(nn.Module):
    def forward(self, volume, grid):
        return (
            F.grid_sample(volume, grid, align_corners=False),
            F.grid_sample(volume, grid, "nearest", "reflection", True),
            torch.grid_sampler_3d(volume, grid, 0, 1, True),
        )


@pytest.mark.parametrize("opset", [16, 19])
def test_matches(exporter, opset):
    result = assert_same_outputs(Samples(), EXAMPLE, exporter, dynamic=DYNAMIC, opset=opset, uses=(NAME,))
    assert "GridSample" not in result.nodes


def test_is_not_applied_from_opset_20(exporter):
    result = assert_same_outputs(Samples(), EXAMPLE, exporter, opset=20)
    assert result.nodes["GridSample"] == 3
    assert NAME not in {note.entry for note in result.applied}


def test_leaves_images_to_the_operator(exporter):
    def sample(image, grid):
        return F.grid_sample(image, grid, align_corners=False)

    result = assert_same_outputs(sample, (torch.rand(2, 3, 4, 5), torch.rand(2, 3, 4, 2)), exporter, opset=17)
    assert result.nodes["GridSample"] == 1
    assert [note.reason for note in result.declined] == ["wanted a volume (N, C, D, H, W), got 4 axes"]


def test_declines_images():
    with pytest.raises(Declined, match=r"wanted a volume \(N, C, D, H, W\), got 4 axes"):
        catalogue()[NAME].body(torch.rand(1, 1, 4, 4), torch.rand(1, 2, 2, 2), 0, 0, False)


def test_sentinel(exporter):
    @rewrite(torch.grid_sampler, name=NAME, needed_on=EXPORTERS, opset=(16, 19), registry=None)
    def broken(input, grid, interpolation_mode, padding_mode, align_corners):
        return catalogue()[NAME].body(input, grid.flip(-1), interpolation_mode, padding_mode, align_corners)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(F.grid_sample, EXAMPLE, exporter, opset=17, rewrites=[broken])


@pytest.mark.parametrize(
    ("exporter", "without", "reason"),
    [
        ("torchscript", [NAME], "GridSample with 5D volumetric input"),
        # What stock dynamo writes runs in onnxruntime, but the operator's specification does not cover it.
        ("dynamo", [NAME], "needs opset 20 or later"),
    ],
)
def test_still_needed(exporter, without, reason):
    with pytest.raises(CompatError, match=reason):
        assert_same_outputs(F.grid_sample, EXAMPLE, exporter, opset=17, exclude=without)
