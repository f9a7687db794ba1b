"""A boolean that decides in every round of a loop: what rounds leave behind is of one kind in each of two loops."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import export_compat

DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}
SHAPES = ((1, 4, 16, 16), (2, 4, 17, 16), (1, 4, 20, 23), (3, 4, 8, 4), (1, 4, 5, 5))
VERBOSE = False


class Up(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x, skip, size=None):
        x = F.interpolate(x, scale_factor=2.0) if size is None else F.interpolate(x, size=size)
        return self.conv(x) + skip.sum((2, 3), keepdim=True)


class UNet(nn.Module):
    """As diffusers has it: sizes are handed on where the picture is no multiple of the strides."""

    def __init__(self):
        super().__init__()
        self.downs = nn.ModuleList(nn.Conv2d(4, 4, 3, 2, 1) for _ in range(2))
        self.ups = nn.ModuleList(Up() for _ in range(2))

    def forward(self, x):
        forward_size, size = False, None
        for length in x.shape[-2:]:
            if length % 4 != 0:
                forward_size = True
                break
        skips = [x]
        for down in self.downs:
            x = down(x).relu()
            skips.append(x)
        for i, up in enumerate(self.ups):
            is_last = i == len(self.ups) - 1
            skip = skips.pop()
            if VERBOSE:
                print(skip.shape)
            if not is_last and forward_size:
                size = skips[-1].shape[2:]
            x = up(x, skip, size)
        return x


class Kept(nn.Module):
    """The decision is on values, and what is kept is a tensor or None."""

    def forward(self, x):
        is_bright, kept = x.mean() > 0, None
        for scale in (1.0, 2.0, 3.0):
            if is_bright:
                kept = x * scale if kept is None else kept + x
            x = x.flip(3) * scale if kept is None else x + kept
        return x


class Twice(nn.Module):
    """Two booleans, a loop in a loop, and one of the booleans is bound between two loops."""

    def forward(self, x):
        is_odd, is_wide, last = x.shape[2] % 2 == 1, x.shape[3] > 16, None
        for scale in (2.0, 3.0):
            for shift in (1.0, -1.0):
                if is_odd and is_wide:
                    last = x[:, :1]
                x = x * scale + shift if last is None else x * scale + last
        is_odd = not is_odd
        for scale in (2.0, 0.5):
            if is_odd or is_wide:
                last = x[:, :1] * scale
            x = x if last is None else x - last
        return x


@pytest.mark.parametrize("kind", [UNet, Kept, Twice])
def test_loops_that_leave_none_or_something_behind(kind, exporter):
    torch.manual_seed(0)
    model = kind().eval()
    session = export_compat(model, (torch.randn(1, 4, 16, 16),), dynamic=DYNAMIC, exporter=exporter).session()
    for shape in SHAPES:
        for shift in (-1, 1):
            x = torch.randn(shape) + shift
            found = torch.from_numpy(session.run(None, {"x": x.numpy()})[0])
            torch.testing.assert_close(found, model(x).detach(), rtol=1e-4, atol=1e-4)
