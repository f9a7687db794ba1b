"""Programs after the idioms of large code bases: containers of boxes, caches by size, tables of layers, outputs."""

import copy
import math
from collections import OrderedDict
from dataclasses import dataclass, fields
from functools import lru_cache, partial, reduce
from itertools import chain, product, zip_longest
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


# Detectors: levels, anchors, containers


def multi_apply(function, *args, **kwargs):
    """A function over levels; a list for each result."""
    return tuple(map(list, zip(*map(partial(function, **kwargs) if kwargs else function, *args), strict=False)))


@program({}, {"height": (16, 48), "width": (16, 48)}, x="float 1 3 height=32 width=40")
class LevelsApplied(nn.Module):
    """A head over a pyramid by multi_apply, scales as parameters of each level, joined."""

    def __init__(self):
        super().__init__()
        self.stem = nn.ModuleList([nn.Conv2d(3 if i == 0 else 8, 8, 3, stride=2, padding=1) for i in range(3)])
        self.classes, self.boxes = nn.Conv2d(8, 5, 1), nn.Conv2d(8, 4, 1)
        self.scales = nn.ParameterList([nn.Parameter(torch.tensor(1.0 + i)) for i in range(3)])

    def level(self, x, scale, stride, clamp=True):
        boxes = self.boxes(x) * scale
        boxes = boxes.clamp(min=0) * stride if clamp else boxes.exp()
        return self.classes(x), boxes, x.new_full((x.size(2) * x.size(3),), stride)

    def points(self, size, stride, dtype):
        h, w = size
        y, x = torch.meshgrid(torch.arange(h, dtype=dtype), torch.arange(w, dtype=dtype), indexing="ij")
        return torch.stack([x.reshape(-1) * stride + stride // 2, y.reshape(-1) * stride + stride // 2], -1)

    def forward(self, x):
        maps = []
        for stage in self.stem:
            x = stage(x).relu()
            maps.append(x)
        strides = [2 ** (i + 1) for i in range(len(maps))]
        classes, boxes, given = multi_apply(self.level, maps, self.scales, strides, clamp=True)
        sizes = [m.size()[-2:] for m in maps]
        points = torch.cat([self.points(s, stride, x.dtype) for s, stride in zip(sizes, strides, strict=True)])
        flat = torch.cat([b.permute(0, 2, 3, 1).reshape(1, -1, 4) for b in boxes], 1)
        scores = torch.cat([c.flatten(2).transpose(1, 2) for c in classes], 1).sigmoid()
        corners = torch.stack([points[:, 0] - flat[..., 0], points[:, 1] - flat[..., 1]], -1)
        return corners, scores, torch.cat(given)


class Fields:
    """Fields of one image's objects, with one length."""

    def __init__(self, size, **values):
        self._size, self._fields = size, {}
        for name, value in values.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        if name.startswith("_"):
            super().__setattr__(name, value)
            return
        if len(self._fields):
            assert len(self) == len(value), f"{name} has {len(value)} and the others {len(self)}"
        self._fields[name] = value

    def __getattr__(self, name):
        if name == "_fields" or name not in self._fields:
            raise AttributeError(name)
        return self._fields[name]

    def __len__(self):
        return next(iter(self._fields.values())).shape[0]

    def __getitem__(self, item):
        return Fields(self._size, **{name: value[item] for name, value in self._fields.items()})

    @staticmethod
    def cat(parts):
        if len(parts) == 1:
            return parts[0]
        return Fields(parts[0]._size, **{k: torch.cat([p._fields[k] for p in parts]) for k in parts[0]._fields})


@program({}, {"count": (1, 40)}, boxes="unit count=7 4", scores="unit count=7")
class FieldsFiltered(nn.Module):
    """Objects in a container with checks of lengths, filtered by a mask, cut to a number, joined."""

    def forward(self, boxes, scores):
        objects = Fields((20, 30), boxes=boxes * 30, scores=scores)
        objects.levels = torch.zeros_like(scores, dtype=torch.int64)
        wide = objects[(objects.boxes[:, 2] > 3) & (objects.scores > 0.2)]
        both = Fields.cat([wide, objects[objects.scores.sort(descending=True)[1][:3]]])
        return both.boxes, both.scores, both.levels


class ImageBatch:
    """Images in one tensor, and their sizes."""

    def __init__(self, tensor, sizes):
        self.tensor, self.sizes = tensor, sizes

    @staticmethod
    def of(images, divisor=0, value=0.0):
        sizes = [(im.shape[-2], im.shape[-1]) for im in images]
        top = [max(s[0] for s in sizes), max(s[1] for s in sizes)]
        if divisor > 1:
            top = [(n + divisor - 1) // divisor * divisor for n in top]
        if len(images) == 1:
            h, w = sizes[0]
            return ImageBatch(F.pad(images[0], [0, top[1] - w, 0, top[0] - h], value=value).unsqueeze(0), sizes)
        batch = images[0].new_full((len(images), images[0].shape[0], *top), value)
        for i, image in enumerate(images):
            batch[i, :, : image.shape[-2], : image.shape[-1]].copy_(image)
        return ImageBatch(batch.contiguous(), sizes)

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        h, w = self.sizes[i]
        return self.tensor[i, ..., :h, :w]


@program(
    {}, {"height": (4, 40), "width": (4, 40), "tall": (4, 40)}, one="float 3 height=9 width=13", two="float 3 tall=11 9"
)
class ImagesJoined(nn.Module):
    """Two images of two sizes in a batch whose sides a number divides, and out of it again."""

    def forward(self, one, two):
        images = ImageBatch.of([one - one.mean(), two], divisor=8)
        x = F.avg_pool2d(images.tensor, 2)
        return x, images[0], images[len(images) - 1], ImageBatch.of([two], 4, 0.5).tensor


@program({}, {"height": (8, 40), "width": (8, 40)}, x="float batch=2 4 height=16 width=12")
class GridMadeAnew(nn.Module):
    """A detection layer that makes its grid again where the map's size is another."""

    def __init__(self):
        super().__init__()
        self.grid, self.anchor_grid = [torch.empty(0)], [torch.empty(0)]
        self.register_buffer("anchors", torch.tensor([[1.0, 2.0], [3.0, 1.5]]))
        self.conv = nn.Conv2d(4, 14, 1)
        self.dynamic, self.inplace = False, True

    def make(self, nx, ny, dtype):
        shape = 1, 2, ny, nx, 2
        yv, xv = torch.meshgrid(torch.arange(ny, dtype=dtype), torch.arange(nx, dtype=dtype), indexing="ij")
        grid = torch.stack((xv, yv), 2).expand(shape) - 0.5
        return grid, (self.anchors * 8).view((1, 2, 1, 1, 2)).expand(shape)

    def forward(self, x):
        x = self.conv(x)
        bs, _, ny, nx = x.shape
        x = x.view(bs, 2, 7, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
        if self.dynamic or self.grid[0].shape[2:4] != x.shape[2:4]:
            self.grid[0], self.anchor_grid[0] = self.make(nx, ny, x.dtype)
        y = x.sigmoid()
        if self.inplace:
            y[..., 0:2] = (y[..., 0:2] * 2 + self.grid[0]) * 8
            y[..., 2:4] = (y[..., 2:4] * 2) ** 2 * self.anchor_grid[0]
        return y.view(bs, 2 * nx * ny, 7), x


@program({}, {"height": (4, 24), "width": (4, 24)}, x="float 2 8 height=10 width=9", mask="mask 2 height=10 width=9")
class SinePositions(nn.Module):
    """DETR's: positions from the running sums of what is not masked, normalised."""

    def forward(self, x, mask):
        seen = (~mask).to(torch.float32)
        y, z = seen.cumsum(1), seen.cumsum(2)
        y, z = y / (y[:, -1:, :] + 1e-6) * 2 * math.pi, z / (z[:, :, -1:] + 1e-6) * 2 * math.pi
        dim = torch.arange(4, dtype=torch.float32)
        dim = 100 ** (2 * torch.div(dim, 2, rounding_mode="floor") / 4)
        z, y = z[:, :, :, None] / dim, y[:, :, :, None] / dim
        z = torch.stack((z[:, :, :, 0::2].sin(), z[:, :, :, 1::2].cos()), dim=4).flatten(3)
        y = torch.stack((y[:, :, :, 0::2].sin(), y[:, :, :, 1::2].cos()), dim=4).flatten(3)
        return x + torch.cat((y, z), dim=3).permute(0, 3, 1, 2)


@program({}, {"height": (4, 24), "width": (4, 24)}, x="float 2 6 height=8 width=12", points="unit 2 5 2")
class LevelsSampled(nn.Module):
    """Deformable attention's: values of several levels in one axis, cut by their sizes, sampled."""

    def __init__(self):
        super().__init__()
        self.offsets, self.weights = nn.Linear(6, 2 * 2 * 2 * 2), nn.Linear(6, 2 * 2 * 2)
        self.query = nn.Parameter(torch.randn(5, 6))
        nn.init.normal_(self.offsets.weight, std=0.02)

    def forward(self, x, points):
        maps = [x, F.avg_pool2d(x, 2)]
        shapes = torch.as_tensor([m.shape[-2:] for m in maps], dtype=torch.long)
        starts = torch.cat((shapes.new_zeros((1,)), shapes.prod(1).cumsum(0)[:-1]))
        value = torch.cat([m.flatten(2).transpose(1, 2) for m in maps], 1)
        n, length, _ = value.shape
        value = value.view(n, length, 2, 3)
        query = self.query[None].expand(n, -1, -1)
        offsets = self.offsets(query).view(n, 5, 2, 2, 2, 2)
        weights = self.weights(query).view(n, 5, 2, 4).softmax(-1).view(n, 5, 2, 2, 2)
        norm = torch.stack([shapes[..., 1], shapes[..., 0]], -1)
        where = points[:, :, None, None, None, :] + offsets / norm[None, None, None, :, None, :]
        found = []
        for level, (h, w) in enumerate([m.shape[-2:] for m in maps]):
            part = value[:, starts[level] : starts[level] + h * w]
            part = part.flatten(2).transpose(1, 2).reshape(n * 2, 3, h, w)
            grid = 2 * where[:, :, :, level].transpose(1, 2).flatten(0, 1) - 1
            found.append(F.grid_sample(part, grid, padding_mode="zeros", align_corners=False))
        weights = weights.transpose(1, 2).reshape(n * 2, 1, 5, 4)
        return (torch.stack(found, dim=-2).flatten(-2) * weights).sum(-1).view(n, 6, 5).transpose(1, 2)


# Caches by size, and what is made again


@program({}, {"height": (4, 24), "width": (4, 24)}, x="float 1 2 height=8 width=9", flow="float 1 2 height=8 width=9")
class WarpByTable(nn.Module):
    """A grid from a table whose key is a text of the size."""

    def __init__(self):
        super().__init__()
        self.table = {}

    def forward(self, x, flow):
        key = (str(flow.device), str(flow.size()))
        if key not in self.table:
            w = torch.linspace(-1.0, 1.0, flow.shape[3]).view(1, 1, 1, -1).expand(1, -1, flow.shape[2], -1)
            h = torch.linspace(-1.0, 1.0, flow.shape[2]).view(1, 1, -1, 1).expand(1, -1, -1, flow.shape[3])
            self.table[key] = torch.cat([w, h], 1)
        step = [flow[:, 0:1] / ((x.shape[3] - 1.0) / 2.0), flow[:, 1:2] / ((x.shape[2] - 1.0) / 2.0)]
        grid = (self.table[key] + torch.cat(step, 1)).permute(0, 2, 3, 1)
        return F.grid_sample(x, grid, padding_mode="border", align_corners=True)


@program({}, {"height": (4, 33), "width": (4, 33)}, x="float batch=1 4 height=8 width=8")
class WindowMask(nn.Module):
    """Windows, shifted, with a mask that is a buffer for one size and made for others."""

    def __init__(self):
        super().__init__()
        self.window, self.shift, self.size = 4, 2, (8, 8)
        self.register_buffer("mask", self.make(self.size))
        self.qkv = nn.Linear(4, 12)

    def make(self, size):
        h, w = size
        regions = torch.zeros((1, h, w, 1))
        cuts = (slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None))
        for count, (rows, columns) in enumerate(product(cuts, cuts)):
            regions[:, rows, columns, :] = count
        parts = self.partition(regions).squeeze(-1)
        mask = parts.unsqueeze(1) - parts.unsqueeze(2)
        return mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0)

    def partition(self, x):
        b, h, w, c = x.shape
        x = x.view(b, h // 4, 4, w // 4, 4, c)
        return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 16, c)

    def forward(self, x):
        h0, w0 = x.shape[2:]
        x = F.pad(x, (0, (4 - w0 % 4) % 4, 0, (4 - h0 % 4) % 4), "constant").permute(0, 2, 3, 1)
        b, h, w, c = x.shape
        parts = self.partition(torch.roll(x, shifts=(-2, -2), dims=(1, 2)))
        q, k, v = self.qkv(parts).chunk(3, -1)
        scores = q @ k.transpose(-2, -1) * 0.5
        mask = self.mask if self.size == (h, w) else self.make((h, w)).to(x.device)
        count = mask.shape[0]
        scores = (scores.view(b, count, 16, 16) + mask.unsqueeze(0)).view(-1, 16, 16).softmax(-1)
        x = (scores @ v).view(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        x = torch.roll(x, shifts=(2, 2), dims=(1, 2))[:, :h0, :w0]
        return x.permute(0, 3, 1, 2)


@program({}, {"height": (6, 40), "width": (6, 40)}, x="float 1 3 height=10 width=14")
class ReflectedToMultiple(nn.Module):
    """An image restorer's: reflected up to a multiple, twice the size, cut."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PixelShuffle(2))
        self.register_buffer("mean", torch.tensor([0.4, 0.5, 0.3]).view(1, 3, 1, 1))

    def forward(self, x):
        h, w = x.shape[2:]
        right, below = (6 - w % 6) % 6, (6 - h % 6) % 6
        mode = "reflect" if below < h and right < w else "replicate"
        x = F.pad(x, (0, right, 0, below), mode)
        x = self.conv((x - self.mean) * 2.0) / 2.0
        return x[..., : h * 2, : w * 2]


@program({}, {"height": (6, 30), "width": (6, 30)}, x="float 1 4 height=11 width=9")
class LocalMean(nn.Module):
    """A mean over a large window by running sums, padded to the image."""

    def __init__(self):
        super().__init__()
        self.kernel = [7, 5]

    def forward(self, x):
        if self.kernel[0] >= x.size(-2) and self.kernel[1] >= x.size(-1):
            return F.adaptive_avg_pool2d(x, 1)
        h, w = x.shape[2:]
        sums = F.pad(x.cumsum(dim=-1).cumsum_(dim=-2), (1, 0, 1, 0))
        k1, k2 = min(h, self.kernel[0]), min(w, self.kernel[1])
        one, two = sums[:, :, :-k1, :-k2], sums[:, :, :-k1, k2:]
        three, four = sums[:, :, k1:, :-k2], sums[:, :, k1:, k2:]
        out = (four + one - two - three) / (k1 * k2)
        _h, _w = out.shape[2:]
        pad = ((w - _w) // 2, (w - _w + 1) // 2, (h - _h) // 2, (h - _h + 1) // 2)
        return F.pad(out, pad, mode="replicate")


@lru_cache(maxsize=8)
def coordinates(height, width):
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([y, x]).flatten(1)


@program({}, {"height": (2, 12), "width": (2, 12)}, x="float 1 6 height=4 width=5")
class RelativeTable(nn.Module):
    """Positions of a bias table by size, from a cache of a function."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(23 * 23, 2))
        self.qkv = nn.Conv2d(6, 18, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        at = coordinates(h, w)
        relative = (at[:, :, None] - at[:, None, :]).permute(1, 2, 0) + 11
        index = relative[..., 0] * 23 + relative[..., 1]
        bias = self.table[index.view(-1)].view(h * w, h * w, -1).permute(2, 0, 1).contiguous()
        q, k, v = self.qkv(x).reshape(n, 3, 2, 3, h * w).unbind(1)
        scores = torch.einsum("nhcq,nhck->nhqk", q, k) / math.sqrt(3) + bias.unsqueeze(0)
        return torch.einsum("nhqk,nhck->nhcq", scores.softmax(-1), v).reshape(n, c, h, w)


# Outputs and tables of layers


class Result(OrderedDict):
    """A table whose items are attributes, without those that are None."""

    def __init__(self, **values):
        super().__init__((k, v) for k, v in values.items() if v is not None)

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error

    def to_tuple(self):
        return tuple(self[k] for k in self)


@program({}, {"length": (1, 20)}, ids="50 batch=2 length=6", mask="2 batch=2 length=6")
class EncoderWithResult(nn.Module):
    """A text encoder with a table of outputs, optional states and an extended mask."""

    def __init__(self):
        super().__init__()
        self.config = {"layers": 2, "eps": 1e-5, "output_hidden_states": True, "use_cache": False}
        self.words, self.places = nn.Embedding(50, 8, padding_idx=0), nn.Embedding(40, 8)
        self.layers = nn.ModuleList([nn.Linear(8, 24) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(8, eps=self.config["eps"]) for _ in range(2)])
        self.register_buffer("position_ids", torch.arange(40).expand((1, -1)))

    def extend(self, mask, dtype):
        if mask.dim() == 3:
            extended = mask[:, None, :, :]
        elif mask.dim() == 2:
            extended = mask[:, None, None, :]
        else:
            raise ValueError(f"a mask of {mask.shape}")
        return (1.0 - extended.to(dtype=dtype)) * torch.finfo(dtype).min

    def encode(self, x, mask, hidden=None, past=None):
        states = () if hidden else None
        for i, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            if hidden:
                states = (*states, x)
            kept = past[i] if past is not None else None
            q, k, v = (t.view(*t.shape[:2], 2, 4).transpose(1, 2) for t in layer(x).chunk(3, -1))
            if kept is not None:
                k = torch.cat([kept, k], 2)
            scores = (torch.matmul(q, k.transpose(-1, -2)) / 2 + mask).softmax(-1)
            x = norm(x + torch.matmul(scores, v).permute(0, 2, 1, 3).contiguous().flatten(2))
        return Result(last_hidden_state=x, hidden_states=states, past_key_values=past)

    def forward(self, ids, mask=None, position_ids=None):
        batch, length = ids.size()
        if position_ids is None:
            position_ids = self.position_ids[:, :length]
        x = self.words(ids) + self.places(position_ids)
        mask = torch.ones((batch, length)) if mask is None else mask
        found = self.encode(x, self.extend(mask, x.dtype), hidden=self.config["output_hidden_states"])
        pooled = found[next(iter(found))][:, 0].tanh()
        total = reduce(torch.add, found.hidden_states)
        return Result(logits=pooled, loss=None, total=total, last=found.to_tuple()[0])


@dataclass
class Losses:
    """Named results, some of them missing."""

    mean: torch.Tensor
    spread: torch.Tensor | None = None
    middle: torch.Tensor | None = None

    def items(self):
        return [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) is not None]


@program({}, {"count": (1, 20)}, x="float count=5 3")
class DataclassSummed(nn.Module):
    """A dataclass with optional fields, merged with another and summed up."""

    def forward(self, x):
        one = Losses(x.mean(), spread=x.std(0, unbiased=False) if x.shape[0] > 1 else None)
        two = Losses(x.abs().mean())
        two.middle = x.amax(0)
        names = dict(chain(one.items(), two.items()))
        total = sum(v.sum() for v in names.values())
        return total, names["mean"], names["middle"]


KINDS = {"conv": partial(nn.Conv2d, kernel_size=3, padding=1), "point": partial(nn.Conv2d, kernel_size=1), "none": None}


@program({}, {"height": (1, 20)}, x="float batch=2 4 height=6 5")
class LayersByName(nn.Module):
    """Layers built from a table of names, repeated, with their inputs' places."""

    PLAN = ((-1, "conv", 1), (-1, "point", 2), ((-1, 0), "join", 1), (0, "none", 1), ((-1, -2, 1), "sum", 1))

    def __init__(self):
        super().__init__()
        made = []
        for number, (_, kind, repeat) in enumerate(self.PLAN):
            make = KINDS.get(kind)
            layer = nn.Sequential(*[make(4, 4) for _ in range(repeat)]) if make else nn.Identity()
            layer.i, layer.kind, layer.f = number, kind, self.PLAN[number][0]
            made.append(layer)
        self.model, self.save = nn.Sequential(*made), {0, 1, 2}

    def forward(self, x):
        y = []
        for m in self.model:
            if m.f != -1:
                x = y[m.f] if isinstance(m.f, int) else [x if j == -1 else y[j] for j in m.f]
            if m.kind == "join":
                x = torch.cat(x, 1)[:, ::2]
            elif m.kind == "sum":
                x = torch.stack([v for v in x if v is not None]).sum(0)
            else:
                x = m(x)
            y.append(x if m.i in self.save else None)
            if len(y) > 3 and y[-1] is None:
                y[-1] = x
        return x


class State(NamedTuple):
    """What a decoder hands on."""

    keys: torch.Tensor
    values: torch.Tensor
    length: int = 0

    def updated(self, keys, values):
        return self._replace(
            keys=torch.cat([self.keys, keys], -2), values=torch.cat([self.values, values], -2), length=self.length + 1
        )


@program(
    {}, {"past": (1, 20), "length": (1, 12)}, x="float 1 length=3 8", keys="float 1 past=4 8", values="float 1 past=4 8"
)
class StateReplaced(nn.Module):
    """Rows of one length after another with a state in a named tuple."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, keys, values):
        state = State(keys, values)
        q, k, v = self.qkv(x).split(8, -1)
        state = state.updated(k, v)
        total, new = state.keys.shape[-2], x.shape[1]
        mask = torch.ones(new, total, dtype=torch.bool).tril(diagonal=total - new)
        out = F.scaled_dot_product_attention(q, state.keys, state.values, attn_mask=mask)
        return out * state.length, state.keys, state.values


# Branches on what an image or a sequence is


@program({}, {"height": (8, 40), "width": (8, 40)}, x="float 1 3 height=16 width=24")
class PoolThenResize(nn.Module):
    """A pyramid of pooled maps, each resized to the map again."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 2, 1) for _ in (1, 2, 3, 6)])

    def forward(self, x):
        out = [x]
        for size, conv in zip((1, 2, 3, 6), self.convs, strict=True):
            pooled = conv(F.adaptive_avg_pool2d(x, size)).relu()
            out.append(F.interpolate(pooled, size=x.size()[2:], mode="bilinear", align_corners=False))
        return torch.cat(out, 1)


@program({}, {"height": (2, 20), "width": (2, 20)}, x="float 1 4 height=5 width=7", y="float 1 4 10 14")
class MergedLevels(nn.Module):
    """Two maps, of which one is resized, or pooled, where their sizes differ."""

    def forward(self, x, y):
        if x.shape[-2:] == y.shape[-2:]:
            return x + y
        if x.shape[-2] < y.shape[-2] and x.shape[-1] < y.shape[-1]:
            x = F.interpolate(x, size=y.shape[-2:], mode="nearest")
        else:
            x = F.adaptive_max_pool2d(x, y.shape[-2:]) if x.shape[-2] > y.shape[-2] else F.interpolate(x, y.shape[-2:])
        return x + y


@program({}, {"length": (4, 60)}, x="float 1 length=10 6")
class OddPooling(nn.Module):
    """Pairs of frames, with the last one again where their number is odd."""

    def forward(self, x):
        if x.shape[1] % 2 == 1:
            x = torch.cat([x, x[:, -1:]], dim=1)
        b, t, d = x.shape
        x = x.reshape(b, t // 2, d * 2)
        if x.size(1) % 2:
            x = x[:, :-1] if x.size(1) > 1 else x
        return x, x.mean(1)


@program({}, {"frames": (1, 16)}, x="float 1 frames=5 4 6 6")
class VideoBothWays(nn.Module):
    """A video's features from its end, then from its start."""

    def __init__(self):
        super().__init__()
        self.back, self.forth = nn.Conv2d(8, 4, 3, padding=1), nn.Conv2d(12, 4, 3, padding=1)

    def forward(self, x):
        n, t, c, h, w = x.size()
        state, behind = x.new_zeros(n, c, h, w), []
        for i in range(t - 1, -1, -1):
            state = self.back(torch.cat([x[:, i], state], 1)).tanh()
            behind.append(state)
        behind = behind[::-1]
        state, out = torch.zeros_like(state), []
        for i in range(0, t):
            if i > 0:
                state = state * 0.5
            state = self.forth(torch.cat([x[:, i], behind[i], state], 1)).tanh()
            out.append(state + x[:, i])
        return torch.stack(out, dim=1)


@program({}, {"frames": (2, 20)}, x="float frames=8 6 3 3")
class ShiftedInTime(nn.Module):
    """A part of the channels from the frame before, a part from the frame after."""

    def forward(self, x):
        nt, c, h, w = x.size()
        x = x.view(-1, nt, c, h, w)
        fold = c // 3
        out = torch.zeros_like(x)
        out[:, :-1, :fold] = x[:, 1:, :fold]
        out[:, 1:, fold : 2 * fold] = x[:, :-1, fold : 2 * fold]
        out[:, :, 2 * fold :] = x[:, :, 2 * fold :]
        return out.view(nt, c, h, w)


@program({}, {"length": (1, 40)}, x="float batch=2 length=9 8", lengths="10 batch=2")
class ConformerMasks(nn.Module):
    """Masks of padding and of chunks, and a depthwise convolution over what is not masked."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 8, 3, padding=1, groups=8)
        self.chunk, self.left = 4, 1

    def chunks(self, size):
        rows = torch.arange(size)
        ends = ((rows // self.chunk) + 1) * self.chunk
        starts = torch.clamp(((rows // self.chunk) - self.left) * self.chunk, min=0)
        return (rows[None] < torch.clamp(ends, max=size)[:, None]) & (rows[None] >= starts[:, None])

    def forward(self, x, lengths):
        seen = torch.arange(x.size(1))[None] < lengths[:, None]
        mask = seen.unsqueeze(1) & self.chunks(x.size(1)).unsqueeze(0)
        scores = (x @ x.transpose(1, 2) / 3).masked_fill(mask.eq(0), -float("inf"))
        x = torch.softmax(scores, -1).masked_fill(mask.eq(0), 0.0) @ x
        x = self.conv(x.transpose(1, 2).masked_fill(~seen.unsqueeze(1), 0.0))
        return F.silu(x).transpose(1, 2), seen.sum(1)


@program({}, {"length": (1, 40)}, x="float 2 length=7 6")
class RelativePositions(nn.Module):
    """Transformer-XL's: positions on both sides, made longer where the input is, and shifted rows."""

    def __init__(self):
        super().__init__()
        self.pe = None
        self.extend(torch.zeros(1, 5))
        self.project = nn.Linear(6, 6, bias=False)
        self.u, self.v = nn.Parameter(torch.randn(6)), nn.Parameter(torch.randn(6))

    def extend(self, x):
        if self.pe is not None and self.pe.size(1) >= x.size(1) * 2 - 1:
            return
        plus, minus = torch.zeros(x.size(1), 6), torch.zeros(x.size(1), 6)
        at = torch.arange(0, x.size(1), dtype=torch.float32).unsqueeze(1)
        div = torch.exp(torch.arange(0, 6, 2, dtype=torch.float32) * -(math.log(10000.0) / 6))
        plus[:, 0::2], plus[:, 1::2] = torch.sin(at * div), torch.cos(at * div)
        minus[:, 0::2], minus[:, 1::2] = torch.sin(-1 * at * div), torch.cos(-1 * at * div)
        self.pe = torch.cat([torch.flip(plus, [0]).unsqueeze(0), minus[1:].unsqueeze(0)], dim=1)

    def shift(self, x):
        zero = torch.zeros((x.size(0), x.size(1), 1), dtype=x.dtype)
        padded = torch.cat([zero, x], dim=-1)
        padded = padded.view(x.size(0), x.size(2) + 1, x.size(1))
        return padded[:, 1:].view_as(x)[:, :, : x.size(-1) // 2 + 1]

    def forward(self, x):
        self.extend(x)
        pos = self.pe[:, self.pe.size(1) // 2 - x.size(1) + 1 : self.pe.size(1) // 2 + x.size(1)]
        p = self.project(pos)
        content = (x + self.u) @ x.transpose(1, 2)
        scores = content + self.shift((x + self.v) @ p.transpose(1, 2))
        return (scores / 3).softmax(-1) @ x


@program({}, {"count": (1, 9)}, points="float 1 count=3 2", labels="3 1 count=3")
class Prompts(nn.Module):
    """Points with labels, some of them none, and a box that is not given."""

    def __init__(self):
        super().__init__()
        self.register_buffer("gauss", torch.randn(2, 4))
        self.kinds = nn.ModuleList([nn.Embedding(1, 8) for _ in range(3)])
        self.missing, self.empty = nn.Embedding(1, 8), nn.Embedding(1, 8)

    def encode(self, x):
        x = x.clone()
        x[:, :, 0] = x[:, :, 0] / 9
        x[:, :, 1] = x[:, :, 1] / 7
        x = (2 * x - 1) @ self.gauss
        x = 2 * math.pi * x
        return torch.cat([torch.sin(x), torch.cos(x)], dim=-1)

    def points(self, points, labels, pad):
        points = points + 0.5
        if pad:
            points = torch.cat([points, torch.zeros((points.shape[0], 1, 2))], dim=1)
            labels = torch.cat([labels, -torch.ones((labels.shape[0], 1), dtype=labels.dtype)], dim=1)
        found = self.encode(points)
        found[labels == -1] = 0.0
        found[labels == -1] += self.missing.weight
        for i, kind in enumerate(self.kinds):
            found[labels == i] += kind.weight
        return found

    def forward(self, points, labels, boxes=None, masks=None):
        batch = points.shape[0] if points is not None else boxes.shape[0] if boxes is not None else 1
        sparse = torch.empty((batch, 0, 8))
        if points is not None:
            sparse = torch.cat([sparse, self.points(points, labels, pad=(boxes is None))], dim=1)
        if boxes is not None:
            sparse = torch.cat([sparse, self.encode(boxes.reshape(-1, 2, 2))], dim=1)
        dense = masks if masks is not None else self.empty.weight.reshape(1, -1, 1, 1).expand(batch, -1, 2, 3)
        return sparse, dense


@program({}, {"length": (1, 30)}, ids="12 batch=2 length=7")
class SkippedLayers(nn.Module):
    """Layers in groups that share weights, some with adapters, by a table of attributes."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 6)
        self.shared = nn.ModuleDict({"even": nn.Linear(6, 6), "odd": nn.Linear(6, 6)})
        for i in range(3):
            setattr(self, f"adapter_{i}", nn.Linear(6, 6) if i != 1 else None)
        self.active = ["adapter_0", "adapter_1", "adapter_2"]

    def forward(self, ids):
        x, last = self.words(ids), None
        for i in range(6):
            x = self.shared["odd" if i & 1 else "even"](x).tanh() + (last if last is not None else 0)
            adapter = getattr(self, self.active[i % len(self.active)], None)
            if adapter is not None and callable(adapter):
                x = x + adapter(x) * 0.1
            if i in range(1, 6, 2):
                last = x
        return x, last


@program({}, {"height": (5, 30), "width": (5, 30)}, x="float 1 2 height=9 width=11")
class PatchesPadded(nn.Module):
    """Patches with positions resized to their number, a class token in front."""

    def __init__(self):
        super().__init__()
        self.project = nn.Conv2d(2, 6, 3, stride=3)
        self.positions, self.token = nn.Parameter(torch.randn(1, 10, 6)), nn.Parameter(torch.randn(1, 1, 6))

    def resized(self, h, w):
        count = self.positions.shape[1] - 1
        side = int(math.sqrt(count))
        if side == h and side == w:
            return self.positions
        token, grid = self.positions[:, :1], self.positions[:, 1:]
        grid = grid.reshape(1, side, side, -1).permute(0, 3, 1, 2)
        scale = ((h + 0.1) / side, (w + 0.1) / side)
        grid = F.interpolate(grid, scale_factor=scale, mode="bicubic", antialias=False)
        assert tuple(grid.shape[-2:]) == (h, w)
        return torch.cat([token, grid.permute(0, 2, 3, 1).reshape(1, -1, 6)], dim=1)

    def forward(self, x):
        _, _, h, w = x.shape
        x = F.pad(x, (0, (3 - w % 3) % 3, 0, (3 - h % 3) % 3))
        x = self.project(x)
        h, w = x.shape[2:]
        x = x.flatten(2).transpose(1, 2)
        return torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.resized(h, w)


@program({}, {"height": (8, 32), "width": (8, 32)}, x="float 1 3 height=16 width=16")
class CopiedTeacher(nn.Module):
    """A layer's copy with other weights, made when the module is, and a test-time average of flipped inputs."""

    def __init__(self):
        super().__init__()
        self.student = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.teacher = copy.deepcopy(self.student)
        with torch.no_grad():
            for mine, theirs in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
                mine.mul_(0.9).add_(theirs, alpha=0.05)

    def forward(self, x):
        scales, flips, found = (1, 0.5), (None, 3), []
        for scale, flip in zip_longest(scales, flips):
            given = x if flip is None else x.flip(flip)
            if scale != 1:
                size = [math.ceil(s * scale / 4) * 4 for s in x.shape[2:]]
                given = F.interpolate(given, size=size, mode="bilinear", align_corners=False)
            out = self.student(given) - self.teacher(given)
            out = F.interpolate(out, size=x.shape[2:], mode="bilinear", align_corners=False)
            found.append(out if flip is None else out.flip(flip))
        return torch.stack(found).mean(0)


@program({}, {"height": (4, 30), "width": (4, 30)}, x="float 1 1 height=12 width=16")
class Keypoints(nn.Module):
    """Bottom-up keypoints: maxima of heat maps, a quarter of a pixel towards the higher neighbour."""

    def forward(self, x):
        heat = torch.cat([x, -x], 1)
        n, k, h, w = heat.shape
        heat = heat + torch.arange(h * w).view(h, w) * 1e-3  # no ties
        peaks = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float()
        scores, at = peaks.view(n, k, -1).topk(3, dim=2)
        xs, ys = at % w, torch.div(at, w, rounding_mode="trunc").long()
        padded = F.pad(heat, (1, 1, 1, 1)).flatten(2)
        place = (ys + 1) * (w + 2) + xs + 1
        right, left = padded.gather(2, place + 1), padded.gather(2, place - 1)
        below, above = padded.gather(2, place + w + 2), padded.gather(2, place - w - 2)
        fine = torch.stack([xs + 0.25 * torch.sign(right - left), ys + 0.25 * torch.sign(below - above)], -1)
        return torch.where(scores[..., None] > 0.1, fine, torch.zeros_like(fine)), scores


@program({}, {"length": (2, 40)}, x="float 1 length=8 4", steps="4 1")
class Timesteps(nn.Module):
    """A diffusion model's embedding of a step, that scales and shifts a normalised sequence."""

    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(7, 8), nn.SiLU(), nn.Linear(8, 8))

    def forward(self, x, steps):
        if not torch.is_tensor(steps):
            steps = torch.tensor([steps], dtype=torch.long)
        elif torch.is_tensor(steps) and len(steps.shape) == 0:
            steps = steps[None]
        steps = steps * torch.ones(x.shape[0], dtype=steps.dtype)
        half = 7 // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
        args = steps[:, None].float() * freqs[None]
        emb = torch.cat([args.cos(), args.sin()], dim=-1)
        if 7 % 2:
            emb = torch.cat([emb, torch.zeros_like(emb[:, :1])], dim=-1)
        scale, shift = self.mlp(emb)[:, None].chunk(2, -1)
        return F.layer_norm(x, (4,)) * (1 + scale) + shift
