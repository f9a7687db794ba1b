import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "affine_grid_to_sum"
THETA = torch.eye(2, 3) + torch.randn(3, 2, 3) / 5
THETA_3D = torch.eye(3, 4) + torch.randn(3, 3, 4) / 5
DYNAMIC = {"theta": {0: "n"}, "solid": {0: "n"}, "x": {0: "n", 2: "height", 3: "width"}}


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("height", "width"), [(5, 4), (1, 3), (2, 1)])
def test_equals_eager(height, width, align_corners):
    body = catalogue()[NAME].body
    for theta, size in ((THETA, (3, 1, height, width)), (THETA_3D, (3, 1, 4, height, width))):
        wanted = F.affine_grid(theta, size, align_corners=align_corners)
        torch.testing.assert_close(body(theta, size, align_corners), wanted)


class Grids(nn.Module):
    """Sizes in numbers and of another tensor."""

    def forward(self, theta, solid, x):
        n, _, height, width = x.shape
        results = []
        for corners in (False, True):
            results += [
                F.affine_grid(theta, (n, 1, 6, 5), align_corners=corners),
                F.affine_grid(solid, (n, 1, 2, 3, 4), align_corners=corners),
                F.affine_grid(theta, x.shape, align_corners=corners),
                F.affine_grid(solid, (n, 1, 2, height, width), align_corners=corners),
            ]
        return tuple(results)


def test_matches():
    args = (THETA, THETA_3D, torch.randn(3, 2, 4, 7))
    assert_same_outputs(Grids(), args, "torchscript", opset=17, dynamic=DYNAMIC, uses=(NAME,))


def test_matches_with_dynamo():
    def call(theta, x):
        return F.affine_grid(theta, x.shape, align_corners=False)

    assert_same_outputs(call, (THETA, torch.randn(3, 2, 4, 7)), "dynamo", dynamic="batch")


def test_takes_nine_nodes():
    result = assert_same_outputs(
        lambda theta: F.affine_grid(theta, (3, 1, 6, 5), align_corners=False),
        (THETA,),
        "torchscript",
        opset=17,
        uses=(NAME,),
    )
    assert result.nodes.total() - result.nodes["Constant"] <= 9


def test_grid_sample_alone_is_left_alone():
    args = (torch.randn(1, 2, 4, 5), torch.rand(1, 3, 3, 2))
    result = assert_same_outputs(lambda x, g: F.grid_sample(x, g, align_corners=True), args, "torchscript", opset=17)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(F.affine_grid, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(theta, size, align_corners=None):
        return catalogue()[NAME].body(theta, size, not align_corners)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda theta: F.affine_grid(theta, (3, 1, 6, 5), align_corners=False),
            (THETA,),
            "torchscript",
            opset=17,
            rewrites=[broken],
        )


def test_still_needed():
    args = (THETA, torch.randn(3, 2, 4, 7))
    with pytest.raises(CompatError):
        assert_same_outputs(
            lambda theta, x: F.affine_grid(theta, x.shape, align_corners=False),
            args,
            "torchscript",
            opset=17,
            dynamic="batch",
            exclude=[NAME],
        )
