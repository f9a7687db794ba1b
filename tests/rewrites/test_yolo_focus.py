"""YOLO's Focus, in rows; any kernel, stride, padding and order; weights that stay; what is declined."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.targets import Target
from torch_onnx_compat.testing import Example, assert_same_outputs

DYNAMIC = {"image": {0: "batch", 2: "height", 3: "width"}}
YOLO = ((0, 0), (1, 0), (0, 1), (1, 1))
ROW_BY_ROW = ((0, 0), (0, 1), (1, 0), (1, 1))
A_CELL_TWICE = ((0, 0), (0, 0), (0, 1), (1, 1))


class Block(nn.Module):
    """As YOLOv5's Conv and YOLOX's BaseConv."""

    def __init__(self, channels, kernel, stride=1, **options):
        super().__init__()
        self.conv = nn.Conv2d(4 * channels, 8, kernel, stride, **{"padding": kernel // 2, **options})
        self.bn = nn.BatchNorm2d(8)
        nn.init.uniform_(self.bn.running_mean)
        self.act = nn.SiLU()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))

    def without_norm(self, x):
        return self.act(self.conv(x))


class Padded(Block):
    def forward(self, x):
        return super().forward(nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"))


class Focus(nn.Module):
    def __init__(self, conv, order=YOLO):
        super().__init__()
        self.conv = conv
        self.order = order

    def forward(self, image):
        return self.conv(torch.cat([image[..., row::2, column::2] for row, column in self.order], 1))


class TwoInputs(Focus):
    def forward(self, image, other):
        return super().forward(image + other)


class Stems(nn.Module):
    """Several kernels, strides and orders in one export."""

    def __init__(self):
        super().__init__()
        without_norm = Block(3, 3, bias=True)
        without_norm.forward = without_norm.without_norm  # what YOLOv5's fuse() leaves behind
        self.stems = nn.ModuleList(
            [
                Focus(Block(3, 3, bias=False)),
                Focus(Block(3, 3), ROW_BY_ROW),
                Focus(Block(3, 1, 2)),
                Focus(Block(3, 5, padding=(2, 1))),
                Focus(without_norm),
                Focus(nn.Conv2d(12, 4, 2)),
            ]
        )

    def forward(self, image):
        return tuple(stem(image) for stem in self.stems)


def integers(groups=4, dilation=1, order=YOLO):
    """A Focus with integer weights, so that a sum of integer cells is the same in any order."""
    conv = nn.Sequential(nn.Conv2d(12, 8, 3, padding=dilation, dilation=dilation, groups=groups), nn.ReLU())
    for parameter in conv[0].parameters():
        nn.init.uniform_(parameter, -9, 9).data.round_()
    return Focus(conv, order).eval()


def body(name, module):
    return catalogue()[name].body(module)


def transpose_kernel(focus):
    fused = body("focus_to_conv", focus)
    conv = fused if isinstance(fused, nn.Conv2d) else fused.conv
    conv.weight.data = conv.weight.transpose(-1, -2).contiguous()
    return fused


IMAGE = torch.randn(2, 3, 8, 12)
CELLS = torch.randint(-9, 9, (2, 3, 8, 12)).float()
EXAMPLES = [
    Example("focus_to_conv", Focus(Block(3, 3)).eval(), (IMAGE,), dynamic=DYNAMIC, broken=transpose_kernel),
    *(
        Example(
            "focus_to_space_to_depth",
            integers(**options),
            (CELLS,),
            dynamic=DYNAMIC,
            broken=lambda focus: nn.Sequential(nn.PixelUnshuffle(2), focus.conv),
            leaves=integers(groups=1),
        )
        for options in ({"groups": 4}, {"groups": 1, "dilation": 2})
    ),
]


# As a convolution


def test_many_stems_become_convolutions(exporter):
    result = assert_same_outputs(Stems().eval(), (IMAGE,), exporter, dynamic=DYNAMIC, uses=("focus_to_conv",))
    assert [len(note.places) for note in result.applied if note.entry == "focus_to_conv"] == [6]
    assert not {"Slice", "Concat", "SpaceToDepth"} & set(result.nodes)


@given(
    channels=st.integers(1, 4),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 3),
    padding=st.integers(0, 3),
    order=st.permutations(YOLO),
)
@settings(max_examples=40, deadline=None)
def test_convolution_equals_eager(channels, kernel, stride, padding, order):
    focus = Focus(Block(channels, kernel, stride, padding=padding), order).eval()
    image = torch.randn(2, channels, 12, 14)
    torch.testing.assert_close(body("focus_to_conv", focus)(image), focus(image), rtol=1e-5, atol=1e-5)


def test_convolution_keeps_what_it_need_not_change():
    focus = Focus(Block(3, 3)).eval()
    before = {name: tensor.clone() for name, tensor in focus.state_dict().items()}
    fused = body("focus_to_conv", focus)
    assert fused.bn is focus.conv.bn
    assert fused.act is focus.conv.act
    assert fused.conv.bias is focus.conv.conv.bias
    assert fused.conv.weight.shape == (8, 3, 6, 6)
    assert focus.conv.conv.weight.shape == (8, 12, 3, 3)
    assert all(torch.equal(tensor, before[name]) for name, tensor in focus.state_dict().items())


@pytest.mark.parametrize(
    ("focus", "reason"),
    [
        (Focus(nn.Identity()), r"its conv must be, or hold as conv, an nn\.Conv2d, got NoneType"),
        (Focus(Block(3, 3, groups=2)), r"must have one group and no dilation, got 2 and \(1, 1\)"),
        (Focus(Block(3, 3, dilation=2)), r"must have one group and no dilation, got 1 and \(2, 2\)"),
        (Focus(Block(3, 3, padding="same")), "its padding must be a number of zeros, got 'same' of mode 'zeros'"),
        (Focus(Block(3, 3, padding_mode="reflect")), "must be a number of zeros, got .* of mode 'reflect'"),
        (Focus(Block(3, 3), order=A_CELL_TWICE), "is not the four cells of every 2 x 2 patch"),
        (Focus(Block(3, 3), order=((0, 0),)), "is not the four cells of every 2 x 2 patch"),
        (Focus(Padded(3, 3)), "its conv block does more than convolve what it is handed"),
        (TwoInputs(Block(3, 3)), r"slicing a probe \(1, 3, 4, 6\) failed with TypeError: .*missing 1 required"),
    ],
    ids=["no conv", "groups", "dilation", "same", "reflect", "a cell twice", "a quarter", "block", "two inputs"],
)
def test_convolution_declines_near_misses(focus, reason):
    with pytest.raises(Declined, match=reason):
        body("focus_to_conv", focus.eval())


def test_convolution_declines_hooks_and_training():
    focus = Focus(Block(3, 3))
    with pytest.raises(Declined, match="it is in training mode"):
        body("focus_to_conv", focus)
    focus.conv.conv.register_forward_hook(lambda *_: None)
    with pytest.raises(Declined, match="its convolution has hooks"):
        body("focus_to_conv", focus.eval())


@pytest.mark.parametrize("focus", [Focus(Block(3, 3)).eval(), integers()], ids=["to convolution", "to SpaceToDepth"])
def test_stock_slices(focus, exporter):
    entries = ["focus_to_conv", "focus_to_space_to_depth"]
    stock = assert_same_outputs(focus, (CELLS,), exporter, exclude=entries)
    assert stock.nodes["Slice"] >= 4


# As SpaceToDepth


def test_space_to_depth_takes_one_node_for_the_slices(exporter):
    result = assert_same_outputs(
        integers(), (CELLS,), exporter, dynamic=DYNAMIC, uses=("focus_to_space_to_depth", "focus")
    )
    assert result.nodes["SpaceToDepth"] == 1
    assert "Slice" not in result.nodes


def test_space_to_depth_keeps_the_block():
    focus = integers()
    assert body("focus_to_space_to_depth", focus).conv is focus.conv


def test_space_to_depth_is_for_onnxruntime():
    result = assert_same_outputs(integers(), (CELLS,), "torchscript", target=Target("any"))
    assert "SpaceToDepth" not in result.nodes


def test_space_to_depth_leaves_what_becomes_a_convolution():
    assert body("focus_to_space_to_depth", integers(groups=1)) is NotImplemented


@pytest.mark.parametrize(
    ("focus", "reason"),
    [
        (integers(order=ROW_BY_ROW), "its slices must come in YOLOv5's order"),
        (integers(order=A_CELL_TWICE), "is not the four cells of every 2 x 2 patch"),
        (Focus(nn.Identity()), r"it must hold a block conv that begins with an nn\.Conv2d"),
    ],
    ids=["row by row", "a cell twice", "no convolution"],
)
def test_space_to_depth_declines_near_misses(focus, reason):
    with pytest.raises(Declined, match=reason):
        body("focus_to_space_to_depth", focus)
