"""Swin's windows, in rows; the original's results; what is declined."""

import pytest
import torch

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.testing import Example, assert_entry

IMAGE = torch.randn(2, 6, 8, 5)


def windows_of(x, size):
    batch, height, width, channels = x.shape
    x = x.reshape(batch, height // size, size, width // size, size, channels)
    return x.transpose(2, 3).reshape(-1, size, size, channels)


def window_reverse(windows, window_size, H, W):
    """As Swin has it: the batch becomes a Python number."""
    batch = int(windows.shape[0] / (H * W / window_size / window_size))
    x = windows.view(batch, H // window_size, W // window_size, window_size, window_size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(batch, H, W, -1)


class Swin(torch.nn.Module):
    def forward(self, x):
        return window_reverse(windows_of(x, 2) * 2, 2, x.shape[1], x.shape[2])


def keep_order(windows, window_size, H, W):
    x = windows.view(-1, H // window_size, W // window_size, window_size, window_size, windows.shape[-1])
    return x.reshape(-1, H, W, windows.shape[-1])


EXAMPLES = [
    # Masked, the original's number follows the batch too.
    Example("window_reverse", Swin(), (IMAGE,), broken=keep_order, options={"control_flow": False}),
]


def body(*args, **kwargs):
    return catalogue()["window_reverse"].body(*args, **kwargs)


@pytest.mark.parametrize("dynamic", ["batch", {"x": {0: "batch", 1: "2*rows", 2: "2*columns"}}], ids=["batch", "sizes"])
def test_matches_with_control_flow(exporter, dynamic):
    assert_entry("window_reverse", Swin(), (IMAGE,), exporter, dynamic=dynamic)


@pytest.mark.parametrize("size", [2, (2, 2), [2, 2]], ids=str)
def test_equals_the_original(size):
    windows = windows_of(IMAGE, 2)
    assert torch.equal(body(windows, size, 6, 8), window_reverse(windows, 2, 6, 8))
    assert torch.equal(body(windows, size, W=8, H=6), IMAGE)


def test_takes_oblong_windows():
    windows = IMAGE.reshape(2, 3, 2, 2, 4, 5).transpose(2, 3).reshape(-1, 2, 4, 5)
    assert torch.equal(body(windows, (2, 4), 6, 8), IMAGE)


@pytest.mark.parametrize(
    "args", [(2, (6, 8)), (2, 1, 6, 8, 9), (2,), ((2, 2, 2), 2, 6, 6, 8)], ids=["size pair", "volume", "none", "3-D"]
)
def test_declines_other_signatures(args):
    with pytest.raises(Declined, match=r"wanted the arguments \(windows, window_size, H, W\)"):
        body(windows_of(IMAGE, 2), *args)


@pytest.mark.parametrize(
    ("arrange", "shape"),
    [(lambda x: x.permute(0, 3, 1, 2), r"\(24, 5, 2, 2\)"), (lambda x: x.flatten(1, 2), r"\(24, 4, 5\)")],
    ids=["channels first", "rows"],
)
def test_declines_other_layouts(arrange, shape):
    with pytest.raises(Declined, match=rf"wanted windows \(N, 2, 2, C\), got {shape}"):
        body(arrange(windows_of(IMAGE, 2)), 2, 6, 8)
