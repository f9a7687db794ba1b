"""Blocks that merge, in rows; the caller's model; what is declined and what is left alone."""

import copy

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import Example, assert_same_outputs

NAME = "reparameterized_blocks"
IMAGE = torch.randn(2, 4, 9, 12)
HEIGHT = {"x": {0: "batch", 2: "height"}}
SIZES = {"x": {0: "batch", 2: "height", 3: "width"}}


def norm(channels):
    made = nn.BatchNorm2d(channels)
    for tensor in (made.weight, made.bias, made.running_mean):
        nn.init.uniform_(tensor, -1, 1)
    nn.init.uniform_(made.running_var, 0.5, 2)
    return made


class ConvNorm(nn.Sequential):
    """As LeViT's and RepViT's: returns the new layer."""

    def __init__(self, channels, kernel):
        super().__init__(nn.Conv2d(channels, channels, kernel, padding=kernel // 2, bias=False), norm(channels))

    def fuse(self):
        conv, bn = self
        scale = bn.weight / (bn.running_var + bn.eps).sqrt()
        fused = nn.Conv2d(conv.in_channels, conv.out_channels, conv.kernel_size, padding=conv.padding)
        fused.weight.data.copy_(conv.weight * scale[:, None, None, None])
        fused.bias.data.copy_(bn.bias - bn.running_mean * scale)
        return fused


class Rep(nn.Module):
    """As RepVGG's: two convolutions and, where they fit, the input itself; changes itself."""

    shift = 0.0

    def __init__(self, channels=4):
        super().__init__()
        self.wide, self.narrow, self.skip = ConvNorm(channels, 3), ConvNorm(channels, 1), norm(channels)
        self.act = nn.ReLU()

    def forward(self, x):
        if hasattr(self, "conv"):
            return self.act(self.conv(x))
        return self.act(self.wide(x) + self.narrow(x) + self.skip(x))

    def switch_to_deploy(self):
        if hasattr(self, "conv"):
            return
        conv, narrow = self.wide.fuse(), self.narrow.fuse()
        scale = self.skip.weight / (self.skip.running_var + self.skip.eps).sqrt()
        conv.weight.data[:, :, 1:2, 1:2] += narrow.weight + torch.diag(scale)[:, :, None, None]
        conv.bias.data += narrow.bias + self.skip.bias - self.skip.running_mean * scale + self.shift
        self.conv = conv
        del self.wide, self.narrow, self.skip


class ForwardFuse(Rep):
    """As ultralytics' RepConv: another method runs afterwards."""

    switch_to_deploy = None

    def forward(self, x):
        return self.act(self.wide(x) + self.narrow(x) + self.skip(x))

    def forward_fuse(self, x):
        return self.act(self.conv(x))

    def fuse_convs(self):
        Rep.switch_to_deploy(self)


class LinearNorm(nn.Module):
    """As LeViT's: rows (N, L, C)."""

    def __init__(self):
        super().__init__()
        self.linear, self.bn = nn.Linear(12, 12, bias=False), nn.BatchNorm1d(12)
        nn.init.uniform_(self.bn.running_mean, -1, 1)

    def forward(self, x):
        x = self.linear(x)
        return self.bn(x.flatten(0, 1)).reshape_as(x)

    def fuse(self):
        scale = self.bn.weight / (self.bn.running_var + self.bn.eps).sqrt()
        fused = nn.Linear(12, 12)
        fused.weight.data.copy_(self.linear.weight * scale[:, None])
        fused.bias.data.copy_(self.bn.bias - self.bn.running_mean * scale)
        return fused


class InPlace(ConvNorm):
    """Writes into the very weights that the caller's model has."""

    def __init__(self):
        super().__init__(4, 1)
        self.append(nn.ReLU())

    def fuse(self):
        conv, bn, act = self
        scale = bn.weight / (bn.running_var + bn.eps).sqrt()
        conv.weight.data *= scale[:, None, None, None]
        conv.bias = nn.Parameter(bn.bias - bn.running_mean * scale)
        return nn.Sequential(conv, act)


class Wrong(Rep):
    shift = 1e-2


class Raises(Rep):
    def switch_to_deploy(self):
        raise RuntimeError("no group is known")


class Whole(nn.Module):
    """Wants arguments, as ultralytics' models do."""

    def fuse(self, verbose=True):
        raise AssertionError


class TwoInputs(Rep):
    def forward(self, x, y):
        return super().forward(x) + y


class Quiet(Rep):
    """As TinyViT's attention: its train returns nothing."""

    def train(self, mode=True):
        super().train(mode)


class QuietRoot(nn.Sequential):
    def train(self, mode=True):
        super().train(mode)


class Plain(nn.Module):
    """A convolution and its norm, which the exporters merge themselves."""

    def __init__(self):
        super().__init__()
        self.block = ConvNorm(4, 3)

    def forward(self, x):
        return self.block(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential(Rep(), ForwardFuse(), InPlace())
        self.rows = LinearNorm()

    def forward(self, x):
        return self.rows(self.stages(x)[:, 0, :, :12])


def drop_skip(block):
    """Merges the convolutions and forgets the input itself."""
    if type(block) is not Rep:
        return NotImplemented
    merged = copy.deepcopy(block)
    nn.init.zeros_(merged.skip.weight)
    merged.switch_to_deploy()
    return merged


EXAMPLES = [
    Example(NAME, Rep().eval(), (IMAGE,), dynamic=SIZES, broken=drop_skip, leaves=Plain().eval()),
    Example(NAME, Net().eval(), (IMAGE,), dynamic=HEIGHT, broken=drop_skip),
]


def body(block):
    return catalogue()[NAME].body(block.eval())


def test_every_kind_is_merged(exporter):
    result = assert_same_outputs(Net().eval(), (IMAGE,), exporter, dynamic=HEIGHT, uses=(NAME,))
    (note,) = (note for note in result.applied if note.entry == NAME)
    assert note.places == ("stages.0", "stages.1", "stages.2", "rows")
    assert result.nodes["Conv"] == 3
    assert "BatchNormalization" not in result.nodes


def test_the_callers_model_is_unchanged(exporter):
    model = Net().eval()
    state = copy.deepcopy(model.state_dict())
    wanted, kinds = model(IMAGE), [type(part) for part in model.modules()]
    assert_same_outputs(model, (IMAGE,), exporter, uses=(NAME,))
    assert [type(part) for part in model.modules()] == kinds
    assert all(torch.equal(model.state_dict()[name], value) for name, value in state.items())
    assert torch.equal(model(IMAGE), wanted)


def test_a_merged_block_that_differs_is_declined(exporter):
    result = assert_same_outputs(Wrong().eval(), (IMAGE,), exporter, dynamic=SIZES)
    (note,) = (note for note in result.declined if note.entry == NAME)
    assert "switch_to_deploy() changes its result by" in note.reason


def test_verification_finds_what_the_probe_lets_pass(exporter, monkeypatch):
    monkeypatch.setattr("torch_onnx_compat.rewrites.mergeable_blocks._TOLERANCE", 1.0)
    with pytest.raises(VerificationError):
        assert_same_outputs(Wrong().eval(), (IMAGE,), exporter, uses=(NAME,))


def test_an_output_inside_a_block_keeps_the_block(exporter):
    model = nn.Sequential(Rep(), Rep()).eval()
    result = export_compat(model, (IMAGE,), exporter=exporter, outputs=["0.narrow", "output"])
    assert [(n.verdict, n.places) for n in result.applied if n.entry == NAME] == [("applied", ("1",))]
    (note,) = (note for note in result.declined if note.entry == NAME)
    assert note.reason == "'narrow' in it is asked for, which the replacement does not have"


def test_a_train_that_returns_nothing(tmp_path):
    model = QuietRoot(Quiet(), QuietRoot(Quiet()))
    model.eval()
    result = export_compat(model, IMAGE, tmp_path / "m.onnx")
    assert [note.places for note in result.applied if note.entry == NAME] == [("0", "1.0")]


def with_hook():
    block = Rep()
    block.act.register_forward_hook(lambda *_: None)
    return block


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (Raises(), r"its switch_to_deploy\(\) fails: RuntimeError: no group is known"),
        (with_hook(), "a module in it has hooks"),
        (Rep().half(), "its weights are not float32 or float64"),
    ],
    ids=["raises", "hook", "half precision"],
)
def test_declines(block, reason):
    with pytest.raises(Declined, match=reason):
        body(block)


def test_declines_training():
    block = Rep().eval()
    block.skip.train()
    with pytest.raises(Declined, match="it is in training mode"):
        catalogue()[NAME].body(block)


@pytest.mark.parametrize("module", [nn.ReLU(), Whole(), TwoInputs(), ConvNorm(4, 3), nn.Linear(3, 3), body(Rep())])
def test_others_are_left_alone(module):
    assert body(module) is NotImplemented
