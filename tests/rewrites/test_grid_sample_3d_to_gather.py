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
DYNAMIC = {
    "volume": {0: "batch", 2: "depth", 3: "height", 4: "width"},
    "grid": {0: "batch", 1: "planes", 2: "rows", 3: "columns"},
}


def example():
    return torch.rand(2, 3, 4, 5, 6) + 0.5, torch.rand(2, 3, 4, 5, 3) * 2.6 - 1.3


def sample(image, grid):
    return F.grid_sample(image, grid, align_corners=False)


class Samples(nn.Module):
    def forward(self, volume, grid):
        return (
            sample(volume, grid),
            torch.grid_sampler_3d(volume, grid, 1, 2, True),
        )


def test_matches(exporter):
    result = assert_same_outputs(Samples(), example(), exporter, dynamic=DYNAMIC, opset=16, uses=(NAME,))
    assert "GridSample" not in result.nodes


def test_matches_at_its_last_opset(exporter):
    assert_same_outputs(sample, example(), exporter, opset=19, uses=(NAME,))


def test_is_not_applied_from_opset_20(exporter):
    result = assert_same_outputs(Samples(), example(), exporter, opset=20)
    assert result.nodes["GridSample"] == 2
    assert NAME not in {note.entry for note in result.applied}


def test_leaves_images_to_the_operator(exporter):
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
        assert_same_outputs(sample, example(), exporter, opset=17, rewrites=[broken])


# What dynamo writes without grid_sampler_16 is in tests/symbolics/test_grid_sampler_16.py.
@pytest.mark.parametrize(
    ("exporter", "reason"),
    [("torchscript", "GridSample with 5D volumetric input"), ("dynamo", "needs opset 20 or later")],
)
def test_still_needed(exporter, reason):
    with pytest.raises(CompatError, match=reason):
        assert_same_outputs(sample, example(), exporter, opset=17, exclude=[NAME])
