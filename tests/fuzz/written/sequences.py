"""Programs on sequences: masks and padding, caches, decoding, ragged batches, positions."""

import functools
import itertools
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=3 length=10 4", mask="mask batch=3 length=10")
class MaskedMean(nn.Module):
    def forward(self, x, mask):
        if mask.all():
            return x.mean(1)
        count = mask.sum(1, keepdim=True).clamp(min=1)
        return (x * mask[..., None]).sum(1) / count


@program(x="float batch=3 length=10 4", mask="mask batch=3 length=10")
class TrimToLongest(nn.Module):
    """Cuts a batch to its longest row."""

    def forward(self, x, mask):
        longest = int(mask.sum(1).max())
        x, mask = x[:, :longest], mask[:, :longest]
        return (x * mask[..., None]).sum(1)


@program(x="float batch=3 length=10 4", lengths="10 batch=3")
class PackedByLengths(nn.Module):
    def forward(self, x, lengths):
        return torch.stack([row[:n].sum(0) for row, n in zip(x, lengths.tolist(), strict=True)])


@program(x="float batch=3 length=10 4", lengths="10 batch=3")
class MaskFromLengths(nn.Module):
    def forward(self, x, lengths):
        longest = lengths.max().item()
        mask = torch.arange(longest) < lengths[:, None]
        return (x[:, :longest] * mask[..., None]).sum((1, 2))


@program(x="float batch=3 length=10 4", lengths="10 batch=3")
class MaskFromShape(nn.Module):
    def forward(self, x, lengths):
        mask = torch.arange(x.shape[1])[None] < lengths[:, None]
        return x.masked_fill(~mask[..., None], 0).sum(1)


@program(x="float batch=3 length=10 4", mask="mask batch=3 length=10")
class SkipMaskWhenFull(nn.Module):
    """Transformers' way: no mask at all where nothing is padded."""

    def prepare(self, mask):
        if torch.all(mask == 1):
            return None
        return torch.zeros(mask.shape).masked_fill(~mask, -1e4)

    def forward(self, x, mask):
        bias = self.prepare(mask)
        scores = x @ x.transpose(1, 2)
        if bias is not None:
            scores = scores + bias[:, None]
        return scores.softmax(-1) @ x


@program(x="float batch=3 length=10 4")
class CausalWhenLong(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        mask = None if n == 1 else torch.full((n, n), float("-inf")).triu(1)
        scores = x @ x.transpose(1, 2)
        return ((scores if mask is None else scores + mask).softmax(-1)) @ x


@program(x="float batch=3 length=10 4", past="float batch=3 past=6 4")
class CacheJoined(nn.Module):
    def forward(self, x, past):
        keys = torch.cat([past, x], 1)
        n, m = x.shape[1], keys.shape[1]
        mask = torch.ones(n, m).tril(m - n).bool()
        scores = (x @ keys.transpose(1, 2)).masked_fill(~mask, -1e9)
        return scores.softmax(-1) @ keys, keys


@program(x="float batch=3 length=10 4", past="float batch=3 past=6 4")
class SlidingCache(nn.Module):
    def forward(self, x, past):
        keys = torch.cat([past, x], 1)
        if keys.shape[1] > 12:
            keys = keys[:, -12:]
        return keys


@program(x="float batch=3 length=10 4", past="float batch=3 past=6 4")
class CacheOrFirst(nn.Module):
    """One new token reads the cache; a longer input ignores it."""

    def forward(self, x, past):
        if x.shape[1] == 1 and past.shape[1] > 0:
            return (x * past.mean(1, keepdim=True)).sum(1)
        return x.sum(1)


class Cache(NamedTuple):
    keys: torch.Tensor
    length: int


@program(x="float batch=3 length=10 4")
class StaticCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("store", torch.zeros(1, 24, 4))

    def forward(self, x):
        b, n, _ = x.shape
        store = self.store.expand(b, -1, -1).clone()
        store[:, :n] = x[:, : store.shape[1]]
        cache = Cache(store, min(n, store.shape[1]))
        return cache.keys[:, : cache.length].cumsum(1), cache.keys


@program(x="float batch=3 length=10 4")
class RingBuffer(nn.Module):
    def forward(self, x):
        ring = torch.zeros(x.shape[0], 4, 4)
        for i in range(x.shape[1]):
            ring[:, i % 4] = ring[:, i % 4] * 0.5 + x[:, i]
        return ring


@program(x="float batch=3 length=10 8")
class GreedyDecode(nn.Module):
    """CTC: repeats collapsed, blanks dropped; the length is a matter of values."""

    def forward(self, x):
        best = x[0].argmax(-1)
        keep = torch.cat([best[:1] > 0, (best[1:] != best[:-1]) & (best[1:] > 0)])
        return best[keep]


@program(x="float batch=3 length=10 8")
class GreedyByConsecutive(nn.Module):
    def forward(self, x):
        best = torch.unique_consecutive(x[0].argmax(-1))
        return best[best != 0]


@program(x="float batch=3 length=10 8")
class GreedyLoop(nn.Module):
    def forward(self, x):
        tokens, last = [], -1
        for token in x[0].argmax(-1).tolist():
            if token not in (last, 0):
                tokens.append(token)
            last = token
        return torch.tensor(tokens)


@program(x="float batch=2 12")
class UntilEnd(nn.Module):
    """Decodes until a token 0, at most six times."""

    def __init__(self):
        super().__init__()
        self.step, self.embed = nn.Linear(12, 12), nn.Embedding(12, 12)

    def forward(self, x):
        tokens = []
        for _ in range(6):
            token = self.step(x).argmax(-1)
            tokens.append(token)
            if (token == 0).all():
                break
            x = x + self.embed(token)
        return torch.stack(tokens, 1).sum(1)


@program(x="float batch=2 12")
class FinishedRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.step, self.embed = nn.Linear(12, 4), nn.Embedding(4, 12)

    def forward(self, x):
        done = torch.zeros(x.shape[0], dtype=torch.bool)
        total = torch.zeros(x.shape[0], dtype=torch.long)
        for _ in range(4):
            token = self.step(x).argmax(-1).masked_fill(done, 0)
            total = total + token
            done = done | (token == 0)
            x = x + self.embed(token)
        return total, done


@program(x="float 1 length=8 6")
class BeamSearch(nn.Module):
    def forward(self, x):
        scores, beams = torch.zeros(1), torch.zeros(1, 0, dtype=torch.long)
        for step in x[0].log_softmax(-1):
            total = (scores[:, None] + step).flatten()
            scores, index = total.topk(min(3, total.numel()))
            beams = torch.cat([beams[index // 6], (index % 6)[:, None]], 1)
        return beams[0], scores


@program(x="float batch=2 length=9 4")
class Downsample(nn.Module):
    """A patch merger of a sequence that is padded where its length is odd."""

    def forward(self, x):
        if x.shape[1] % 2:
            x = torch.cat([x, x[:, -1:]], 1)
        return x.reshape(x.shape[0], -1, 2, 4).amax(2)


@program(x="float batch=2 length=9 4")
class LocalAttention(nn.Module):
    def forward(self, x):
        b, n, d = x.shape
        w = 4
        pad = (w - n % w) % w
        y = F.pad(x, (0, 0, 0, pad))
        y = y.view(b, -1, w, d)
        mask = torch.ones(n + pad, dtype=torch.bool)
        if pad:
            mask[-pad:] = False
        scores = (y @ y.transpose(-1, -2)).masked_fill(~mask.view(1, -1, 1, w), -1e9)
        return (scores.softmax(-1) @ y).view(b, -1, d)[:, :n]


@program(x="float batch=2 length=9 4")
class Landmarks(nn.Module):
    """Nystrom attention: means of segments, or everything where it is short."""

    def forward(self, x):
        n, landmarks = x.shape[1], 4
        if n <= landmarks:
            keys = x
        else:
            keep = n // landmarks * landmarks
            keys = x[:, :keep].reshape(x.shape[0], landmarks, -1, 4).mean(2)
        return (x @ keys.transpose(1, 2)).softmax(-1) @ keys


@program(x="float batch=2 length=9 4")
class RelativeBuckets(nn.Module):
    """T5's buckets."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(16, 1)

    def forward(self, x):
        place = torch.arange(x.shape[1])
        distance = (place[None] - place[:, None]).neg().clamp(min=0)
        large = 8 + (torch.log(distance.float().clamp(min=1) / 8) / math.log(4) * 8).long()
        bucket = torch.where(distance < 8, distance, large.clamp(max=15))
        return ((x @ x.transpose(1, 2)) + self.bias(bucket)[..., 0]).softmax(-1) @ x


@program(x="float batch=2 length=9 4")
class RelativeShift(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        table = torch.linspace(-1, 1, 2 * n)[1:]
        scores = x @ x.transpose(1, 2) + 0 * table[0]
        rel = table.expand(n, -1)
        rel = F.pad(rel, (1, 0)).reshape(-1)[n:].reshape(n, 2 * n - 1)[:, :n]
        return (scores + rel).softmax(-1) @ x


@program(x="float batch=2 length=9 4")
class ClippedRelative(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(2 * 12 + 1))

    def forward(self, x):
        place = torch.arange(x.shape[1])
        return x @ x.transpose(1, 2) + self.table[(place[None] - place[:, None]).clamp(-12, 12) + 12]


@program(x="float batch=2 length=9 4")
class AlibiTruncated(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bias", -torch.arange(16).flip(0).float())

    def forward(self, x):
        n = x.shape[1]
        bias = self.bias[-n:] if n <= 16 else -torch.arange(n).flip(0).float()
        return (x @ x.transpose(1, 2) + bias).softmax(-1)


@program(x="float batch=2 length=9 4")
class CachedRotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = -1
        self.cos = None

    def table(self, n):
        if n > self.seen:
            self.seen = n
            self.cos = torch.outer(torch.arange(n).float(), torch.tensor([1.0, 0.1, 0.01, 0.001])).cos()
        return self.cos[:n]

    def forward(self, x):
        return x * self.table(x.shape[1])


@functools.lru_cache(maxsize=8)
def positions(length, width):
    angle = torch.arange(length)[:, None] * torch.exp(-torch.arange(0, width, 2) / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


@program(x="float batch=2 length=9 4")
class LruPositions(nn.Module):
    def forward(self, x):
        return x + positions(x.shape[1], x.shape[2])


@program(x="float batch=2 length=9 4")
class PositionsUpTo(nn.Module):
    """GPT's table of 20 positions: what is longer is the model's own error."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 4)

    def forward(self, x):
        if x.shape[1] > self.table.num_embeddings:
            raise ValueError(f"too long: {x.shape[1]}")
        return x + self.table(torch.arange(x.shape[1]))


@program(x="float batch=2 length=9 4")
class PositionsWrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 4)

    def forward(self, x):
        place = torch.arange(x.shape[1])
        if x.shape[1] > 20:
            place = place % 20
        return x + self.table(place)


@program(x="float batch=2 length=9 4")
class TruncateOrPad(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        x = x[:, :16] if n > 16 else F.pad(x, (0, 0, 0, 16 - n))
        return x.flatten(1)


@program(x="float batch=2 length=9 4")
class RunningState(nn.Module):
    def forward(self, x):
        state, outs = x.new_zeros(x.shape[0], 4), []
        for step in x.unbind(1):
            state = torch.tanh(state * 0.5 + step)
            outs.append(state)
        return torch.stack(outs, 1)


@program(x="float batch=2 length=9 4")
class GruByHand(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 3)

    def forward(self, x):
        h = torch.zeros(len(x), 3)
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
        return h


@program(x="float batch=2 length=9 4")
class LastStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 3, batch_first=True, bidirectional=True)

    def forward(self, x):
        y, h = self.rnn(x)
        return torch.cat([y[:, -1], h[-1], y[:, len(y[0]) // 2]], -1)


@program(x="float batch=2 length=9 4", lengths="9 batch=2")
class PackedRnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 3, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths + 1, batch_first=True, enforce_sorted=False)
        return self.rnn(packed)[1][-1]


@program(x="float batch=2 length=9 4", lengths="9 batch=2")
class GatherLast(nn.Module):
    def forward(self, x, lengths):
        return x.cumsum(1)[torch.arange(len(x)), lengths]


@program(tokens="30 batch=2 length=9")
class FirstEndToken(nn.Module):
    """Pools at the end of the text: CLIP's two ways."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 4)

    def forward(self, tokens):
        x = self.embed(tokens).cumsum(1)
        rows = torch.arange(tokens.shape[0])
        if (tokens == 29).any():
            return x[rows, (tokens == 29).int().argmax(1)]
        return x[rows, tokens.argmax(1)]


@program(tokens="30 batch=2 length=9")
class PaddingPositions(nn.Module):
    """RoBERTa's positions, which count what is not padded."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(600, 4)

    def forward(self, tokens):
        mask = tokens.ne(1).int()
        return self.table((mask.cumsum(1).type_as(mask) * mask).long() + 1)


@program(tokens="30 batch=2 length=9")
class LeftPadded(nn.Module):
    """LLaVA asks whether the padding is on the left."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 4)

    def forward(self, tokens):
        x = self.embed(tokens)
        left = not torch.sum(tokens[:, -1] == torch.tensor(0))
        return x[:, -1] if left else x[:, 0]


@program(tokens="30 batch=2 length=9", image="float patches=5 4")
class InsertImage(nn.Module):
    """Image features in place of the tokens 7."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 4)

    def forward(self, tokens, image):
        x = self.embed(tokens)
        place = tokens == 7
        count = int(place.sum())
        if count == 0:
            return x
        x = x.clone()
        x[place] = image.mean(0)
        return x * count


@program(tokens="30 batch=2 length=9")
class MaskedScatter(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 4)

    def forward(self, tokens):
        x = self.embed(tokens)
        place = (tokens < 3)[..., None].expand_as(x)
        source = torch.arange(x.numel()).float()
        return x.masked_scatter(place, source)


@program(tokens="30 length=9")
class CountTokens(nn.Module):
    def forward(self, tokens):
        return torch.bincount(tokens, minlength=8).sum() + tokens.unique().numel()


@program(tokens="30 batch=2 length=9")
class RepeatPenalty(nn.Module):
    def forward(self, tokens):
        scores = torch.linspace(-1, 1, 30).expand(tokens.shape[0], -1)
        score = scores.gather(1, tokens)
        score = torch.where(score < 0, score * 1.2, score / 1.2)
        return scores.scatter(1, tokens, score)


@program(tokens="5 batch=2 length=9")
class NoRepeat(nn.Module):
    """Bans the token that followed the last one before."""

    def forward(self, tokens):
        scores = torch.zeros(tokens.shape[0], 5)
        for i, row in enumerate(tokens.tolist()):
            for a, b in itertools.pairwise(row):
                if a == row[-1]:
                    scores[i, b] = -1e4
        return scores


@program(x="float batch=2 length=9 4", mask="mask batch=2 length=9")
class Unpad(nn.Module):
    """Works on what is not padded only, as flash attention does."""

    def forward(self, x, mask):
        index = mask.flatten().nonzero().flatten()
        flat = x.flatten(0, 1)
        kept = flat[index] * 2
        out = torch.zeros_like(flat)
        out[index] = kept
        longest = mask.sum(1).max()
        return out.view_as(x) + longest


@program(x="float batch=2 length=9 4", mask="mask batch=2 length=9")
class UnpadOrNot(nn.Module):
    def forward(self, x, mask):
        flat = x[mask]
        if flat.shape[0] == x.shape[0] * x.shape[1]:
            return x.mean((0, 1))
        return flat.sum(0)


@program(x="float batch=2 length=9 4", mask="mask batch=2 length=9")
class FirstPadded(nn.Module):
    def forward(self, x, mask):
        for i in range(x.shape[1]):
            if not mask[:, i].any():
                return x[:, : i + 1].sum(1)
        return x.sum(1) * 2


@program(durations="4 length=9", x="float length=9 4")
class LengthRegulator(nn.Module):
    """Text to speech: each phone as often as it lasts."""

    def forward(self, durations, x):
        y = torch.repeat_interleave(x, durations, dim=0)
        return y if y.shape[0] > 0 else x[:1]


@program(durations="4 length=9", x="float length=9 4")
class LengthRegulatorPadded(nn.Module):
    def forward(self, durations, x):
        if durations.sum() == 0:
            durations = torch.ones_like(durations)
        y = torch.repeat_interleave(x, durations, dim=0)
        return F.pad(y, (0, 0, 0, max(0, 12 - y.shape[0])))


@program(x="float batch=2 1 samples=64")
class Frames(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        if n < 16:
            x = F.pad(x, (0, 16 - n))
        elif (n - 16) % 8:
            x = F.pad(x, (0, 8 - (n - 16) % 8))
        frames = x.unfold(-1, 16, 8)
        return frames.pow(2).mean(-1)


@program(x="float batch=2 1 samples=64")
class CenteredFrames(nn.Module):
    def forward(self, x):
        mode = "reflect" if x.shape[-1] > 8 else "constant"
        x = F.pad(x, (8, 8), mode=mode)
        return x.unfold(-1, 16, 4).amax(-1)


@program(x="float batch=2 samples=64")
class NormalizeOrSilence(nn.Module):
    def forward(self, x):
        peak = x.abs().max()
        return x / peak if peak > 1e-4 else x


@program(x="float batch=2 samples=64")
class SplitIntoSeconds(nn.Module):
    def forward(self, x):
        whole, rest = divmod(x.shape[1], 16)
        y = x[:, : whole * 16].reshape(x.shape[0], whole, 16).sum(-1)
        if rest > 8:
            y = torch.cat([y, x[:, whole * 16 :].sum(1, keepdim=True)], 1)
        return y


@program(x="float batch=2 length=9 4")
class ChunkedWithCarry(nn.Module):
    def forward(self, x):
        carry, outs = torch.zeros(x.shape[0], 1, 4), []
        for chunk in x.split(4, 1):
            y = chunk.cumsum(1) + carry
            carry = y[:, -1:] * 0.5
            outs.append(y)
        return torch.cat(outs, 1)


@program(x="float batch=2 length=9 4")
class ReversedInPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        n = y.shape[1]
        for i in range(n // 2):
            y[:, i], y[:, n - 1 - i] = y[:, n - 1 - i].clone(), y[:, i].clone()
        return y


@program(x="float batch=2 length=9 4")
class ViewWrites(nn.Module):
    def forward(self, x):
        y = torch.zeros(x.shape[0], max(x.shape[1], 12), 4)
        window = y[:, : x.shape[1]]
        window += x
        window[..., 0].mul_(2)
        y[:, -1] = window[:, 0]
        return y


@program(x="float batch=2 length=9 4")
class SpecialTokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.cls = nn.Parameter(torch.randn(1, 1, 4))

    def forward(self, x):
        y = torch.cat([self.cls.expand(len(x), -1, -1), x], 1)
        y = y[:, ::2] if y.shape[1] > 12 else y
        return y.softmax(1)


@program(x="float batch=2 length=9 4")
class Teacher(nn.Module):
    """A generator function hands out the pieces."""

    def pieces(self, x):
        start, size = 0, 1
        while start < x.shape[1]:
            yield x[:, start : start + size].sum(1)
            start, size = start + size, size * 2

    def forward(self, x):
        return torch.stack(list(self.pieces(x)), 1)


@program(x="float batch=2 length=9 4")
class DropLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if x.shape[1] < 8 and i % 2:
                continue
            x = layer(x)
        return x


@program(x="float batch=2 length=9 4")
class EarlyExit(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if x.softmax(-1).amax(-1).min() > 0.3:
                break
        return x


@program(x="float batch=2 length=9 4")
class AdaptiveSteps(nn.Module):
    def forward(self, x):
        halted, steps = torch.zeros(x.shape[:2]), 0
        while halted.min() < 1 and steps < 5:
            halted = halted + x.mean(-1).sigmoid()
            steps += 1
        return halted * steps


@program(x="float batch=2 length=9 4")
class NewtonUntilClose(nn.Module):
    def forward(self, x):
        y = torch.ones_like(x)
        target = x.abs() + 0.1
        for _ in range(8):
            new = 0.5 * (y + target / y)
            if (new - y).abs().max() < 1e-2:
                return new
            y = new
        return y
