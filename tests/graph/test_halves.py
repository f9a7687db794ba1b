"""A cast to halves rounds in onnxruntime, too, where what follows is exact."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import Verify
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NEAR = [torch.full((2, 4), value) for value in (1.0001, 1.0, 0.7, -0.7, 0.6998, 2049.0)]


class Decides(nn.Module):
    """On numbers that are no halves; the half next to 1.0001 is 1, that next to 2049 is 2048."""

    def forward(self, x):
        half = x.half()
        if half.abs().max().item() > 1:
            x = x + 1
        return x, half > 0.7, half.max(1)[0], half.relu(), half.floor(), half[:, 1:].min()


def test_halves_are_rounded(exporter):
    assert_same_outputs(Decides(), NEAR[0], exporter, dynamic="batch", samples=[(x,) for x in NEAR])


MOVES = {
    "where": lambda h: torch.where(h > 0, h, 0),
    "pad": lambda h: F.pad(h, (1, 1)),
    "tile": lambda h: h.repeat(1, 1, 2, 1),
    "nearest": lambda h: F.interpolate(h, scale_factor=2.0),
    "shuffle": lambda h: F.pixel_shuffle(h, 2),
    "unshuffle": lambda h: F.pixel_unshuffle(h, 2),
    "triangle": lambda h: h.tril(),
    "topk": lambda h: h.topk(2)[0],
    "pool": lambda h: F.max_pool2d(h, 2),
    "flip": lambda h: h.flip(2),
    "cat": lambda h: torch.cat([h, h * 0], 1),
    "threshold": lambda h: F.threshold(h, 0.1, 0.0),
    "maximum": lambda h: torch.maximum(h, -h),
    "negative": lambda h: -h,
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_what_moves_keeps_the_half(move, exporter):
    """0.70005 is between two halves; only the half above it is found again."""
    near, x = 0.7001953125, torch.full((1, 4, 2, 2), 0.70005)
    assert_same_outputs(lambda x: move(x.half()).abs() == near, x, exporter, samples=[(x * 0.5,)])


def test_products_are_left_alone(exporter):
    weight = torch.randn(4, 4).half()
    result = assert_same_outputs(
        lambda x: (x.half() @ weight).float(), torch.randn(2, 4), exporter, verify=Verify(rtol=1e-2, atol=1e-2)
    )
    assert result.nodes["Cast"] == 2


def test_onnxruntime_needs_it(exporter, monkeypatch):
    monkeypatch.setattr("torch_onnx_compat.finish.keep_rounding", lambda model: None)
    with pytest.raises(VerificationError):
        assert_same_outputs(lambda x: x.half().max() > 1, NEAR[0], exporter, samples=[(x,) for x in NEAR])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_outputs_have_their_type(exporter, dtype):
    """torch's exporter through torch.export leaves them in float32 where a function is computed so."""

    def model(x):
        return x.abs(), x.abs() + 1, x.amax(1), x.prod(1), x.cumsum(1), torch.aminmax(x)[0]

    assert_same_outputs(model, torch.tensor([[0.5, -2, 1.5], [3, 1, -1]], dtype=dtype), exporter, dynamic="batch")
