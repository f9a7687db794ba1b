"""Programs that call functions which entries replace, by fixed sizes or by any, inside of branches and loops."""

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()

SIZES = {"height": (3, 20), "width": (3, 20)}


class Part(nn.Module):
    """Has a map of a fixed size, which is that of the example's image."""

    def __init__(self):
        super().__init__()
        self.register_buffer("fixed", torch.randn(1, 2, 8, 8))

    def same(self, x):
        return self.fixed + x.mean()


@program({}, SIZES, x="float 1 2 height=8 width=8")
class PooledInRareBranch(Part):
    def forward(self, x):
        y = F.adaptive_avg_pool2d(x, 3) if x.sum() > 1000 else torch.zeros(1, 2, 3, 3)
        return y + F.adaptive_avg_pool2d(self.same(x), 3)


@program({}, SIZES, x="float 1 2 height=8 width=8")
class PooledInBoth(Part):
    def forward(self, x):
        y = F.adaptive_avg_pool2d(self.same(x), 3) if x.mean() > 0 else F.adaptive_avg_pool2d(x, 3)
        return y * F.adaptive_avg_pool2d(x, 3) + F.adaptive_avg_pool2d(self.same(x), 3)


@program({}, SIZES, x="float 1 2 height=8 width=8")
class PooledAfterNested(Part):
    def forward(self, x):
        y = x.new_zeros(1, 2, 3, 3)
        if x.mean() > 0:
            y = y + F.adaptive_max_pool2d(self.same(x), 3)
            if x.std() > 2:
                y = y + F.adaptive_max_pool2d(x, 3)
        elif x.std() > 1:
            y = y + F.adaptive_max_pool2d(x, 3) + F.adaptive_max_pool2d(self.same(x), 3)
        return y + F.adaptive_max_pool2d(x, 3) - F.adaptive_max_pool2d(self.same(x), 3)


@program({}, {"batch": (1, 6), **SIZES}, x="float batch=3 2 height=8 width=8")
class PooledInLoop(Part):
    def forward(self, x):
        found = []
        for i in range(x.shape[0]):
            found.append(F.adaptive_avg_pool2d(x[i], 3))
        return torch.stack(found) + F.adaptive_avg_pool2d(self.same(x), 3)


@program({}, {"batch": (1, 6), **SIZES}, x="float batch=3 2 height=8 width=8")
class PooledAfterLoop(Part):
    def forward(self, x):
        total = x.new_zeros(2, 3, 3)
        for i in range(x.shape[0]):
            total = total * 0.5 + F.adaptive_avg_pool2d(self.same(x[i : i + 1]), 3)[0]
        return F.adaptive_avg_pool2d(x, 3) + total


@program({}, SIZES, x="float 1 2 height=8 width=8")
class ResizedInBranch(Part):
    def forward(self, x):
        if x.mean() > 0:
            x = F.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=False)
            x = F.interpolate(x, size=(7, 5), mode="bicubic", align_corners=True)
        else:
            x = F.interpolate(self.same(x), size=(7, 5), mode="bilinear", antialias=True)
        return x + F.interpolate(self.same(x), size=(7, 5), mode="nearest-exact")


@program({}, SIZES, x="float 1 2 height=8 width=8")
class ResizedBySize(Part):
    def forward(self, x):
        y = self.same(x)
        if x.shape[-2:] != y.shape[-2:]:
            y = F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=True)
        return x * y


@program({}, {"batch": (1, 6), **SIZES}, x="float batch=2 2 height=8 width=8", style="float batch=2 2")
class ModulatedInBranch(Part):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 2, 3, 3))

    def convolve(self, x, style):
        b, c, h, w = x.shape
        weight = self.weight[None] * style[:, None, :, None, None]
        return F.conv2d(x.reshape(1, b * c, h, w), weight.reshape(b * c, c, 3, 3), padding=1, groups=b).view(b, c, h, w)

    def forward(self, x, style):
        y = self.convolve(x, style) if style.mean() > 0 else x
        return y + self.convolve(x * 0.5, style + 1)


@program({}, SIZES, x="float 1 2 height=8 width=8")
class SampledInBranch(Part):
    def forward(self, x):
        grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 4), torch.linspace(-1, 1, 5), indexing="ij"), -1)[None]
        y = F.grid_sample(self.same(x), grid.flip(-1), align_corners=False)
        if x.mean() > 0:
            y = y + F.grid_sample(x, grid.flip(-1), mode="bilinear", padding_mode="reflection", align_corners=True)
        return y


@program({}, SIZES, x="float 1 2 height=8 width=8")
class InPlaceInBranch(Part):
    """Functions of Python that write to their argument."""

    def forward(self, x):
        y, z = x * 2, x + 1
        if x.mean() > 0:
            F.hardswish(y, inplace=True)
            F.relu6(z, inplace=True)
        F.leaky_relu(z, 0.1, inplace=True)
        return y, z


@program({}, SIZES, x="float 1 2 height=8 width=8")
class NormalizedInBranch(Part):
    def forward(self, x):
        x = F.normalize(x, dim=1) if x.mean() > 0 else F.local_response_norm(F.instance_norm(x), 2)
        return x + F.lp_pool2d(F.pad(x.abs() + 0.1, (1, 1, 1, 1)), 2, 3, stride=1)


@program({}, {"batch": (1, 6), "length": (1, 12)}, x="float batch=2 length=5 4", mask="mask batch=2 length=5")
class AttendedInBranch(nn.Module):
    def forward(self, x, mask):
        keep = (~mask).clone()
        keep[:, 0] = True
        y = F.scaled_dot_product_attention(x, x, x, is_causal=True)
        if mask.any():
            y = F.scaled_dot_product_attention(x, x, x, attn_mask=keep[:, None])
        return F.layer_norm(y, (4,)) + F.gelu(x, approximate="tanh")
