import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "focus_to_conv"
DYNAMIC = {"image": {0: "batch", 2: "height", 3: "width"}}
YOLO = ((0, 0), (1, 0), (0, 1), (1, 1))
ROW_BY_ROW = ((0, 0), (0, 1), (1, 0), (1, 1))


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


class Focus(nn.Module):
    def __init__(self, conv, order=YOLO):
        super().__init__()
        self.conv = conv
        self.order = order

    def forward(self, image):
        return self.conv(torch.cat([image[..., row::2, column::2] for row, column in self.order], 1))


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


def body(module):
    return catalogue()[NAME].body(module)


def test_matches(exporter):
    result = assert_same_outputs(Stems().eval(), (torch.randn(2, 3, 8, 12),), exporter, dynamic=DYNAMIC, uses=(NAME,))
    assert [len(note.places) for note in result.applied if note.entry == NAME] == [6]
    assert not {"Slice", "Concat", "SpaceToDepth"} & set(result.nodes)


@given(
    channels=st.integers(1, 4),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 3),
    padding=st.integers(0, 3),
    order=st.permutations(YOLO),
)
@settings(max_examples=40, deadline=None)
def test_equals_eager(channels, kernel, stride, padding, order):
    focus = Focus(Block(channels, kernel, stride, padding=padding), order).eval()
    image = torch.randn(2, channels, 12, 14)
    torch.testing.assert_close(body(focus)(image), focus(image), rtol=1e-5, atol=1e-5)


def test_keeps_what_it_need_not_change():
    focus = Focus(Block(3, 3)).eval()
    before = {name: tensor.clone() for name, tensor in focus.state_dict().items()}
    fused = body(focus)
    assert fused.bn is focus.conv.bn
    assert fused.act is focus.conv.act
    assert fused.conv.bias is focus.conv.conv.bias
    assert fused.conv.weight.shape == (8, 3, 6, 6)
    assert focus.conv.conv.weight.shape == (8, 12, 3, 3)
    assert all(torch.equal(tensor, before[name]) for name, tensor in focus.state_dict().items())


class Padded(Block):
    def forward(self, x):
        return super().forward(nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"))


class TwoInputs(Focus):
    def forward(self, image, other):
        return super().forward(image + other)


@pytest.mark.parametrize(
    ("focus", "reason"),
    [
        (Focus(nn.Identity()), r"its conv must be, or hold as conv, an nn\.Conv2d, got NoneType"),
        (Focus(Block(3, 3, groups=2)), r"must have one group and no dilation, got 2 and \(1, 1\)"),
        (Focus(Block(3, 3, dilation=2)), r"must have one group and no dilation, got 1 and \(2, 2\)"),
        (Focus(Block(3, 3, padding="same")), "its padding must be a number of zeros, got 'same' of mode 'zeros'"),
        (Focus(Block(3, 3, padding_mode="reflect")), "must be a number of zeros, got .* of mode 'reflect'"),
        (Focus(Block(3, 3), order=((0, 0), (0, 0), (0, 1), (1, 1))), "is not the four cells of every 2 x 2 patch"),
        (Focus(Block(3, 3), order=((0, 0),)), "is not the four cells of every 2 x 2 patch"),
        (Focus(Padded(3, 3)), "its conv block does more than convolve what it is handed"),
        (TwoInputs(Block(3, 3)), r"slicing a probe \(1, 3, 4, 6\) failed with TypeError: .*missing 1 required"),
    ],
    ids=["no conv", "groups", "dilation", "same", "reflect", "a cell twice", "a quarter", "block", "two inputs"],
)
def test_declines_near_misses(focus, reason):
    with pytest.raises(Declined, match=reason):
        body(focus.eval())


def test_declines_hooks_and_training():
    focus = Focus(Block(3, 3))
    with pytest.raises(Declined, match="it is in training mode"):
        body(focus)
    focus.conv.conv.register_forward_hook(lambda *_: None)
    with pytest.raises(Declined, match="its convolution has hooks"):
        body(focus.eval())


def test_sentinel(exporter):
    @rewrite("module:*.Focus", name=NAME, always=True, registry=None)
    def broken(focus):
        fused = body(focus)
        fused.conv.weight.data = fused.conv.weight.transpose(-1, -2).contiguous()
        return fused

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Focus(Block(3, 3)).eval(), (torch.randn(2, 3, 8, 8),), exporter, rewrites=[broken])


def test_still_needed(exporter):
    focus = Focus(Block(3, 3)).eval()
    stock = assert_same_outputs(focus, (torch.randn(2, 3, 8, 8),), exporter, exclude=[NAME, "focus_to_space_to_depth"])
    assert stock.nodes["Slice"] >= 4
