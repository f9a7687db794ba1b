import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

IMAGE = torch.randn(2, 6, 8, 5)
BATCH = "batch"


def windows_of(x, size):
    batch, height, width, channels = x.shape
    x = x.reshape(batch, height // size, size, width // size, size, channels)
    return x.transpose(2, 3).reshape(-1, size, size, channels)


def window_reverse(windows, window_size, H, W):
    """As Swin has it: the batch becomes a Python number."""
    batch = int(windows.shape[0] / (H * W / window_size / window_size))
    x = windows.view(batch, H // window_size, W // window_size, window_size, window_size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(batch, H, W, -1)


class Swin(nn.Module):
    def forward(self, x):
        return window_reverse(windows_of(x, 2) * 2, 2, x.shape[1], x.shape[2])


def body(*args, **kwargs):
    return catalogue()["window_reverse"].body(*args, **kwargs)


def test_matches(exporter):
    assert_same_outputs(Swin(), (IMAGE,), exporter, dynamic=BATCH, uses=("window_reverse",))


def test_matches_at_other_sizes(exporter):
    dynamic = {"x": {0: "batch", 1: "2*rows", 2: "2*columns"}}
    assert_same_outputs(Swin(), (IMAGE,), exporter, dynamic=dynamic, uses=("window_reverse",))


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


def test_declines_other_layouts():
    with pytest.raises(Declined, match=r"wanted windows \(N, 2, 2, C\), got \(24, 5, 2, 2\)"):
        body(windows_of(IMAGE, 2).permute(0, 3, 1, 2), 2, 6, 8)
    with pytest.raises(Declined, match=r"wanted windows \(N, 2, 2, C\), got \(24, 4, 5\)"):
        body(windows_of(IMAGE, 2).flatten(1, 2), 2, 6, 8)


def test_sentinel(exporter):
    @rewrite("*.window_reverse", name="window_reverse", needed_on=EXPORTERS, registry=None)
    def broken(windows, window_size, H, W):
        x = windows.view(-1, H // window_size, W // window_size, window_size, window_size, windows.shape[-1])
        return x.reshape(-1, H, W, windows.shape[-1])

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Swin(), (IMAGE,), exporter, dynamic=BATCH, rewrites=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError):
        assert_same_outputs(Swin(), (IMAGE,), exporter, dynamic=BATCH, exclude=["window_reverse"], control_flow=False)
