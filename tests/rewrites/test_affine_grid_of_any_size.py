import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.functional.affine_grid import affine_grid
from torch_onnx_compat.testing import assert_same_outputs

NAME = "affine_grid_of_any_size"
THETA = torch.eye(2, 3) + torch.randn(3, 2, 3) / 5
THETA_3D = torch.eye(3, 4) + torch.randn(3, 3, 4) / 5
DYNAMIC = {"theta": {0: "n"}, "solid": {0: "n"}, "x": {0: "n", 2: "height", 3: "width"}}


def grids(theta, solid, x):
    n, _, height, width = x.shape
    return (
        F.affine_grid(theta, (n, 1, 1, 5), align_corners=True),
        F.affine_grid(theta, x.shape, align_corners=True),
        F.affine_grid(solid, (n, 1, 2, height, width), align_corners=True),
        F.affine_grid(theta, x.shape, align_corners=False),
    )


def grid(theta):
    return F.affine_grid(theta, (3, 1, 1, 5), align_corners=True)


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_matches(exporter):
    args = (THETA, THETA_3D, torch.randn(3, 2, 4, 7))
    assert_same_outputs(grids, args, exporter, opset=20, dynamic=DYNAMIC, uses=(NAME,))


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_writes_no_affine_grid():
    result = assert_same_outputs(grid, (THETA,), "torchscript", opset=20, uses=(NAME,))
    assert "AffineGrid" not in result.nodes


def test_near_misses_are_left_alone():
    def call(theta, x):
        fixed = F.affine_grid(theta, (3, 1, 4, 5), align_corners=True)
        return fixed, F.affine_grid(theta, x.shape, align_corners=False)

    result = assert_same_outputs(call, (THETA, torch.randn(3, 2, 1, 7)), "torchscript", opset=20)
    assert result.nodes["AffineGrid"] == 2
    assert not result.applied


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_sentinel():
    @rewrite(F.affine_grid, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(theta, size, align_corners=None):
        return affine_grid(theta, size, False)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(grid, (THETA,), "torchscript", opset=20, rewrites=[broken])


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_still_needed():
    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(grid, (THETA,), "torchscript", opset=20, exclude=[NAME])
