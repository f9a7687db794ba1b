"""What a model takes is learnt from its refusals: nothing hopeless is tried again, and the other side is found."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.observe import ModelRefused, Observation
from torch_onnx_compat.questions.taken_sizes import ENOUGH, PATIENCE, TakenSizes

EXAMPLE = {"batch": 2, "height": 64, "width": 48}


def test_below_a_floor_nothing_is_tried_after_enough_refusals():
    taken = TakenSizes(EXAMPLE)
    taken.set_floor("height", 15)
    for batch in range(ENOUGH):
        assert not taken.will_refuse({"height": 9, "width": 5})
        taken.refuse({"batch": batch, "height": 7})
    assert taken.will_refuse({"height": 9, "width": 5})
    assert not taken.will_refuse({"height": 16, "width": 5})
    taken.accept({"height": 9})
    assert not taken.will_refuse({"height": 8})


def test_multiples_come_first_once_others_were_refused():
    taken = TakenSizes(EXAMPLE)
    taken.accept({"height": 96})
    assert not taken.may_refuse({"height": 65})
    taken.refuse({"height": 65})
    assert taken.may_refuse({"height": 33})
    assert not taken.may_refuse({"height": 128})
    assert not taken.may_refuse({"width": 49})
    taken.accept({"height": 7})  # of one cell at the end
    assert taken.may_refuse({"height": 33})
    taken.accept({"height": 81})
    assert not taken.may_refuse({"height": 33})


def test_patience_ends_with_refusals_in_a_row():
    taken = TakenSizes(EXAMPLE)
    found = []
    for size in range(40):
        found.append(taken.patience)
        taken.refuse({"batch": size})
    assert found == sorted(found, reverse=True)
    assert {PATIENCE[0][1], PATIENCE[-1][1]} <= set(found)
    taken.accept({"batch": 9})
    assert taken.patience == PATIENCE[0][1]


def test_remainders_tell_what_is_likely():
    """A network of three strides whose rows may end before a cell, or after it."""
    taken = TakenSizes(EXAMPLE)
    for size in (23, 96):
        taken.accept({"height": size})
    for size in (65, 66, 67, 60, 52, 44, 42, 61):
        assert not taken.is_unlikely({"height": 33})
        taken.refuse({"height": size})
    assert taken.is_unlikely({"height": 33})
    assert not taken.is_unlikely({"height": 80})
    assert not taken.is_unlikely({"height": 127})
    assert not taken.is_unlikely({"width": 33})
    taken.accept({"height": 33})
    assert not taken.is_unlikely({"height": 41})


class Windows(nn.Module):
    """Windows of eight rows; beyond a height the result is another one."""

    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        if x.shape[2] % 8 or x.shape[3] % 8:
            raise ValueError("no whole windows")
        for stride in (2, 3, 5, 7, 11):
            if x.shape[2] > 8 * stride and x.shape[3] > 8 * stride:
                x = x + stride
        y = x.unflatten(2, (-1, 8)).mean(3)
        return y * 2 if x.shape[2] > self.limit else y


@pytest.mark.parametrize("limit", [60, 100, 121])
def test_the_other_side_is_found_among_multiples(limit, exporter):
    dynamic = {"x": {0: "batch", 2: "height", 3: "width"}}
    model = Windows(limit)
    result = export_compat(model, (torch.randn(1, 2, 32, 24),), dynamic=dynamic, exporter=exporter)
    assert max(result.axis("height").tried if hasattr(result, "axis") else result.axes[1].tried) > limit
    session = result.session()
    for shape in ((1, 2, 32, 24), (3, 2, 64, 96), (1, 2, 104, 8), (2, 2, 128, 128)):
        x = torch.randn(shape)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x))


class UNet(nn.Module):
    """Four strides; what was cut off by one is padded on the way back."""

    def __init__(self):
        super().__init__()
        self.downs = nn.ModuleList(nn.Conv2d(2, 2, 3, padding=1) for _ in range(4))

    def forward(self, x):
        skips = []
        for down in self.downs:
            x = down(x).relu()
            skips.append(x)
            x = nn.functional.max_pool2d(x, 2)
        for skip in reversed(skips):
            x = nn.functional.interpolate(x, scale_factor=2.0)
            for dim in (2, 3):
                if x.shape[dim] != skip.shape[dim]:
                    x = nn.functional.pad(x, (0, 0, 0, 1) if dim == 2 else (0, 1, 0, 0), mode="replicate")
            x = x + skip
        return x


def test_refusals_are_few(monkeypatch):
    """Each question of the model once tried sizes of its own that are too small."""
    refused = []
    reference = Observation.reference

    def count(self, *args, **kwargs):
        try:
            return reference(self, *args, **kwargs)
        except ModelRefused:
            refused.append(args[0])
            raise

    monkeypatch.setattr(Observation, "reference", count)
    dynamic = {"x": {0: "batch", 2: "height", 3: "width"}}
    result = export_compat(UNet().eval(), (torch.randn(2, 2, 32, 48),), dynamic=dynamic)
    assert len(refused) < 90
    assert min(axis.tried[0] for axis in result.axes[1:]) == 16
