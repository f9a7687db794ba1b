"""Programs that index, scatter, select, order and accumulate, at sizes 1 and at ties, and that rearrange memory."""

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=3 length=6 4")
class BroadcastIndices(nn.Module):
    def forward(self, x):
        rows = torch.arange(x.shape[0])[:, None]
        places = torch.tensor([[0, -1, 2]])
        return x[rows, places % x.shape[1]], x[:, [0, -1]], x[rows, :, torch.tensor([1, 2])], x[..., [[0], [1]], None]


@program(x="float batch=3 length=6 4")
class SeparatedIndices(nn.Module):
    """Advanced indices with a slice between them: the new axis comes first."""

    def forward(self, x):
        i = torch.tensor([0, -1, 0])
        return x[i, :, i], x[:, i, 1], x[i, 1:, i + 1], x[None, i, :, 0]


@program(x="float batch=3 length=6 4")
class IndexPut(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, torch.tensor([0, -1]), 1:3] = 5
        y[torch.arange(x.shape[0]), 0] += 1
        y[..., -1][x[..., 0] > 0] = -1
        y[x < -1] = x[x < -1] * 2
        return y


@program(x="float batch=3 length=6", index="6 batch=3 4")
class ScatterDuplicates(nn.Module):
    def forward(self, x, index):
        index = index % x.shape[1]
        y = torch.zeros_like(x)
        add = y.scatter_add(1, index, x[:, :1].expand(-1, 4))
        most = y.scatter_reduce(1, index, x[:, :1].expand(-1, 4) * torch.arange(4), "amax", include_self=False)
        mean = x.scatter_reduce(1, index, torch.ones(4).expand(x.shape[0], 4), "mean")
        return add, most, mean


@program(x="float batch=3 length=6", index="5 count=7")
class IndexAddTwice(nn.Module):
    def forward(self, x, index):
        out = x.new_zeros(5, x.shape[0])
        out.index_add_(0, index, torch.ones(index.shape[0], x.shape[0]), alpha=0.5)
        counts = torch.zeros(5).scatter_add_(0, index, torch.ones(index.shape[0]))
        out = out / counts.clamp(min=1)[:, None]
        return out, counts, out.index_copy(0, torch.tensor([3, 1]), x[:, :2].T)


@program(x="float count=12 4", batch="3 count=12")
class GraphPooling(nn.Module):
    """Mean and maximum by graph, the number of graphs from the values."""

    def forward(self, x, batch):
        n = int(batch.max()) + 1
        total = x.new_zeros(n, 4).index_add(0, batch, x)
        count = x.new_zeros(n).index_add(0, batch, x.new_ones(len(batch))).clamp(min=1)
        most = x.new_full((n, 4), float("-inf")).scatter_reduce(0, batch[:, None].expand(-1, 4), x, "amax")
        return total / count[:, None], most.clamp(min=-99)


@program(x="float nodes=5 4", a="5 edges=9", b="5 edges=9")
class MessagePassing(nn.Module):
    def forward(self, x, a, b):
        a, b = a % x.shape[0], b % x.shape[0]
        score = (x[a] * x[b]).sum(-1)
        most = torch.full((x.shape[0],), -1e9).scatter_reduce(0, b, score, "amax")
        weight = (score - most[b]).exp()
        total = torch.zeros(x.shape[0]).index_add(0, b, weight)
        weight = weight / total[b]
        return torch.zeros_like(x).index_add(0, b, x[a] * weight[:, None]), torch.bincount(b, minlength=x.shape[0])


@program(x="float batch=3 length=6 4")
class NegativeSteps(nn.Module):
    def forward(self, x):
        return x.flip(1)[:, ::2], x[:, ::3], x[:, 1::2].flip(0, -1), x[:, -3:-1], x[:, :-2], x[:, -100:2]


@program(x="float batch=3 length=6 4")
class SlicesAroundZero(nn.Module):
    def forward(self, x):
        n = x.shape[1] // 4
        return x[:, n:], x[:, :-n], x[:, -n:], x[:, : x.shape[1] - n]


@program(x="float batch=3 length=6")
class RollByHalf(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return x.roll(n // 2, 1), x.roll((1, -2), (0, 1)), x.roll(5), torch.fft.fftshift(x, 1), x.roll(-n + 1, 1)


@program(x="float batch=3 length=6")
class TiesOfTopK(nn.Module):
    def forward(self, x):
        y = x.round()
        values = y.topk(1, -1).values
        return (
            values,
            y.argmax(-1),
            y.argmin(-1),
            y.argsort(dim=-1, stable=True),
            y.argsort(dim=-1, descending=True, stable=True),
        )


@program(x="float batch=3 length=6")
class MedianMode(nn.Module):
    def forward(self, x):
        return x.median(-1).values, x.kthvalue(1, -1).values, x.quantile(0.3, -1), x.nanquantile(0.5, -1)


@program(x="float batch=3 length=6")
class Quantiles(nn.Module):
    def forward(self, x):
        low, high = x.quantile(0.1, -1, interpolation="lower"), x.quantile(0.9, -1, interpolation="higher")
        return low, high, x.quantile(0.4, -1, interpolation="nearest"), x.quantile(0.6, -1, keepdim=True)


@program(x="float batch=3 length=6")
class KthOfSize(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return x.kthvalue((n + 1) // 2, -1).values, x.topk(max(1, n // 3), -1).values, x.topk(min(5, n)).values.sum(-1)


@program(x="float batch=3 length=6")
class Cumulative(nn.Module):
    def forward(self, x):
        y = x.clamp(-2, 2)
        return (
            y.cumsum(1),
            y.tanh().cumprod(1),
            x.cummax(1).values,
            x.cummin(1).values,
            y.logcumsumexp(1),
            y.flip(1).cumsum(1).flip(1),
            y.diff(dim=1),
            x.cummax(0).indices,
        )


@program(x="float batch=3 length=6")
class DiffAndPrepend(nn.Module):
    def forward(self, x):
        return x.diff(dim=1, prepend=x[:, :1]), x.diff(n=2, dim=0), x[:, 1:] - x[:, :-1]


@program(x="float batch=3 length=6")
class Trapezoid(nn.Module):
    def forward(self, x):
        return (
            torch.trapezoid(x, dx=0.5),
            torch.cumulative_trapezoid(x),
            torch.trapz(x, torch.linspace(0, 1, x.shape[1])),
        )


@program(x="float batch=3 length=6", edges="float 5")
class SearchSorted(nn.Module):
    def forward(self, x, edges):
        edges = edges.sort().values
        return (
            torch.searchsorted(edges, x),
            torch.bucketize(x, edges, right=True),
            torch.searchsorted(edges, x, side="right"),
        )


@program(x="float batch=3 length=6")
class Histograms(nn.Module):
    def forward(self, x):
        return torch.histc(x.clamp(-3, 3), 5, -3, 3), torch.bucketize(x, torch.linspace(-1, 1, 4))


@program(x="5 batch=3 length=6")
class UniqueInverse(nn.Module):
    def forward(self, x):
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        return values, inverse, counts, torch.unique_consecutive(x.flatten())


@program(x="5 batch=3 length=6")
class IsIn(nn.Module):
    def forward(self, x):
        return (
            torch.isin(x, torch.tensor([1, 3])),
            torch.isin(x, 2, invert=True),
            (x[:, :, None] == torch.tensor([0, 4])).any(-1),
        )


@program(x="float batch=3 length=6")
class MaskedSelectCount(nn.Module):
    def forward(self, x):
        kept = x[x > 0]
        return (
            kept.sum(),
            kept.numel() + 0 * x.sum(),
            x.masked_fill(x > 1, 1),
            x.masked_scatter(x < 0, x.abs()),
            kept.sort().values,
        )


@program(x="float batch=3 length=6 4")
class EmptyParts(nn.Module):
    def forward(self, x):
        none = x[:, :0]
        return (
            torch.cat([none, x, none], 1),
            none.sum(1),
            torch.stack([none.sum(1), x.sum(1)]),
            none.shape[1] + x.mean(),
        )


@program(x="float batch=3 length=6 4")
class EmptySelection(nn.Module):
    def forward(self, x):
        kept = x[x.mean((1, 2)) > 1.5]
        return kept.sum(0), torch.cat([kept, x[:1]]).mean(0), kept.flatten(1)


@program(x="float batch=3 length=6 4")
class EinsumDiagonals(nn.Module):
    def forward(self, x):
        g = torch.einsum("bld,bmd->blm", x, x)
        return (
            torch.einsum("bll->bl", g),
            torch.einsum("bll->b", g),
            torch.einsum("...ld->...", x),
            torch.einsum("bld->", x),
        )


@program(x="float batch=3 length=6 4")
class EinsumOrders(nn.Module):
    def forward(self, x):
        w = torch.arange(8.0).view(4, 2)
        return (
            torch.einsum("bld,dk->lbk", x, w),
            torch.einsum("bld,bmd,dk->blmk", x, x, w),
            torch.einsum(x, [0, 1, 2], [2, 0]),
        )


@program(x="float batch=3 length=6 4")
class AsStrided(nn.Module):
    def forward(self, x):
        y = x.contiguous()
        return y.as_strided((2, 2), (4, 1)), y.unfold(2, 2, 1), y.unfold(1, 1, 1)


@program(x="float batch=3 length=9")
class UnfoldFrames(nn.Module):
    def forward(self, x):
        frames = F.pad(x, (0, max(0, 4 - x.shape[1]))).unfold(1, 4, 2)
        return frames * torch.hann_window(4), frames.shape[1] + x.sum()


@program(x="float batch=2 3 height=6 width=7")
class UnfoldFold(nn.Module):
    def forward(self, x):
        h, w = x.shape[2:]
        patches = F.unfold(x, 3, padding=1, stride=1)
        return F.fold(patches, (h, w), 3, padding=1) / 9, patches.sum(1)


@program(x="float batch=2 3 height=6 width=7")
class PixelShuffles(nn.Module):
    def forward(self, x):
        y = F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2))
        down = F.pixel_unshuffle(y, 2)
        return down, F.pixel_shuffle(down, 2)[:, :, : x.shape[2]], F.channel_shuffle(down, 3)


@program(x="float batch=2 4 height=6 width=7")
class ChannelsLast(nn.Module):
    def forward(self, x):
        y = x.to(memory_format=torch.channels_last)
        z = y.permute(0, 2, 3, 1).reshape(-1, 4)
        return z, y.flatten(), y.permute(0, 2, 3, 1).contiguous().view(x.shape[0], -1), y.reshape(-1)[::2]


@program(x="float batch=2 4 height=6 width=7")
class StrideDecides(nn.Module):
    def forward(self, x):
        if x.transpose(1, 2).is_contiguous():
            return x * 2
        return x.mT.reshape(x.shape[0], -1) + x.stride(0)


@program(x="float batch=3 length=6 2")
class ComplexViews(nn.Module):
    def forward(self, x):
        z = torch.view_as_complex(x.contiguous())
        w = z * torch.exp(1j * torch.arange(x.shape[1]))
        return torch.view_as_real(w), w.abs(), w.angle().cos(), w.conj().imag, (w * w.conj()).real, z.real + z.imag


@program(x="float batch=3 length=8")
class Spectrum(nn.Module):
    def forward(self, x):
        z = torch.fft.rfft(x, dim=1)
        return z.abs(), torch.fft.irfft(z * 2, n=x.shape[1], dim=1), torch.fft.rfftfreq(x.shape[1])


@program(x="float batch=3 length=6")
class MeshAndGrid(nn.Module):
    def forward(self, x):
        a, b = torch.meshgrid(torch.arange(x.shape[0]), torch.arange(x.shape[1]), indexing="ij")
        c, d = torch.meshgrid(torch.linspace(-1, 1, x.shape[1]), torch.arange(float(x.shape[0])), indexing="xy")
        return x + a - b, c + d, torch.cartesian_prod(torch.arange(x.shape[0]), torch.arange(2))


@program(x="float batch=3 length=6")
class Triangles(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        i = torch.triu_indices(n, n, 1)
        return (
            x[:, i[0]] * x[:, i[1]],
            torch.tril(x[:, :, None] * x[:, None], -1),
            torch.ones(n, n).triu(2 - n),
            torch.eye(n, n + 2),
        )


@program(x="float batch=3 length=6")
class Diagonal(nn.Module):
    def forward(self, x):
        d = torch.diag_embed(x, offset=1)
        return (
            d.diagonal(offset=1, dim1=-2, dim2=-1),
            x.diagonal(),
            x.diag(1),
            x.diagonal(-1).sum(),
            torch.block_diag(x, x),
        )


@program(x="float batch=3 length=6")
class LinspaceSteps(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return torch.linspace(-1, 1, n), torch.arange(0, 1, 1 / n)[:n], torch.arange(n, 0, -2), torch.logspace(0, 1, n)


@program(x="float batch=3 length=6")
class ArangeFloat(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return (
            torch.arange(0.5, n, 1.5),
            torch.arange(0, n, 0.1).sum(),
            torch.arange(n / 3),
            (torch.arange(n) + 0.5) / n,
        )


@program(x="float batch=3 length=6")
class PairwiseDistances(nn.Module):
    def forward(self, x):
        return (
            torch.cdist(x, x),
            F.pdist(x),
            F.cosine_similarity(x[:, None], x[None], -1),
            (x[:, None] - x).norm(dim=-1),
        )


@program(x="float batch=3 length=6")
class RepeatInterleave(nn.Module):
    def forward(self, x):
        return x.repeat_interleave(2, 0), x.repeat_interleave(x.shape[0], 1), x.repeat(2, 1, x.shape[0]), x.tile(3)


@program(x="float batch=3 length=6", counts="4 batch=3")
class RepeatByCounts(nn.Module):
    def forward(self, x, counts):
        return x.repeat_interleave(counts, 0), torch.repeat_interleave(counts), counts.sum()


@program(x="float batch=3 length=6", start="6 batch=3")
class SliceByTensor(nn.Module):
    def forward(self, x, start):
        places = (start[:, None] + torch.arange(3)).clamp(max=x.shape[1] - 1)
        return (
            x.gather(1, places),
            torch.take_along_dim(x, places, 1),
            x.index_select(1, start.clamp(max=x.shape[1] - 1)),
        )


@program(x="float batch=3 length=6")
class NarrowAndSelect(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return (
            x.narrow(1, n // 2, n - n // 2),
            x.select(1, -1),
            x.movedim(0, 1),
            x.swapaxes(0, 1),
            x.unflatten(0, (1, -1)),
        )


@program(x="float batch=3 length=6")
class SplitUnevenly(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        a, b = x.split([n // 3, n - n // 3], 1)
        c, d = x.tensor_split(2, 1)
        return b, a, d, c, *torch.hsplit(F.pad(x, (0, n % 2)), 2)


@program(x="float batch=3 4 length=6")
class ChunkOfThree(nn.Module):
    def forward(self, x):
        return [part.sum(-1) for part in x.chunk(3, -1)]


@program(x="float batch=3 4 length=6")
class GluOddLength(nn.Module):
    def forward(self, x):
        return F.glu(x, 1), F.glu(F.pad(x, (0, x.shape[-1] % 2)), -1)
