"""Programs after code of the years 2016 to 2019: constructors by type, Variable, byte masks, upsample, gathers."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program({}, {"height": (1, 30), "width": (1, 30)}, x="unit batch=2 3 height=8 width=6")
class HueByMasks(nn.Module):
    """A picture's hue, written at masks into what a constructor of sizes made."""

    def forward(self, x):
        hue = torch.Tensor(x.shape[0], x.shape[2], x.shape[3]).to(x.device).to(x.dtype)
        value, low = x.max(1)[0], x.min(1)[0]
        spread = value - low + 1e-8
        hue[x[:, 2] == value] = 4.0 + ((x[:, 0] - x[:, 1]) / spread)[x[:, 2] == value]
        hue[x[:, 1] == value] = 2.0 + ((x[:, 2] - x[:, 0]) / spread)[x[:, 1] == value]
        hue[x[:, 0] == value] = (0.0 + ((x[:, 1] - x[:, 2]) / spread)[x[:, 0] == value]) % 6
        hue[x.min(1)[0] == value] = 0.0
        saturation = (value - low) / (value + 1e-8)
        saturation[value == 0] = 0
        return torch.stack([hue / 6.0, saturation, value], 1)


@program({}, {"grid": (1, 20)}, x="float batch=2 21 grid=5 grid=5")
class YoloLayer(nn.Module):
    """A detection layer of YOLO v3: offsets by numpy and by repeats, a type chosen by the device."""

    def __init__(self):
        super().__init__()
        self.anchors = [(10, 13), (16, 30), (33, 23)]

    def forward(self, x):
        kind = torch.cuda.FloatTensor if x.is_cuda else torch.FloatTensor
        batch, size = x.size(0), x.size(2)
        stride = 64 / size
        y = x.view(batch, 3, 7, size, size).permute(0, 1, 3, 4, 2).contiguous()
        across = torch.arange(size).repeat(size, 1).view([1, 1, size, size]).type(kind)
        down = torch.arange(size).repeat(size, 1).t().view([1, 1, size, size]).type(kind)
        anchors = kind([(a / stride, b / stride) for a, b in self.anchors])
        boxes = kind(y[..., :4].shape)
        boxes[..., 0] = torch.sigmoid(y[..., 0]).data + across
        boxes[..., 1] = torch.sigmoid(y[..., 1]).data + down
        boxes[..., 2] = torch.exp(y[..., 2].data) * anchors[:, 0:1].view((1, 3, 1, 1))
        boxes[..., 3] = torch.exp(y[..., 3].data) * anchors[:, 1:2].view((1, 3, 1, 1))
        return torch.cat((boxes.view(batch, -1, 4) * stride, torch.sigmoid(y[..., 4:]).view(batch, -1, 3)), -1)


@program(x="float batch=2 6 4")
class HiddenByVariable(nn.Module):
    """A recurrent cell whose first state is a Variable of zeros."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 3)

    def start(self, x):
        weight = next(self.parameters()).data
        return Variable(weight.new(x.size(0), 3).zero_()), Variable(weight.new(x.size(0), 3).fill_(0.5))

    def forward(self, x):
        state, outputs = self.start(x), []
        for step in x.transpose(0, 1):
            state = self.cell(step, state)
            outputs.append(state[0])
        return torch.stack(outputs, 1), state[1]


@program({}, {"words": (5, 30)}, tokens="9 batch=3 words=6", lengths="6 batch=3")
class MaskOfLengths(nn.Module):
    """Scores of words after a mask of lengths, by old constructors and masked_fill_."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)

    def forward(self, tokens, lengths):
        positions = torch.LongTensor(range(5)).expand(tokens.size(0), 5)
        mask = (positions < lengths.unsqueeze(1)).float()
        x = self.table(tokens)[:, :5]
        scores = torch.bmm(x, x.transpose(1, 2)).sum(2)
        scores.data.masked_fill_(mask.eq(0), -1e9)
        return F.softmax(scores, dim=1) * mask


@program({}, {"height": (1, 30), "width": (1, 30)}, x="float batch=1 2 height=6 width=9")
class UpsampledAndAdded(nn.Module):
    """Pyramid of features: upsample to the size of the other map, cropped by narrow."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.Upsample(scale_factor=2, mode="nearest")
        self.side = nn.Conv2d(2, 3, 1)

    def forward(self, x):
        small, side = F.relu(self.down(x), inplace=True), self.side(x)
        _, _, h, w = side.size()
        one = F.upsample(small, size=(h, w), mode="bilinear") + side
        two = self.up(small).narrow(2, 0, h).narrow(3, 0, w) * side
        return one, two


@program(x="float batch=4 5", y="float batch=4 5")
class PairwiseByExpand(nn.Module):
    """Squared distances of all pairs by expand and addmm, the least of each row by a loop over rows."""

    def forward(self, x, y):
        n, m = x.size(0), y.size(0)
        d = torch.pow(x, 2).sum(dim=1, keepdim=True).expand(n, m)
        d = d + torch.pow(y, 2).sum(dim=1, keepdim=True).expand(m, n).t()
        d = torch.addmm(d, x, y.t(), beta=1, alpha=-2)
        eye = torch.eye(n).expand(n, n).eq(1)
        hardest = torch.cat([d[i][eye[i] == 0].min().unsqueeze(0) for i in range(n)])
        return d, hardest


@program({}, {"height": (1, 40), "width": (1, 40)}, x="float batch=2 3 height=7 width=9")
class ScaledBoxes(nn.Module):
    """Boxes scaled by a tensor of the picture's sizes, as old detectors do."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 4)

    def forward(self, x):
        h, w = x.shape[2:]
        scale = torch.Tensor([w, h, w, h])
        boxes = torch.sigmoid(self.head(x.mean(3).mean(2))) * scale
        limits = torch.LongTensor([w, h])
        corner = torch.min(boxes[:, 2:].round().long(), limits.expand(boxes.size(0), 2) - 1)
        return boxes, corner, x.new([h / 2.0, w / 2.0]).expand_as(corner)


@program({}, {"words": (1, 16)}, x="float words=6 8")
class SineTable(nn.Module):
    """A table of sines by numpy, cut to the length; and one that is made in forward."""

    def __init__(self):
        super().__init__()
        angles = np.array([[p / np.power(10000, 2 * (j // 2) / 8) for j in range(8)] for p in range(16)])
        angles[:, 0::2], angles[:, 1::2] = np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])
        self.register_buffer("table", torch.from_numpy(angles).type(torch.FloatTensor))

    def forward(self, x):
        place = torch.arange(0, x.size(0)).float().unsqueeze(1)
        rate = torch.exp(torch.arange(0, 8, 2).float() * -(math.log(10000.0) / 8))
        made = torch.FloatTensor(x.size(0), 8).fill_(0)
        made[:, 0::2], made[:, 1::2] = torch.sin(place * rate), torch.cos(place * rate)
        return x + Variable(self.table[: x.size(0)], requires_grad=False), x + made


@program(x="float batch=3 4", label="4 batch=3")
class OneHotByScatter(nn.Module):
    """A margin at the labels, by scatter_ into zeros of a type by name, and byte masks."""

    def forward(self, x, label):
        hot = torch.zeros(x.size()).type_as(x).scatter_(1, label.view(-1, 1), 1)
        index = torch.ByteTensor(x.size()).fill_(0).scatter_(1, label.view(-1, 1), 1)
        margin = torch.where(index == 1, x * 2 - 0.35, x)
        return hot * margin, (1.0 - hot) * x, margin.gt(0.5).type(torch.IntTensor).sum(1)


@program({}, {"height": (2, 30), "width": (2, 30)}, x="float batch=2 3 height=6 width=8")
class SplitByMean(nn.Module):
    """Mean and standard deviation over a view, a style moved onto another map, contiguous views."""

    def moments(self, x, eps=1e-5):
        size = x.data.size()
        assert len(size) == 4
        n, c = size[:2]
        spread = (x.contiguous().view(n, c, -1).var(dim=2) + eps).sqrt().view(n, c, 1, 1)
        return x.contiguous().view(n, c, -1).mean(dim=2).view(n, c, 1, 1), spread

    def forward(self, x):
        mean, spread = self.moments(x)
        other_mean, other_spread = self.moments(x.flip(0).transpose(2, 3))
        size = x.size()
        plain = (x - mean.expand(size)) / spread.expand(size)
        gram = x.view(size[0], size[1], size[2] * size[3])
        return plain * other_spread.expand(size) + other_mean.expand(size), gram.bmm(gram.transpose(1, 2)).div(
            size[1] * size[2] * size[3]
        )


@program({}, {"words": (1, 24)}, x="float batch=2 words=5 4")
class GreedyPath(nn.Module):
    """The best path of a chain (CRF): scores and pointers of each step in lists, then the way back."""

    def __init__(self):
        super().__init__()
        self.transitions = nn.Parameter(torch.rand(4, 4))

    def forward(self, x):
        batch, words, kinds = x.size()
        score, pointers = x[:, 0], []
        for t in range(1, words):
            total = score.view(batch, kinds, 1).expand(batch, kinds, kinds) + self.transitions
            best, pointer = total.max(1)
            score = best + x[:, t]
            pointers.append(pointer)
        value, last = score.max(1)
        path = [last]
        for pointer in reversed(pointers):
            path.append(pointer.gather(1, path[-1].view(-1, 1)).view(-1))
        return value, torch.stack(path[::-1], 1)


@program({}, {"height": (1, 30), "width": (1, 30)}, x="float batch=2 2 height=5 width=7")
class WarpedByFlow(nn.Module):
    """A picture warped by its flow: a grid by repeats, scaled in place, grid_sample."""

    def forward(self, x):
        b, _, h, w = x.size()
        xx = torch.arange(0, w).view(1, -1).repeat(h, 1).view(1, 1, h, w).repeat(b, 1, 1, 1)
        yy = torch.arange(0, h).view(-1, 1).repeat(1, w).view(1, 1, h, w).repeat(b, 1, 1, 1)
        grid = torch.cat((xx, yy), 1).float()
        if x.is_cuda:
            grid = grid.cuda()
        moved = Variable(grid) + x * 0.7
        moved[:, 0, :, :] = 2.0 * moved[:, 0, :, :].clone() / max(w - 1, 1) - 1.0
        moved[:, 1, :, :] = 2.0 * moved[:, 1, :, :].clone() / max(h - 1, 1) - 1.0
        moved = moved.permute(0, 2, 3, 1)
        found = F.grid_sample(x, moved, align_corners=True)
        mask = F.grid_sample(torch.autograd.Variable(torch.ones(x.size())), moved, align_corners=True)
        mask[mask < 0.9999] = 0
        mask[mask > 0] = 1
        return found * mask
