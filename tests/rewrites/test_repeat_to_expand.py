import pytest
import torch

from torch_onnx_compat.targets import Target
from torch_onnx_compat.targets.target import Row
from torch_onnx_compat.testing import assert_same_outputs

WITHOUT_TILE = Target("without_tile", rows=(Row("Tile", "refused"),))
X = torch.rand(2, 3, 1, 4)


def grids(x):
    """A grid for each item of the batch, as optical flow makes it; one that is written to; new axes in front."""
    grid = torch.arange(5.0)[None, None].repeat(x.shape[0], 3, 1)
    written = x[:1, :1].repeat(x.shape[0], 1, 1, 1)
    written[..., 0] = 1.0
    return grid, written, x.repeat(1, 1, 6, 1), x[0, 0].repeat(2, x.shape[1], 3, 1), x[:0, :1].repeat((1, 2, 1, 1))


def test_matches(exporter):
    result = assert_same_outputs(
        grids, X, exporter, target=WITHOUT_TILE, dynamic={"x": {0: "batch"}}, uses=("repeat_to_expand",)
    )
    assert "Tile" not in result.nodes


def test_openvino_is_given_no_tile_that_is_computed(exporter):
    assert_same_outputs(grids, X, exporter, target="openvino", dynamic={"x": {0: "batch"}}, uses=("repeat_to_expand",))


@pytest.mark.parametrize("times", [(1, 2, 1, 1), (2, 1, 1, 1)])
def test_several_cells_are_declined(exporter, times):
    """They come out right with Tile, where the target has it."""
    result = assert_same_outputs(lambda x: x.repeat(times), X, exporter, dynamic={"x": {0: "batch"}})
    assert "repeat_to_expand" not in {note.entry for note in result.applied}
    assert "Tile" in result.nodes
