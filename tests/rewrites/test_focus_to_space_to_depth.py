import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.targets import Target
from torch_onnx_compat.testing import assert_same_outputs

NAME = "focus_to_space_to_depth"
DYNAMIC = {"image": {0: "batch", 2: "height", 3: "width"}}


class Focus(nn.Module):
    """Integer weights and cells, so that a sum is the same in any order."""

    def __init__(self, groups=4, dilation=1, order=((0, 0), (1, 0), (0, 1), (1, 1))):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(12, 8, 3, padding=dilation, dilation=dilation, groups=groups), nn.ReLU())
        for parameter in self.conv[0].parameters():
            nn.init.uniform_(parameter, -9, 9).data.round_()
        self.order = order

    def forward(self, image):
        return self.conv(torch.cat([image[..., row::2, column::2] for row, column in self.order], 1))


def image():
    return torch.randint(-9, 9, (2, 3, 8, 12)).float()


def body(module):
    return catalogue()[NAME].body(module)


@pytest.mark.parametrize("options", [{"groups": 4}, {"groups": 1, "dilation": 2}], ids=["groups", "dilation"])
def test_matches(exporter, options):
    result = assert_same_outputs(Focus(**options).eval(), (image(),), exporter, dynamic=DYNAMIC, uses=(NAME, "focus"))
    assert result.nodes["SpaceToDepth"] == 1
    assert "Slice" not in result.nodes


def test_keeps_the_block():
    focus = Focus().eval()
    assert body(focus).conv is focus.conv


def test_leaves_other_targets_their_slices():
    result = assert_same_outputs(Focus().eval(), (image(),), "torchscript", target=Target("any"))
    assert "SpaceToDepth" not in result.nodes


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"order": ((0, 0), (0, 1), (1, 0), (1, 1))}, "its slices must come in YOLOv5's order"),
        ({"order": ((0, 0), (0, 0), (0, 1), (1, 1))}, "is not the four cells of every 2 x 2 patch"),
    ],
    ids=["row by row", "a cell twice"],
)
def test_declines_near_misses(options, reason):
    with pytest.raises(Declined, match=reason):
        body(Focus(**options).eval())


def test_leaves_fusable_ones_to_focus_to_conv():
    assert body(Focus(groups=1).eval()) is NotImplemented


def test_declines_other_blocks():
    focus = Focus()
    focus.conv = nn.Identity()
    with pytest.raises(Declined, match=r"it must hold a block conv that begins with an nn\.Conv2d"):
        body(focus)


def test_sentinel(exporter):
    @rewrite("module:*.Focus", name=NAME, always=True, registry=None)
    def broken(focus):
        return nn.Sequential(nn.PixelUnshuffle(2), focus.conv)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Focus().eval(), (image(),), exporter, rewrites=[broken])


def test_still_needed(exporter):
    stock = assert_same_outputs(Focus().eval(), (image(),), exporter, exclude=[NAME])
    assert stock.nodes["Slice"] >= 4
