import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "grid_sampler_nd_to_grid_sampler"


def image():
    return torch.rand(2, 3, 4, 5) + 0.5, torch.rand(2, 3, 4, 2) * 2.6 - 1.3


def volume():
    return torch.rand(2, 3, 4, 5, 6) + 0.5, torch.rand(2, 3, 4, 5, 3) * 2.6 - 1.3


class Samples(nn.Module):
    def forward(self, image, grid, volume, volume_grid):
        return (
            *(torch.grid_sampler_2d(image, grid, mode, 1, True) for mode in (0, 1, 2)),
            *(torch.grid_sampler_3d(volume, volume_grid, mode, 2, False) for mode in (0, 1)),
        )


def test_matches(exporter):
    result = assert_same_outputs(Samples(), (*image(), *volume()), exporter, opset=20)
    assert NAME in {note.entry for note in result.applied}
    assert result.nodes["GridSample"] == 5


def test_passes_on_exactly(exporter):
    sample = torch.grid_sampler_2d
    assert_same_outputs(lambda image, grid: sample(image, grid, 1, 0, True), image(), exporter, uses=(NAME,))


def test_sentinel(exporter):
    @rewrite((torch.grid_sampler_2d, torch.grid_sampler_3d), name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, grid, interpolation_mode, padding_mode, align_corners):
        return torch.grid_sampler(input, grid, interpolation_mode, padding_mode, not align_corners)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Samples(), (*image(), *volume()), exporter, opset=20, rewrites=[broken])


def stock_fails(function, args, exporter):
    with pytest.raises(CompatError, match=function.__name__):
        assert_same_outputs(lambda x, grid: function(x, grid, 0, 0, False), args, exporter, opset=20, exclude=[NAME])


def test_still_needed_for_images_in_torchscript():
    stock_fails(torch.grid_sampler_2d, image(), "torchscript")


def test_still_needed_for_volumes(exporter):
    stock_fails(torch.grid_sampler_3d, volume(), exporter)
