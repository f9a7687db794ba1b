"""Programs after the blocks of published models: modulated convolutions, hashes, volumes, splines, scans, filters."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


# Convolutions whose weights or groups come from the inputs


@program({}, {"height": (3, 16), "batch": (1, 9)}, x="float batch=2 4 height=6 5", style="float batch=2 3")
class ModulatedConvolution(nn.Module):
    """StyleGAN2's: the weights of each image for itself, a group for each."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4, 3, 3))
        self.affine = nn.Linear(3, 4)

    def forward(self, x, style):
        b, c, h, w = x.shape
        weight = self.weight[None] * (self.affine(style) + 1)[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.square().sum([2, 3, 4], keepdim=True) + 1e-4)
        x = F.conv2d(x.reshape(1, b * c, h, w), weight.reshape(b * 6, c, 3, 3), padding=1, groups=b)
        return x.reshape(b, 6, h, w)


@program({}, {"height": (5, 16), "batch": (1, 6)}, x="float batch=2 2 height=7 8", z="float batch=2 2 3 3")
class DepthwiseCorrelation(nn.Module):
    """A tracker's: the template of each image is the kernel."""

    def forward(self, x, z):
        b, c, h, w = x.shape
        found = F.conv2d(x.reshape(1, b * c, h, w), z.reshape(b * c, 1, 3, 3), groups=b * c)
        return found.reshape(b, c, found.size(2), found.size(3))


@program({}, {"batch": (1, 9)}, x="float batch=3 4 6 5")
class ExpertConvolutions(nn.Module):
    """CondConv's: a mix of kernels for each image."""

    def __init__(self):
        super().__init__()
        self.experts = nn.Parameter(torch.randn(3, 5 * 4 * 9) / 6)
        self.route = nn.Linear(4, 3)

    def forward(self, x):
        weights = torch.sigmoid(self.route(F.adaptive_avg_pool2d(x, 1).flatten(1))) @ self.experts
        b, c, h, w = x.shape
        made = F.conv2d(x.view(1, b * c, h, w), weights.view(b * 5, c, 3, 3), padding=1, groups=b)
        return made.permute([1, 0, 2, 3]).view(b, 5, made.shape[-2], made.shape[-1])


@program({}, {"height": (6, 30), "width": (6, 30)}, x="float 1 3 height=9 width=12")
class UpFirDown(nn.Module):
    """Zeros in between, a filter, every second sample."""

    def forward(self, x):
        n, c, h, w = x.shape
        x = F.pad(x.reshape(n, c, h, 1, w, 1), [0, 1, 0, 0, 0, 1]).reshape(n, c, h * 2, w * 2)
        x = F.pad(x, [2, 1, 2, 1])
        taps = torch.tensor([1.0, 3.0, 3.0, 1.0])
        kernel = torch.outer(taps, taps) / 16
        x = F.conv2d(x, kernel[None, None].repeat(c, 1, 1, 1), groups=c)
        return x[:, :, ::2, ::2], x


@program({}, {"length": (8, 64)}, x="float 2 1 length=19")
class SincFilters(nn.Module):
    """SincNet's: band-pass filters from two numbers each."""

    def __init__(self):
        super().__init__()
        self.low, self.band = nn.Parameter(torch.tensor([0.05, 0.1, 0.2])), nn.Parameter(torch.tensor([0.1, 0.1, 0.2]))
        half = torch.arange(1, 4).float()
        self.register_buffer("angles", 2 * math.pi * half, persistent=False)

    def forward(self, x):
        low = 0.01 + self.low.abs()
        high = torch.clamp(low + 0.02 + self.band.abs(), 0.01, 0.5)
        left = (torch.sin(torch.outer(high, self.angles)) - torch.sin(torch.outer(low, self.angles))) / (
            self.angles / 2
        )
        middle = 2 * (high - low).view(-1, 1)
        kernels = torch.cat([left.flip(1), middle, left], dim=1) / (2 * (high - low)[:, None])
        return F.conv1d(x, kernels.view(3, 1, 7), padding=3)


# Volumes and lookups


@program({}, {"height": (3, 9), "width": (3, 9)}, a="float 1 4 height=4 width=5", b="float 1 4 height=4 width=5")
class AllPairs(nn.Module):
    """RAFT's volume, pooled twice, and looked up around each place."""

    def forward(self, a, b):
        n, c, h, w = a.shape
        volume = torch.matmul(a.view(n, c, h * w).transpose(1, 2), b.view(n, c, h * w)) / torch.sqrt(torch.tensor(c))
        volume = volume.reshape(n * h * w, 1, h, w)
        pyramid = [volume, F.avg_pool2d(volume, 2, stride=2)]
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        places = torch.stack([x, y], dim=-1).float().repeat(n, 1, 1, 1)
        step = torch.linspace(-1, 1, 3)
        around = torch.stack(torch.meshgrid(step, step, indexing="ij"), axis=-1)
        found = []
        for level, part in enumerate(pyramid):
            at = places.reshape(n * h * w, 1, 1, 2) / 2**level + around.view(1, 3, 3, 2)
            tall, wide = part.shape[-2:]
            x, y = at.split([1, 1], dim=-1)
            grid = torch.cat([2 * x / max(wide - 1, 1) - 1, 2 * y / max(tall - 1, 1) - 1], dim=-1)
            found.append(F.grid_sample(part, grid, align_corners=True).view(n, h, w, -1))
        return torch.cat(found, dim=-1).permute(0, 3, 1, 2).contiguous().float()


@program({}, {"height": (4, 12), "width": (4, 12)}, a="float 1 3 height=6 width=7", b="float 1 3 height=6 width=7")
class PatchCorrelation(nn.Module):
    """FlowNet's: shifts of a padded map, one channel each."""

    def forward(self, a, b):
        h, w = a.shape[2:]
        padded = F.pad(b, (2, 2, 2, 2))
        shifts = [(i, j) for i in range(0, 5, 2) for j in range(5)]
        return torch.cat([(a * padded[:, :, i : i + h, j : j + w]).mean(1, keepdim=True) for i, j in shifts], 1)


@program({}, {"points": (1, 40)}, x="unit points=9 3")
class HashGrid(nn.Module):
    """Instant-NGP's: corners of cells are hashed with primes; corners are mixed by distance."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(3, 64, 2))
        self.register_buffer("primes", torch.tensor([1, 2654435761, 805459861]), persistent=False)

    def forward(self, x):
        levels = []
        for level, scale in enumerate((4, 7, 13)):
            at = x * scale
            low = at.floor().long()
            part = at - low
            total = 0
            for corner in range(8):
                offset = torch.tensor([corner >> axis & 1 for axis in range(3)])
                hashed = (low + offset) * self.primes
                index = (hashed[:, 0] ^ hashed[:, 1] ^ hashed[:, 2]) % 64
                weight = torch.where(offset.bool(), part, 1 - part).prod(-1, keepdim=True)
                total = total + weight * self.table[level][index]
            levels.append(total)
        return torch.cat(levels, -1)


@program({}, {"rays": (1, 12), "samples": (2, 24)}, density="unit rays=3 samples=7", color="unit rays=3 samples=7 3")
class VolumeRendering(nn.Module):
    """NeRF's: transmittance is a product of what came before."""

    def forward(self, density, color):
        near = torch.linspace(2.0, 6.0, density.shape[1]).expand(density.shape)
        gaps = torch.cat([near[..., 1:] - near[..., :-1], torch.full_like(near[..., :1], 1e10)], -1)
        alpha = 1.0 - torch.exp(-F.relu(density) * gaps)
        clear = torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1)), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
        weights = alpha * clear
        depth = torch.sum(weights * near, -1)
        return torch.sum(weights[..., None] * color, -2), depth, 1.0 - weights.sum(-1, keepdim=True)


@program({}, {"rays": (1, 12), "bins": (3, 24)}, weights="unit rays=2 bins=6")
class InverseSampling(nn.Module):
    """NeRF's second pass: where a piecewise distribution reaches given parts."""

    def forward(self, weights):
        weights = weights + 1e-5
        density = weights / weights.sum(-1, keepdim=True)
        total = torch.cumsum(density, -1)
        total = torch.cat([torch.zeros_like(total[..., :1]), total], -1)
        edges = torch.linspace(0, 1, weights.shape[-1] + 1).expand_as(total)
        u = torch.linspace(0.07, 0.93, steps=5).expand([*list(total.shape[:-1]), 5]).contiguous()
        indices = torch.searchsorted(total, u, right=True)
        below = torch.max(torch.zeros_like(indices - 1), indices - 1)
        above = torch.min((total.shape[-1] - 1) * torch.ones_like(indices), indices)
        both = torch.stack([below, above], -1)
        shape = [both.shape[0], both.shape[1], total.shape[-1]]
        low_high = torch.gather(total.unsqueeze(1).expand(shape), 2, both)
        places = torch.gather(edges.unsqueeze(1).expand(shape), 2, both)
        gap = low_high[..., 1] - low_high[..., 0]
        gap = torch.where(gap < 1e-5, torch.ones_like(gap), gap)
        return places[..., 0] + (u - low_high[..., 0]) / gap * (places[..., 1] - places[..., 0])


# Neighbours and graphs


@program({}, {"points": (5, 30)}, x="float 2 3 points=8")
class EdgeConvolution(nn.Module):
    """DGCNN's: features of the four nearest beside one's own."""

    def forward(self, x):
        x = x + 0.03 * x * x  # no two distances are equal
        inner = -2 * torch.matmul(x.transpose(2, 1), x)
        square = torch.sum(x**2, dim=1, keepdim=True)
        index = (-square - inner - square.transpose(2, 1)).topk(k=4, dim=-1)[1]
        b, d, n = x.size()
        index = (index + torch.arange(0, b).view(-1, 1, 1) * n).view(-1)
        x = x.transpose(2, 1).contiguous()
        near = x.view(b * n, -1)[index, :].view(b, n, 4, d)
        x = x.view(b, n, 1, d).repeat(1, 1, 4, 1)
        return torch.cat((near - x, x), dim=3).permute(0, 3, 1, 2).contiguous().amax(-1)


@program({}, {"points": (4, 20), "centres": (1, 9)}, points="float 1 points=10 3", centres="float 1 centres=4 3")
class BallQuery(nn.Module):
    """PointNet++'s: the first three within a radius; the first one fills up."""

    def forward(self, points, centres):
        b, n, _ = points.shape
        s = centres.shape[1]
        group = torch.arange(n, dtype=torch.long).view(1, 1, n).repeat([b, s, 1])
        group[torch.cdist(centres, points) ** 2 > 4.0] = n
        group = group.sort(dim=-1)[0][:, :, :3]
        first = group[:, :, 0].view(b, s, 1).repeat([1, 1, 3])
        mask = group == n
        group[mask] = first[mask]
        return group


@program({}, {"nodes": (2, 20), "edges": (1, 40)}, x="float nodes=6 4", source="2 edges=9", target="2 edges=9")
class GraphAttention(nn.Module):
    """GAT: a softmax over the edges that come in."""

    def __init__(self):
        super().__init__()
        self.lin, self.score = nn.Linear(4, 3), nn.Parameter(torch.randn(6))

    def forward(self, x, source, target):
        h = self.lin(x)
        n = x.size(0)
        score = F.leaky_relu(torch.cat([h[source], h[target]], -1) @ self.score, 0.2)
        top = torch.full((n,), -1e30).scatter_reduce(0, target, score, "amax", include_self=True)
        weight = (score - top[target]).exp()
        total = torch.zeros(n).index_add_(0, target, weight)
        weight = weight / (total[target] + 1e-16)
        return torch.zeros(n, 3).index_add_(0, target, weight.unsqueeze(-1) * h[source])


@program({}, {"nodes": (2, 16)}, x="float nodes=6 4", adjacency="mask nodes=6 nodes=6")
class NormalizedAdjacency(nn.Module):
    """GCN's: with loops, by the roots of the degrees."""

    def forward(self, x, adjacency):
        a = adjacency.float() + torch.eye(adjacency.size(0))
        degree = a.sum(1)
        root = degree.pow(-0.5)
        root[torch.isinf(root)] = 0
        return torch.diag(root) @ a @ torch.diag(root) @ x


@program({}, {"nodes": (2, 16)}, adjacency="mask nodes=5 nodes=5")
class RandomWalkPositions(nn.Module):
    """Chances to come back after so many steps."""

    def forward(self, adjacency):
        a = adjacency.float()
        step = a / a.sum(1, keepdim=True).clamp(min=1)
        found, walk = [], step
        for _ in range(4):
            found.append(walk.diagonal())
            walk = walk @ step
        return torch.stack(found, -1)


# Scans, solvers and series


@program({}, {"length": (1, 20)}, u="float 2 length=7 3", delta="unit 2 length=7 3")
class SelectiveScan(nn.Module):
    """Mamba's, step by step."""

    def __init__(self):
        super().__init__()
        self.log = nn.Parameter(torch.rand(3, 4))
        self.mix = nn.Linear(3, 8)
        self.skip = nn.Parameter(torch.ones(3))

    def forward(self, u, delta):
        a = -torch.exp(self.log)
        b, c = self.mix(u).split([4, 4], dim=-1)
        decay = torch.exp(torch.einsum("bld,dn->bldn", delta, a))
        drive = torch.einsum("bld,bln,bld->bldn", delta, b, u)
        state = torch.zeros((u.shape[0], 3, 4))
        ys = []
        for i in range(u.shape[1]):
            state = decay[:, i] * state + drive[:, i]
            ys.append(torch.einsum("bdn,bn->bd", state, c[:, i, :]))
        return torch.stack(ys, dim=1) + u * self.skip


@program({}, {"length": (1, 24)}, x="float 2 length=6 4")
class RetentionDecay(nn.Module):
    """RetNet's mask of powers."""

    def forward(self, x):
        n = x.shape[1]
        index = torch.arange(n)
        gamma = 1 - 2.0 ** (-5 - torch.arange(2).float())
        mask = torch.where(index[:, None] >= index[None], index[:, None] - index[None], torch.inf)
        decay = torch.exp(mask[None] * torch.log(gamma)[:, None, None])
        decay = torch.nan_to_num(decay)
        decay = decay / decay.sum(-1, keepdim=True).sqrt()
        scores = torch.einsum("bnd,bmd->bnm", x, x)[:, None] * decay
        return scores / scores.detach().abs().sum(-1, keepdim=True).clamp(min=1, max=5e4) @ x[:, None]


@program({}, {"length": (2, 40)}, x="float 2 length=9 3")
class FourierMixing(nn.Module):
    """FNet's and FNO's: a few frequencies are weighted, the rest is dropped."""

    def __init__(self):
        super().__init__()
        self.real, self.imaginary = nn.Parameter(torch.randn(3, 3)), nn.Parameter(torch.randn(3, 3))

    def forward(self, x):
        n = x.shape[1]
        spectrum = torch.fft.rfft(x, dim=1, norm="ortho")
        kept = min(3, n // 2 + 1)
        out = torch.zeros_like(spectrum)
        out[:, :kept] = spectrum[:, :kept] @ torch.complex(self.real, self.imaginary)
        return torch.fft.irfft(out, n=n, dim=1, norm="ortho")


@program({}, {"length": (8, 60)}, x="float 1 length=21 2")
class SeriesDecomposition(nn.Module):
    """A moving mean with repeated ends."""

    def forward(self, x):
        front = x[:, 0:1, :].repeat(1, (5 - 1) // 2, 1)
        end = x[:, -1:, :].repeat(1, (5 - 1) // 2, 1)
        mean = F.avg_pool1d(torch.cat([front, x, end], dim=1).permute(0, 2, 1), 5, stride=1).permute(0, 2, 1)
        return x - mean, mean


@program({}, {"length": (8, 60)}, x="float 2 length=18 3")
class PeriodFolds(nn.Module):
    """TimesNet's: a series as an image of a period that the model fixes, padded to whole periods."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        b, t, n = x.size()
        found = []
        for period in (4, 7):
            length = t
            if t % period != 0:
                length = (t // period + 1) * period
                out = torch.cat([x, torch.zeros([x.shape[0], length - t, x.shape[2]])], dim=1)
            else:
                out = x
            out = out.reshape(b, length // period, period, n).permute(0, 3, 1, 2).contiguous()
            found.append(self.conv(out).permute(0, 2, 3, 1).reshape(b, -1, n)[:, :t, :])
        return torch.stack(found, dim=-1).mean(-1) + x


@program({}, {"length": (16, 80)}, x="float 2 length=25 3")
class SeriesPatches(nn.Module):
    """PatchTST's: the end is repeated, overlapping patches are unfolded, each series is normalized for itself."""

    def forward(self, x):
        mean = x.mean(1, keepdim=True).detach()
        spread = torch.sqrt(torch.var(x - mean, dim=1, keepdim=True, unbiased=False) + 1e-5)
        x = ((x - mean) / spread).permute(0, 2, 1)
        x = nn.functional.pad(x, (0, 4), mode="replicate")
        x = x.unfold(dimension=-1, size=8, step=4)
        return torch.reshape(x, (x.shape[0] * x.shape[1], x.shape[2], x.shape[3])), spread


@program({}, {"batch": (1, 6)}, x="unit batch=2 4 4")
class SinkhornFixed(nn.Module):
    """SuperGlue's: with a dustbin, in the logarithm, a fixed number of times."""

    def forward(self, x):
        b, m, n = x.shape
        one = x.new_tensor(1)
        ms, ns = (m * one).to(x), (n * one).to(x)
        bins = torch.tensor(0.3)
        couplings = torch.cat(
            [
                torch.cat([x, bins.expand(b, m, 1)], -1),
                torch.cat([bins.expand(b, 1, n), bins.expand(b, 1, 1)], -1),
            ],
            1,
        )
        norm = -(ms + ns).log()
        log_mu = torch.cat([norm.expand(m), ns.log()[None] + norm])[None].expand(b, -1)
        log_nu = torch.cat([norm.expand(n), ms.log()[None] + norm])[None].expand(b, -1)
        u, v = torch.zeros_like(log_mu), torch.zeros_like(log_nu)
        for _ in range(5):
            u = log_mu - torch.logsumexp(couplings + v.unsqueeze(1), dim=2)
            v = log_nu - torch.logsumexp(couplings + u.unsqueeze(2), dim=1)
        return couplings + u.unsqueeze(2) + v.unsqueeze(1) - norm


@program({}, {"n": (2, 9), "m": (2, 9)}, x="float n=4 2", y="float m=5 2")
class SoftDtw(nn.Module):
    """Two loops over a table."""

    def forward(self, x, y):
        cost = torch.cdist(x, y) ** 2
        n, m = cost.shape
        table = torch.full((n + 1, m + 1), 1e8)
        table[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                options = torch.stack([table[i - 1, j], table[i, j - 1], table[i - 1, j - 1]])
                table[i, j] = cost[i - 1, j - 1] - torch.logsumexp(-options, 0)
        return table[n, m]


@program({}, {"batch": (1, 9)}, x="float batch=3 6")
class SparseMax(nn.Module):
    """The projection onto the simplex, by a sort."""

    def forward(self, x):
        ordered, _ = torch.sort(x, dim=-1, descending=True)
        total = ordered.cumsum(-1) - 1
        rank = torch.arange(1, x.size(-1) + 1).to(x)
        support = (rank * ordered > total).sum(dim=-1, keepdim=True)
        tau = total.gather(-1, support - 1) / support.to(x.dtype)
        return torch.clamp(x - tau, min=0)


@program({}, {"points": (1, 30)}, x="float points=9")
class RationalSpline(nn.Module):
    """Neural spline flows': outside of the interval nothing happens."""

    def __init__(self):
        super().__init__()
        self.widths, self.heights = nn.Parameter(torch.randn(5)), nn.Parameter(torch.randn(5))
        self.slopes = nn.Parameter(torch.randn(6))

    def forward(self, x):
        inside = (x >= -3) & (x <= 3)
        out, logdet = torch.zeros_like(x), torch.zeros_like(x)
        out[~inside] = x[~inside]
        widths = F.pad(torch.cumsum(F.softmax(self.widths, -1), -1), (1, 0)) * 6 - 3
        heights = F.pad(torch.cumsum(F.softmax(self.heights, -1), -1), (1, 0)) * 6 - 3
        slopes = F.softplus(self.slopes) + 1e-3
        z = x[inside]
        index = torch.sum(z[:, None] >= widths, dim=-1) - 1
        index = index.clamp(0, 4)
        w, h = (widths[1:] - widths[:-1])[index], (heights[1:] - heights[:-1])[index]
        theta = (z - widths[index]) / w
        ratio, d0, d1 = h / w, slopes[index], slopes[index + 1]
        across = theta * (1 - theta)
        bottom = ratio + (d0 + d1 - 2 * ratio) * across
        out[inside] = heights[index] + h * (ratio * theta.pow(2) + d0 * across) / bottom
        logdet[inside] = torch.log(ratio.pow(2) * (d1 * theta.pow(2) + 2 * ratio * across + d0 * (1 - theta).pow(2)))
        return out, logdet - 2 * torch.log(torch.ones_like(x))


@program({}, {"batch": (1, 9)}, x="float batch=3 8")
class CouplingFlow(nn.Module):
    """RealNVP's: every other feature moves the rest; the order turns."""

    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList(nn.Linear(4, 8) for _ in range(3))

    def forward(self, x):
        logdet = 0
        for number, net in enumerate(self.nets):
            a, b = x.chunk(2, -1) if number % 2 == 0 else x.flip(-1).chunk(2, -1)
            s, t = net(a).chunk(2, -1)
            s = torch.tanh(s)
            x = torch.cat([a, b * s.exp() + t], -1)
            logdet = logdet + s.sum(-1)
        return x, logdet - 0.5 * (x**2 + math.log(2 * math.pi)).sum(-1)


@program({}, {"batch": (1, 9)}, x="float batch=2 5")
class VectorQuantizer(nn.Module):
    """The nearest code, straight through, and how many are in use."""

    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(7, 5)

    def forward(self, x):
        distance = (x**2).sum(1, keepdim=True) + (self.codes.weight**2).sum(1) - 2 * x @ self.codes.weight.t()
        index = torch.argmin(distance, 1)
        one_hot = F.one_hot(index, 7).type_as(x)
        quantized = one_hot @ self.codes.weight
        mean = one_hot.mean(0)
        perplexity = torch.exp(-torch.sum(mean * torch.log(mean + 1e-10)))
        return x + (quantized - x).detach(), index, perplexity


@program({}, {"batch": (1, 9)}, x="float batch=2 4")
class FiniteScalars(nn.Module):
    """FSQ: each number to so many levels, and the code as one number."""

    def forward(self, x):
        levels = torch.tensor([8, 5, 5, 4])
        half = (levels - 1) * (1 + 1e-3) / 2
        offset = torch.where(levels % 2 == 0, 0.5, 0.0)
        shift = (offset / half).atanh()
        bounded = (x + shift).tanh() * half - offset
        rounded = bounded.round()
        width = levels // 2
        basis = torch.cumprod(torch.tensor([1, *levels.tolist()[:-1]]), 0)
        return rounded / width, ((rounded + width) * basis).sum(-1).to(torch.int32)


@program({}, {"tokens": (2, 30)}, x="float tokens=8 4")
class TopTwoExperts(nn.Module):
    """Mixtral's: each expert works on its own tokens, and adds to them."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3, bias=False)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        weights, chosen = torch.topk(F.softmax(self.gate(x), dim=1, dtype=torch.float), 2, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=3).permute(2, 1, 0)
        for number in range(3):
            which, rows = torch.where(mask[number])
            made = self.experts[number](x[None, rows].reshape(-1, 4)) * weights[rows, which, None]
            out.index_add_(0, rows, made.to(x.dtype))
        return out


@program({}, {"tokens": (3, 30)}, x="float 1 tokens=10 4")
class MergedTokens(nn.Module):
    """ToMe's: a quarter of the tokens goes into the most alike ones."""

    def forward(self, x):
        t = x.shape[1]
        r = min(t // 4, t // 2)
        metric = x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        a, b = metric[..., ::2, :], metric[..., 1::2, :]
        scores = a @ b.transpose(-1, -2)
        best, index = scores.max(dim=-1)
        edge = best.argsort(dim=-1, descending=True, stable=True)[..., None]
        kept, gone = edge[..., r:, :], edge[..., :r, :]
        into = index[..., None].gather(dim=-2, index=gone)
        source, target = x[..., ::2, :], x[..., 1::2, :]
        n, t1, c = source.shape
        rest = source.gather(dim=-2, index=kept.expand(n, t1 - r, c))
        merged = source.gather(dim=-2, index=gone.expand(n, r, c))
        target = target.scatter_reduce(-2, into.expand(n, r, c), merged, reduce="mean")
        return torch.cat([rest, target], dim=1)


# Boxes, anchors and geometry


@program({}, {"height": (32, 160), "width": (32, 160)}, x="float 1 2 height=64 width=96")
class Anchors(nn.Module):
    """RetinaNet's old way: shapes of levels from the size of the image."""

    def forward(self, x):
        shape = torch.tensor(x.shape[2:])
        all_anchors = []
        for level in (3, 4, 5):
            tall, wide = ((shape + 2**level - 1) // (2**level)).tolist()
            y, z = torch.meshgrid(
                (torch.arange(tall) + 0.5) * 2**level, (torch.arange(wide) + 0.5) * 2**level, indexing="ij"
            )
            half = 2.0 ** (level + 1)
            all_anchors.append(torch.stack([z - half, y - half, z + half, y + half], -1).reshape(-1, 4))
        return torch.cat(all_anchors) + x.mean()


@program({}, {"height": (1, 12), "width": (1, 12)}, x="float 1 9 height=4 width=5")
class GridDecode(nn.Module):
    """A YOLO head: the grid is made anew where its size is another one."""

    def __init__(self):
        super().__init__()
        self.grid = torch.zeros(1)

    def forward(self, x):
        bs, _, ny, nx = x.shape
        x = x.view(bs, 1, 9, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
        if self.grid.shape[2:4] != x.shape[2:4]:
            yv, xv = torch.meshgrid([torch.arange(ny), torch.arange(nx)], indexing="ij")
            self.grid = torch.stack((xv, yv), 2).view((1, 1, ny, nx, 2)).float()
        y = x.sigmoid()
        xy = (y[..., 0:2] * 2.0 - 0.5 + self.grid) * 8
        wh = (y[..., 2:4] * 2) ** 2 * torch.tensor([10.0, 13.0])
        return torch.cat((xy, wh, y[..., 4:]), -1).view(bs, -1, 9)


@program({}, {"boxes": (1, 12)}, x="float 1 2 14 17", boxes="unit boxes=3 4")
class RoiGridSample(nn.Module):
    """Crops by boxes with grid_sample, each of its own place."""

    def forward(self, x, boxes):
        n = boxes.shape[0]
        low, high = boxes[:, :2] * 0.5, 0.5 + boxes[:, 2:] * 0.5
        ys, xs = torch.meshgrid(torch.linspace(0, 1, 4), torch.linspace(0, 1, 5), indexing="ij")
        grid = torch.stack([xs, ys], -1)[None] * (high - low)[:, None, None] + low[:, None, None]
        return F.grid_sample(x.expand(n, -1, -1, -1), grid * 2 - 1, align_corners=False, padding_mode="border")


@program({}, {"batch": (1, 9)}, x="float batch=2 6")
class Rotations(nn.Module):
    """Six numbers to a rotation, its quaternion by the largest of four ways, and back."""

    def forward(self, x):
        a, b = x[..., :3], x[..., 3:]
        first = F.normalize(a + 0.01, dim=-1)
        second = F.normalize(b - (first * b).sum(-1, keepdim=True) * first + 0.02, dim=-1)
        m = torch.stack((first, second, torch.cross(first, second, dim=-1)), dim=-2)
        m00, m01, m02, m10, m11, m12, m20, m21, m22 = torch.unbind(m.reshape(-1, 9), dim=-1)
        size = torch.sqrt(
            torch.clamp(
                torch.stack([1 + m00 + m11 + m22, 1 + m00 - m11 - m22, 1 - m00 + m11 - m22, 1 - m00 - m11 + m22], -1),
                min=0,
            )
        )
        rows = torch.stack(
            [
                torch.stack([size[..., 0] ** 2, m21 - m12, m02 - m20, m10 - m01], dim=-1),
                torch.stack([m21 - m12, size[..., 1] ** 2, m10 + m01, m02 + m20], dim=-1),
                torch.stack([m02 - m20, m10 + m01, size[..., 2] ** 2, m12 + m21], dim=-1),
                torch.stack([m10 - m01, m20 + m02, m21 + m12, size[..., 3] ** 2], dim=-1),
            ],
            dim=-2,
        )
        rows = rows / (2.0 * size[..., None].max(torch.tensor(0.1)))
        return rows[F.one_hot(size.argmax(dim=-1), num_classes=4) > 0.5, :].reshape(x.shape[0], 4)


@program({}, {"joints": (3, 12)}, heat="unit 2 joints=3 6 5")
class SoftArgmax(nn.Module):
    """Integral pose: the mean of each axis."""

    def forward(self, heat):
        b, j, h, w = heat.shape
        p = F.softmax(heat.reshape(b, j, -1) * 10, 2).reshape(b, j, h, w)
        x = (p.sum(2) * torch.arange(w).float()).sum(-1) / w - 0.5
        y = (p.sum(3) * torch.arange(h).float()).sum(-1) / h - 0.5
        return torch.stack([x, y], -1), p.flatten(2).max(-1).values


# Attention with more than a product


@program({}, {"height": (4, 17), "width": (4, 17)}, x="float 1 height=6 width=7 4")
class ShiftedWindows(nn.Module):
    """Swin's: padded to windows, rolled, masked by regions, rolled back and cut."""

    def forward(self, x):
        b, h, w, c = x.shape
        ws, shift = 3, 1
        x = F.pad(x, (0, 0, 0, (ws - w % ws) % ws, 0, (ws - h % ws) % ws))
        tall, wide = x.shape[1], x.shape[2]
        mask = torch.zeros((1, tall, wide, 1))
        count = 0
        for hs in (slice(0, -ws), slice(-ws, -shift), slice(-shift, None)):
            for wss in (slice(0, -ws), slice(-ws, -shift), slice(-shift, None)):
                mask[:, hs, wss, :] = count
                count += 1

        def cut(t):
            t = t.view(t.shape[0], tall // ws, ws, wide // ws, ws, t.shape[-1])
            return t.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, ws * ws, t.shape[-1])

        regions = cut(mask).squeeze(-1)
        differ = regions.unsqueeze(1) - regions.unsqueeze(2)
        bias = differ.masked_fill(differ != 0, -100.0).masked_fill(differ == 0, 0.0)
        parts = cut(torch.roll(x, shifts=(-shift, -shift), dims=(1, 2)))
        out = ((parts @ parts.transpose(1, 2)) / 2 + bias).softmax(-1) @ parts
        out = (
            out.view(b, tall // ws, wide // ws, ws, ws, c).permute(0, 1, 3, 2, 4, 5).contiguous().view(b, tall, wide, c)
        )
        return torch.roll(out, shifts=(shift, shift), dims=(1, 2))[:, :h, :w, :].contiguous()


@program({}, {"length": (4, 40)}, x="float 1 length=10 4")
class BlockSparseAttention(nn.Module):
    """Longformer's and BigBird's: blocks see their neighbours; the length is padded to whole blocks."""

    def forward(self, x):
        b, n, d = x.shape
        pad = -n % 4
        if pad:
            x = F.pad(x, (0, 0, 0, pad))
        blocks = x.view(b, -1, 4, d)
        before = torch.cat([torch.zeros_like(blocks[:, :1]), blocks[:, :-1]], 1)
        after = torch.cat([blocks[:, 1:], torch.zeros_like(blocks[:, :1])], 1)
        keys = torch.cat([before, blocks, after], 2)
        scores = blocks @ keys.transpose(-1, -2)
        valid = F.pad(torch.ones(n), (0, pad)).view(1, -1, 4)
        valid = torch.cat([F.pad(valid[:, :-1], (0, 0, 1, 0)), valid, F.pad(valid[:, 1:], (0, 0, 0, 1))], -1)
        scores = scores.masked_fill(valid.unsqueeze(2) == 0, -1e9)
        return (scores.softmax(-1) @ keys).view(b, -1, d)[:, :n]


@program({}, {"length": (2, 30)}, x="float 1 length=7 8")
class GroupedQueries(nn.Module):
    """Llama's: rotary halves, repeated keys, a causal mask of the smallest number."""

    def forward(self, x):
        b, n, _ = x.shape
        q = x.view(b, n, 4, 2).transpose(1, 2)
        k, v = x[..., :4].view(b, n, 2, 2).transpose(1, 2), x[..., 4:].view(b, n, 2, 2).transpose(1, 2)
        angle = torch.outer(torch.arange(n).float(), 1.0 / (100 ** (torch.arange(0, 2, 2).float() / 2)))
        cos, sin = torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()

        def turn(t):
            half = t.shape[-1] // 2
            return t * cos + torch.cat((-t[..., half:], t[..., :half]), -1) * sin

        q, k = turn(q), turn(k)
        k, v = (t[:, :, None].expand(b, 2, 2, n, 2).reshape(b, 4, n, 2) for t in (k, v))
        mask = torch.full((n, n), torch.finfo(x.dtype).min)
        mask = torch.triu(mask, diagonal=1)
        weights = (q @ k.transpose(2, 3) / math.sqrt(2) + mask).softmax(-1, dtype=torch.float32).to(x.dtype)
        return (weights @ v).transpose(1, 2).reshape(b, n, -1)


@program({}, {"height": (2, 12), "width": (2, 12)}, x="float 1 4 height=5 width=6")
class AxialPositions(nn.Module):
    """DETR's sines: a cumulative sum over a mask of ones, scaled by its end."""

    def forward(self, x):
        ones = torch.ones((x.shape[0], *x.shape[2:]))
        y, z = ones.cumsum(1, dtype=torch.float32), ones.cumsum(2, dtype=torch.float32)
        y = y / (y[:, -1:, :] + 1e-6) * 2 * math.pi
        z = z / (z[:, :, -1:] + 1e-6) * 2 * math.pi
        dims = torch.arange(4, dtype=torch.float32)
        dims = 100 ** (2 * torch.div(dims, 2, rounding_mode="floor") / 4)
        found = []
        for t in (y, z):
            t = t[:, :, :, None] / dims
            found.append(torch.stack((t[..., 0::2].sin(), t[..., 1::2].cos()), dim=4).flatten(3))
        return torch.cat(found, dim=3).permute(0, 3, 1, 2) + torch.cat([x, x], 1)


@program({}, {"length": (3, 30)}, x="float 1 4 length=9", mask="mask 1 length=9")
class MaskedInstanceNorm(nn.Module):
    """Speech: statistics of what is not padded; nothing where everything is."""

    def forward(self, x, mask):
        keep = (~mask).float().unsqueeze(1)
        count = keep.sum(-1, keepdim=True).clamp(min=1)
        mean = (x * keep).sum(-1, keepdim=True) / count
        var = (((x - mean) * keep) ** 2).sum(-1, keepdim=True) / count
        pooled = torch.cat([mean, torch.sqrt(var + 1e-5)], 1)
        return (x - mean) / (var + 1e-5).sqrt() * keep, pooled.squeeze(-1)


@program({}, {"frames": (2, 30)}, x="unit 1 8 frames=11")
class LogMel(nn.Module):
    """Whisper's: the logarithm is bounded below its own maximum."""

    def forward(self, x):
        spec = torch.clamp(x * x, min=1e-10).log10()
        spec = torch.maximum(spec, spec.max() - 8.0)
        spec = (spec + 4.0) / 4.0
        delta = F.pad(spec, (1, 1), mode="replicate")
        return spec, (delta[..., 2:] - delta[..., :-2]) / 2
