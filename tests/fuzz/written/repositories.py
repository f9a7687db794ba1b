"""Programs after the code of public repositories: decoders, samplers, trackers, postprocessing, solvers, graphs."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


# Stereo and tiles


@program(
    {}, {"width": (8, 40), "height": (1, 12)}, left="float 1 3 height=5 width=16", right="float 1 3 height=5 width=16"
)
class StereoVolume(nn.Module):
    """PSMNet's: one map for each disparity."""

    def forward(self, left, right):
        b, c, h, w = left.shape
        volume = left.new_zeros(b, 2 * c, w // 4, h, w)
        for i in range(w // 4):
            if i > 0:
                volume[:, :c, i, :, i:] = left[:, :, :, i:]
                volume[:, c:, i, :, i:] = right[:, :, :, :-i]
            else:
                volume[:, :c, i] = left
                volume[:, c:, i] = right
        return volume.contiguous()


@program(
    {}, {"width": (8, 40), "height": (1, 12)}, left="float 1 4 height=5 width=16", right="float 1 4 height=5 width=16"
)
class GroupwiseVolume(nn.Module):
    """GwcNet's: correlations of groups of channels."""

    def forward(self, left, right):
        b, c, h, w = left.shape
        volume = left.new_zeros([b, 2, 6, h, w])
        for i in range(6):
            if i > 0:
                product = left[:, :, :, i:] * right[:, :, :, :-i]
                volume[:, :, i, :, i:] = product.view(b, 2, c // 2, h, w - i).mean(2)
            else:
                volume[:, :, i, :, :] = (left * right).view(b, 2, c // 2, h, w).mean(2)
        return volume


@program({}, {"height": (4, 20), "width": (4, 20)}, x="float 1 2 height=9 width=11")
class SlidingWindow(nn.Module):
    """MONAI's: a window is moved over the image, and overlaps are averaged."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x):
        _, _, h, w = x.shape
        out, count = torch.zeros_like(x), torch.zeros_like(x)
        rows = [*range(0, h - 4, 3), h - 4]
        columns = [*range(0, w - 4, 3), w - 4]
        for top in rows:
            for left in columns:
                out[:, :, top : top + 4, left : left + 4] += self.conv(x[:, :, top : top + 4, left : left + 4])
                count[:, :, top : top + 4, left : left + 4] += 1
        return out / count


@program({}, {"height": (1, 20), "width": (1, 20)}, x="float 1 2 height=9 width=11")
class Tiles(nn.Module):
    """Real-ESRGAN's: tiles with a border, each enlarged for itself."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x):
        b, c, h, w = x.shape
        out = x.new_zeros(b, c, 2 * h, 2 * w)
        for i in range(math.ceil(h / 4)):
            for j in range(math.ceil(w / 4)):
                top, left = i * 4, j * 4
                bottom, right = min(top + 4, h), min(left + 4, w)
                y0, x0 = max(top - 1, 0), max(left - 1, 0)
                part = x[:, :, y0 : min(bottom + 1, h), x0 : min(right + 1, w)]
                part = F.interpolate(self.conv(part), scale_factor=2)
                top_out, left_out = (top - y0) * 2, (left - x0) * 2
                tall, wide = (bottom - top) * 2, (right - left) * 2
                out[:, :, top * 2 : bottom * 2, left * 2 : right * 2] = part[
                    :, :, top_out : top_out + tall, left_out : left_out + wide
                ]
        return out


# Decoders


@program({}, {"batch": (1, 40)}, state="float batch=2 12")
class GreedyRnn(nn.Module):
    """Until every row has ended, twelve tokens at most."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(8, 12), nn.GRUCell(12, 12), nn.Linear(12, 8)
        self.head.bias.data[3] += 0.5

    def forward(self, state):
        token, tokens = torch.zeros(state.shape[0], dtype=torch.long), []
        for _ in range(12):
            state = self.cell(self.embed(token), state)
            token = self.head(state).argmax(-1)
            tokens.append(token)
            if (token == 3).all():
                break
        return torch.stack(tokens, 1)


class Decoder(nn.Module):
    """One layer that attends to the tokens so far and to a memory."""

    def __init__(self, vocabulary=9, width=8):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.head.bias.data[1] += 0.45

    def forward(self, ids, memory):
        x = self.embed(ids)
        n = ids.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool).tril()
        scores = (self.q(x) @ x.transpose(1, 2)).masked_fill(~mask, float("-inf"))
        x = x + scores.softmax(-1) @ x
        k, v = self.kv(memory).chunk(2, -1)
        return self.head(x + (self.q(x) @ k.transpose(1, 2)).softmax(-1) @ v)


@program({}, {"batch": (1, 12), "length": (1, 20)}, source="float batch=2 length=7 8")
class GreedySequenceToSequence(nn.Module):
    """T5's and Marian's: the decoder reads all tokens so far, which grow by one in each round."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 8), Decoder()

    def forward(self, source):
        memory = torch.tanh(self.encoder(source))
        ids = torch.zeros(source.shape[0], 1, dtype=torch.long)
        while ids.shape[1] < 8:
            following = self.decoder(ids, memory)[:, -1].argmax(-1)
            ids = torch.cat([ids, following[:, None]], dim=1)
            if (following == 1).all():
                break
        return ids


@program({}, {"batch": (1, 12), "length": (1, 20)}, source="float batch=2 length=7 8")
class GreedyWithFinishedRows(nn.Module):
    """transformers' greedy search: rows that have ended are padded."""

    def __init__(self):
        super().__init__()
        self.decoder = Decoder()

    def forward(self, source):
        ids = torch.full((source.shape[0], 1), 2, dtype=torch.long)
        unfinished = torch.ones(source.shape[0], dtype=torch.long)
        for _ in range(7):
            following = self.decoder(ids, source)[:, -1, :].argmax(dim=-1)
            following = following * unfinished + 5 * (1 - unfinished)
            ids = torch.cat([ids, following.unsqueeze(-1)], dim=-1)
            unfinished = unfinished.mul((following != 1).long())
            if unfinished.max() == 0:
                break
        return ids


@program({}, {"batch": (1, 12), "length": (1, 20)}, prompt="9 batch=2 length=5")
class GreedyWithCache(nn.Module):
    """The keys and values of the tokens so far are kept."""

    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.head = nn.Embedding(9, 8), nn.Linear(8, 24), nn.Linear(8, 9)
        self.head.bias.data[0] += 0.3

    def attend(self, x, past):
        q, k, v = self.qkv(x).chunk(3, -1)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        mask = torch.ones(q.shape[1], k.shape[1]).tril(k.shape[1] - q.shape[1]).bool()
        scores = (q @ k.transpose(1, 2)).masked_fill(~mask, float("-inf"))
        return self.head(scores.softmax(-1) @ v), (k, v)

    def forward(self, prompt):
        logits, past = self.attend(self.embed(prompt), None)
        token = logits[:, -1].argmax(-1, keepdim=True)
        tokens = [token]
        for _ in range(6):
            logits, past = self.attend(self.embed(token), past)
            token = logits[:, -1].argmax(-1, keepdim=True)
            tokens.append(token)
            if (token == 0).all():
                break
        return torch.cat(tokens, dim=1)


@program({}, {"length": (1, 20)}, source="float 1 length=7 8")
class BeamSearchUntilEnd(nn.Module):
    """Three beams; ends where the best one has ended."""

    def __init__(self):
        super().__init__()
        self.decoder = Decoder()

    def forward(self, source):
        memory = source.expand(3, -1, -1)
        beams = torch.zeros(3, 1, dtype=torch.long)
        scores = torch.tensor([0.0, -1e9, -1e9])
        for _ in range(5):
            logp = self.decoder(beams, memory)[:, -1].log_softmax(-1)
            scores, index = (scores[:, None] + logp).view(-1).topk(3)
            rows, tokens = index // 9, index % 9
            beams = torch.cat([beams[rows], tokens[:, None]], 1)
            if tokens[0] == 1:
                break
        return beams[0], scores[0]


@program({}, {"frames": (1, 24)}, x="float frames=6 8")
class TransducerGreedy(nn.Module):
    """RNN-T: at each frame as many symbols as come before a blank, two at most."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.joint = nn.Embedding(5, 8), nn.GRUCell(8, 8), nn.Linear(8, 5)

    def forward(self, x):
        hypothesis = []
        state = torch.zeros(1, 8)
        out = self.cell(self.embed(torch.zeros(1, dtype=torch.long)), state)
        for t in range(x.shape[0]):
            for _ in range(2):
                token = self.joint(torch.tanh(x[t] + out[0])).argmax()
                if token == 0:
                    break
                hypothesis.append(token)
                out = self.cell(self.embed(token[None]), out)
        return torch.stack(hypothesis) if hypothesis else torch.zeros(0, dtype=torch.long)


@program({}, {"frames": (1, 40)}, x="float frames=9 6")
class CtcLoop(nn.Module):
    """Repeats are collapsed and blanks dropped, symbol by symbol."""

    def forward(self, x):
        symbols, previous = [], torch.tensor(0)
        for symbol in x.argmax(-1):
            if symbol != previous and symbol != 0:
                symbols.append(symbol)
            previous = symbol
        return torch.stack(symbols) if len(symbols) else torch.zeros(0, dtype=torch.long)


@program({}, {"length": (1, 20)}, memory="float 1 length=6 8")
class TacotronDecoder(nn.Module):
    """Frames are made until the gate opens."""

    def __init__(self):
        super().__init__()
        self.cell, self.frame, self.gate = nn.LSTMCell(12, 8), nn.Linear(8, 4), nn.Linear(8, 1)

    def forward(self, memory):
        frame, h, c = torch.zeros(1, 4), torch.zeros(1, 8), torch.zeros(1, 8)
        frames, gates = [], []
        while True:
            weights = (memory @ h[..., None]).softmax(1)
            context = (weights * memory).sum(1)
            h, c = self.cell(torch.cat([frame, context], -1), (h, c))
            frame = self.frame(h)
            gate = torch.sigmoid(self.gate(h + memory.mean(1) * 3))
            frames += [frame]
            gates += [gate]
            if gate > 0.55:
                break
            if len(frames) == 10:
                break
        return torch.stack(frames, 1), torch.cat(gates, 1)


@program({}, {"batch": (1, 20), "length": (1, 20)}, features="float batch=2 length=6 8")
class AttentionReader(nn.Module):
    """OCR: twelve steps of attention, the last symbol fed back."""

    def __init__(self):
        super().__init__()
        self.score, self.cell, self.head = nn.Linear(16, 1), nn.GRUCell(8 + 7, 8), nn.Linear(8, 7)

    def forward(self, features):
        b = features.size(0)
        hidden = features.new_zeros(b, 8)
        targets = torch.zeros(b).long()
        probs = torch.zeros(b, 5, 7)
        for i in range(5):
            energy = self.score(torch.cat([features, hidden[:, None].expand_as(features)], -1).tanh())
            context = (energy.softmax(1) * features).sum(1)
            onehot = F.one_hot(targets, 7).float()
            hidden = self.cell(torch.cat([context, onehot], 1), hidden)
            step = self.head(hidden)
            probs[:, i, :] = step
            _, targets = step.max(1)
        return probs


@program({}, {"length": (1, 14)}, tokens="9 length=5")
class AttentionSequenceToSequence(nn.Module):
    """The tutorial's: encoder outputs are written row by row; the decoder ends at the end token."""

    def __init__(self):
        super().__init__()
        self.embed, self.encoder, self.decoder = nn.Embedding(9, 8), nn.GRUCell(8, 8), nn.GRUCell(16, 8)
        self.out = nn.Linear(8, 9)

    def forward(self, tokens):
        outputs = torch.zeros(14, 8)
        hidden = torch.zeros(1, 8)
        for ei in range(tokens.size(0)):
            hidden = self.encoder(self.embed(tokens[ei]).view(1, -1), hidden)
            outputs[ei] = hidden[0]
        token, decoded = torch.tensor([0]), []
        for _ in range(10):
            weights = F.softmax(hidden @ outputs.t(), dim=1)
            hidden = self.decoder(torch.cat([self.embed(token), weights @ outputs], 1), hidden)
            _, index = self.out(hidden).topk(1)
            if index.item() == 1:
                break
            decoded.append(index.squeeze())
            token = index.squeeze().detach().view(1)
        return torch.stack(decoded) if decoded else torch.zeros(0, dtype=torch.long)


@program({}, {"length": (2, 16), "batch": (1, 6)}, x="float length=6 batch=2 4", target="float length=6 batch=2 4")
class TeacherForced(nn.Module):
    """Old sequence to sequence: outputs are written by step, every other target is fed in."""

    def __init__(self):
        super().__init__()
        self.encoder, self.cell, self.head = nn.GRU(4, 6), nn.GRUCell(4, 6), nn.Linear(6, 4)

    def forward(self, x, target):
        _, hidden = self.encoder(x)
        hidden = hidden[0]
        outputs = torch.zeros(target.shape[0], target.shape[1], 4)
        step = target[0]
        for t in range(1, target.shape[0]):
            hidden = self.cell(step, hidden)
            outputs[t] = self.head(hidden)
            step = target[t] if t % 2 == 0 else outputs[t]
        return outputs


@program({}, {"length": (1, 20)}, emissions="float length=6 4")
class Viterbi(nn.Module):
    """A CRF's best path: forward with back pointers, then back."""

    def __init__(self):
        super().__init__()
        self.start, self.end = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))
        self.transitions = nn.Parameter(torch.randn(4, 4))

    def forward(self, emissions):
        score = self.start + emissions[0]
        history = []
        for i in range(1, emissions.shape[0]):
            following = score[:, None] + self.transitions + emissions[i][None]
            score, index = following.max(0)
            history.append(index)
        best = (score + self.end).argmax()
        tags = [best]
        for index in reversed(history):
            best = index[tags[-1]]
            tags.append(best)
        tags.reverse()
        return torch.stack(tags)


@program({}, {"length": (1, 30)}, x="float 1 length=11 4")
class StreamingEncoder(nn.Module):
    """A conformer by chunks: each sees the end of what came before."""

    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(4, 4), nn.Linear(4, 8)

    def forward(self, x):
        cache = x.new_zeros(1, 0, 4)
        outs = []
        for start in range(0, x.shape[1], 4):
            chunk = x[:, start : start + 4]
            seen = torch.cat([cache, chunk], 1)
            k, v = self.kv(seen).chunk(2, -1)
            outs.append((self.q(chunk) @ k.transpose(1, 2)).softmax(-1) @ v)
            cache = seen[:, -6:]
        return torch.cat(outs, 1)


# Samplers and solvers


@program({}, {"batch": (1, 20)}, noise="float batch=2 4")
class DdimSampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(5, 4)
        self.register_buffer("alphas", torch.linspace(0.99, 0.1, 20))

    def forward(self, noise):
        x = noise
        steps = list(range(0, 20, 5))
        for i, t in enumerate(reversed(steps)):
            previous = steps[len(steps) - 2 - i] if i < len(steps) - 1 else -1
            at = self.alphas[t]
            before = self.alphas[previous] if previous >= 0 else torch.tensor(1.0)
            e = self.net(torch.cat([x, torch.full((x.shape[0], 1), t / 20)], 1))
            clean = ((x - (1 - at).sqrt() * e) / at.sqrt()).clamp(-1, 1)
            x = before.sqrt() * clean + (1 - before).sqrt() * e
        return x


@program({}, {"batch": (1, 8), "steps": (2, 10)}, x="float batch=2 4", sigmas="unit steps=5")
class HeunSampler(nn.Module):
    """k-diffusion's: the second half of a step is left out where the noise ends."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def denoise(self, x, sigma):
        return self.net(x / (sigma**2 + 1).sqrt())

    def forward(self, x, sigmas):
        sigmas = torch.cat([sigmas.sort(descending=True).values + 0.1, sigmas.new_zeros(1)])
        for i in range(len(sigmas) - 1):
            d = (x - self.denoise(x, sigmas[i])) / sigmas[i]
            dt = sigmas[i + 1] - sigmas[i]
            if sigmas[i + 1] == 0:
                x = x + d * dt
            else:
                y = x + d * dt
                d2 = (y - self.denoise(y, sigmas[i + 1])) / sigmas[i + 1]
                x = x + (d + d2) / 2 * dt
        return x


@program({}, {"batch": (1, 20)}, y="float batch=3 4")
class AdaptiveOde(nn.Module):
    """Steps of a length that an estimate of the error decides."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, y):
        t, h = torch.tensor(0.0), torch.tensor(0.1)
        for _ in range(30):
            if t >= 1.0:
                break
            h = torch.minimum(h, 1.0 - t)
            k1 = torch.tanh(self.net(y))
            k2 = torch.tanh(self.net(y + h * k1))
            err = (h * (k2 - k1)).abs().max() / 2
            if err < 0.02:
                t, y = t + h, y + h * (k1 + k2) / 2
            h = h * torch.clamp(0.9 * (0.02 / (err + 1e-9)).sqrt(), 0.3, 2.0)
        return y


@program({}, {"n": (1, 20), "m": (1, 20)}, cost="unit n=5 m=6")
class SinkhornUntil(nn.Module):
    """Optimal transport: until the scaling no longer moves."""

    def forward(self, cost):
        kernel = torch.exp(-cost)
        a, b = torch.full((cost.shape[0],), 1 / cost.shape[0]), torch.full((cost.shape[1],), 1 / cost.shape[1])
        u, v, error, rounds = torch.ones_like(a), torch.ones_like(b), torch.tensor(1.0), 0
        while error > 1e-3 and rounds < 30:
            before = u
            u = a / (kernel @ v)
            v = b / (kernel.t() @ u)
            error = (u - before).abs().max()
            rounds += 1
        return u[:, None] * kernel * v


@program({}, {"points": (3, 30)}, source="float points=8 2", target="float 12 2")
class IterativeClosestPoint(nn.Module):
    """Registration in the plane, until the error no longer falls."""

    def forward(self, source, target):
        previous = None
        for _ in range(6):
            distance = torch.cdist(source, target)
            nearest = target[distance.argmin(1)]
            error = distance.amin(1).mean()
            if previous is not None and (previous - error).abs() < 1e-3:
                break
            previous = error
            p, q = source - source.mean(0), nearest - nearest.mean(0)
            angle = torch.atan2((p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]).sum(), (p * q).sum())
            rotation = torch.stack([torch.cos(angle), -torch.sin(angle), torch.sin(angle), torch.cos(angle)]).view(2, 2)
            source = p @ rotation.t() + nearest.mean(0)
        return source


@program({}, {"points": (2, 30)}, x="float points=9", y="float points=9")
class LevenbergMarquardt(nn.Module):
    """Fits a line; the damping rises where a step is rejected."""

    def forward(self, x, y):
        parameters, damping = torch.zeros(2), 1e-2
        residual = y - parameters[0] * x - parameters[1]
        error = residual.pow(2).sum()
        for _ in range(8):
            jacobian = torch.stack([x, torch.ones_like(x)], 1)
            h, g = jacobian.t() @ jacobian, jacobian.t() @ residual
            det = (h[0, 0] + damping) * (h[1, 1] + damping) - h[0, 1] * h[1, 0]
            step = torch.stack(
                [(h[1, 1] + damping) * g[0] - h[0, 1] * g[1], (h[0, 0] + damping) * g[1] - h[1, 0] * g[0]]
            )
            new = parameters + step / det
            new_residual = y - new[0] * x - new[1]
            new_error = new_residual.pow(2).sum()
            if new_error < error:
                parameters, residual, error = new, new_residual, new_error
                damping = damping * 0.1
            else:
                damping = damping * 10
        return parameters, error


# Detections and tracks


@program({}, {"n": (1, 24)}, boxes="unit n=7 4", scores="unit n=7")
class SoftNms(nn.Module):
    """Scores of boxes that overlap fall; the best of the rest comes next."""

    def forward(self, boxes, scores):
        boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:] + 0.1], 1)
        scores = scores.clone()
        alive = torch.ones(len(scores), dtype=torch.bool)
        out = scores.clone()
        for _ in range(boxes.shape[0]):
            i = torch.where(alive, scores, -1.0).argmax()
            out[i] = scores[i]
            alive[i] = False
            lt, rb = torch.maximum(boxes[:, :2], boxes[i, :2]), torch.minimum(boxes[:, 2:], boxes[i, 2:])
            inter = (rb - lt).clamp(min=0).prod(1)
            area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
            iou = inter / (area + area[i] - inter)
            scores = torch.where(alive, scores * torch.exp(-(iou**2) / 0.5), scores)
        return out


@program({}, {"n": (1, 40)}, boxes="unit n=9 4", scores="unit n=9", labels="3 n=9")
class PerClassNms(nn.Module):
    """Detections of each class for itself, joined and cut to the best."""

    def forward(self, boxes, scores, labels):
        import torchvision

        boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:] + 0.1], 1)
        keep = torch.zeros_like(scores, dtype=torch.bool)
        for c in torch.unique(labels):
            inds = (labels == c).nonzero().squeeze(1)
            kept = torchvision.ops.nms(boxes[inds], scores[inds], 0.5)
            keep[inds[kept]] = True
        keep = keep.nonzero().squeeze(1)
        order = scores[keep].argsort(descending=True)
        return boxes[keep[order]], labels[keep[order]]


@program({}, {"n": (1, 40)}, prediction="unit 2 n=9 7")
class YoloPostprocess(nn.Module):
    """Every image for itself; one without a candidate is skipped."""

    def forward(self, prediction):
        import torchvision

        candidates = prediction[..., 4] > 0.6
        output = [torch.zeros(0, 6)] * prediction.shape[0]
        for index, x in enumerate(prediction):
            x = x[candidates[index]]
            if not x.shape[0]:
                continue
            box = torch.cat([x[:, :2] - x[:, 2:4] / 2, x[:, :2] + x[:, 2:4] / 2], 1)
            conf, j = (x[:, 5:] * x[:, 4:5]).max(1, keepdim=True)
            x = torch.cat([box, conf, j.float()], 1)[conf.view(-1) > 0.25]
            if not x.shape[0]:
                continue
            x = x[x[:, 4].argsort(descending=True)[:30]]
            keep = torchvision.ops.nms(x[:, :4] + x[:, 5:6] * 7, x[:, 4], 0.45)
            output[index] = x[keep[:10]]
        return output


@program({}, {"n": (1, 24)}, masks="unit n=5 6 6", scores="unit n=5", labels="3 n=5")
class MatrixNms(nn.Module):
    """SOLO's, with its early ways out."""

    def forward(self, masks, scores, labels):
        keep = scores > 0.2
        if keep.sum() == 0:
            return scores.new_zeros(0), labels.new_zeros(0)
        masks, scores, labels = (masks[keep] > 0.5).float(), scores[keep], labels[keep]
        order = torch.argsort(scores, descending=True, stable=True)
        if len(order) > 8:
            order = order[:8]
        flat, labels, scores = masks[order].flatten(1), labels[order], scores[order]
        n = len(labels)
        inter = flat @ flat.t()
        area = flat.sum(1).expand(n, n)
        iou = (inter / (area + area.t() - inter).clamp(min=1)).triu(diagonal=1)
        same = (labels.expand(n, n) == labels.expand(n, n).t()).float().triu(diagonal=1)
        most = (iou * same).max(0)[0].expand(n, n).t()
        decay = (torch.exp(-2 * (iou * same) ** 2) / torch.exp(-2 * most**2)).min(0)[0]
        return scores * decay, labels


@program({}, {"height": (1, 20), "width": (1, 20)}, heat="unit 1 4 height=6 width=7")
class KeypointRefinement(nn.Module):
    """A quarter of a cell towards the higher neighbour."""

    def forward(self, heat):
        _, k, h, w = heat.shape
        places = []
        for joint in range(k):
            flat = heat[0, joint].flatten().argmax()
            y, x = int(flat // w), int(flat % w)
            fy, fx = float(y), float(x)
            if heat[0, joint, y, min(x + 1, w - 1)] > heat[0, joint, y, max(x - 1, 0)]:
                fx += 0.25
            else:
                fx -= 0.25
            if heat[0, joint, min(y + 1, h - 1), x] > heat[0, joint, max(0, y - 1), x]:
                fy += 0.25
            else:
                fy -= 0.25
            places.append(torch.tensor([fx + 0.5, fy + 0.5]))
        return torch.stack(places)


@program({}, {"tracks": (1, 12), "found": (1, 12)}, tracks="unit tracks=4 4", found="unit found=5 4")
class GreedyAssociation(nn.Module):
    """A tracker's: the best pair first, until none overlaps enough."""

    def forward(self, tracks, found):
        a = torch.cat([tracks[:, :2], tracks[:, :2] + tracks[:, 2:]], 1)
        b = torch.cat([found[:, :2], found[:, :2] + found[:, 2:]], 1)
        lt, rb = torch.maximum(a[:, None, :2], b[:, :2]), torch.minimum(a[:, None, 2:], b[:, 2:])
        inter = (rb - lt).clamp(min=0).prod(-1)
        iou = inter / (tracks[:, 2:].prod(1)[:, None] + found[:, 2:].prod(1) - inter + 1e-6)
        match = torch.full((tracks.shape[0],), -1)
        while iou.max() > 0.2:
            best = iou.argmax()
            row, column = best // iou.shape[1], best % iou.shape[1]
            match[row] = column
            iou = iou.clone()
            iou[row] = -1
            iou[:, column] = -1
        return match, match < 0


@program({}, {"length": (1, 20)}, measured="float length=7 2")
class KalmanTrack(nn.Module):
    """Predict and update; what is far off is not taken in."""

    def forward(self, measured):
        mean = torch.cat([measured[0], torch.zeros(2)])
        covariance = torch.eye(4)
        motion = torch.eye(4)
        motion[0, 2] = motion[1, 3] = 1.0
        path = [mean]
        for i in range(1, measured.shape[0]):
            mean = motion @ mean
            covariance = motion @ covariance @ motion.t() + 0.1 * torch.eye(4)
            innovation = measured[i] - mean[:2]
            if innovation.norm() < 3.0:
                gain = covariance[:, :2] / (covariance[0, 0] + 0.5)
                mean = mean + gain @ innovation
                covariance = covariance - gain @ covariance[:2]
            path.append(mean)
        return torch.stack(path)


# Reinforcement learning, recommenders, time series


@program({}, {"length": (1, 30)}, rewards="float length=8", values="float length=8", last="float 1")
class GeneralizedAdvantage(nn.Module):
    """Backwards in time; the last step has its own successor."""

    def forward(self, rewards, values, last):
        n = rewards.shape[0]
        advantages = torch.zeros_like(rewards)
        running = torch.zeros(())
        for t in reversed(range(n)):
            if t == n - 1:  # noqa: SIM108
                following = last[0]
            else:
                following = values[t + 1]
            delta = rewards[t] + 0.99 * following - values[t]
            running = delta + 0.95 * running
            advantages[t] = running
        return advantages, advantages + values


@program({}, {"length": (1, 30)}, rewards="float length=8")
class DiscountedReturns(nn.Module):
    """Each return is put in front of the list."""

    def forward(self, rewards):
        returns, running = [], torch.zeros(())
        for reward in rewards.flip(0):
            running = reward + 0.9 * running
            returns.insert(0, running)
        returns = torch.stack(returns)
        return (returns - returns.mean()) / (returns.std(unbiased=False) + 1e-5)


@program({}, {"batch": (1, 12), "length": (1, 20)}, history="float batch=3 length=6 4", lengths="6 batch=3")
class AveragedHistory(nn.Module):
    """A recommender's: the mean of each user's items, zeros for who has none."""

    def forward(self, history, lengths):
        rows = []
        for items, n in zip(history, lengths, strict=True):
            rows.append(items[:n].mean(0) if n > 0 else torch.zeros(4))
        return torch.stack(rows)


@program({}, {"length": (3, 40), "batch": (1, 8)}, q="float batch=2 length=12 4", k="float batch=2 length=12 4")
class AutoCorrelation(nn.Module):
    """Autoformer's: the best delays, whose number grows with the length."""

    def forward(self, q, k):
        length = q.shape[1]
        spectrum = torch.fft.rfft(q, dim=1) * torch.conj(torch.fft.rfft(k, dim=1))
        corr = torch.fft.irfft(spectrum, n=length, dim=1).mean(-1)
        top = int(math.log(length))
        weights, delay = torch.topk(corr.mean(0), top)
        weights = corr[:, delay].softmax(-1)
        out = torch.zeros_like(k)
        for i in range(top):
            out = out + torch.roll(k, -int(delay[i]), 1) * weights[:, i][:, None, None]
        return out


@program({}, {"length": (1, 20), "batch": (1, 6)}, x="float batch=2 length=6 3")
class AutoregressiveForecast(nn.Module):
    """DeepAR's: what was seen is fed in as long as there is any, then what was foretold."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(3, 6), nn.Linear(6, 3)

    def forward(self, x):
        hidden = torch.zeros(x.shape[0], 6)
        step, made = x[:, 0], []
        for t in range(x.shape[1] + 4):
            if t < x.shape[1]:
                step = x[:, t]
            hidden = self.cell(step, hidden)
            step = self.head(hidden)
            made.append(step)
        return torch.stack(made, 1)[:, -4:]


@program({}, {"batch": (1, 40)}, x="float batch=5 3")
class DecisionTrees(nn.Module):
    """Walks down until every row is at a leaf."""

    def __init__(self):
        super().__init__()
        self.register_buffer("feature", torch.tensor([0, 1, 2, -1, -1, -1, 0, -1, -1]))
        self.register_buffer("threshold", torch.tensor([0.0, 0.3, -0.2, 0, 0, 0, 1.0, 0, 0]))
        self.register_buffer("left", torch.tensor([1, 3, 5, 3, 4, 5, 7, 7, 8]))
        self.register_buffer("right", torch.tensor([2, 4, 6, 3, 4, 5, 8, 7, 8]))

    def forward(self, x):
        node = torch.zeros(x.shape[0], dtype=torch.long)
        while (self.feature[node] >= 0).any():
            value = x.gather(1, self.feature[node].clamp(min=0)[:, None])[:, 0]
            node = torch.where(value <= self.threshold[node], self.left[node], self.right[node])
        return node


# Graphs, points and rays


@program({}, {"nodes": (1, 30)}, x="float nodes=7 4", graph="3 nodes=7")
class PooledByGraph(nn.Module):
    """The mean of each graph's nodes, in a loop over the graphs."""

    def forward(self, x, graph):
        graph = graph.sort().values
        pooled = []
        for g in range(int(graph.max()) + 1):
            inside = graph == g
            pooled.append(x[inside].sum(0) / inside.sum().clamp(min=1))
        return torch.stack(pooled)


@program({}, {"points": (4, 40)}, points="float 1 points=12 3")
class FarthestPoints(nn.Module):
    """PointNet++'s, a quarter of the points."""

    def forward(self, points):
        b, n, _ = points.shape
        centroids = torch.zeros(b, n // 4, dtype=torch.long)
        distance = torch.full((b, n), 1e10)
        farthest = torch.zeros(b, dtype=torch.long)
        rows = torch.arange(b)
        for i in range(n // 4):
            centroids[:, i] = farthest
            d = ((points - points[rows, farthest][:, None]) ** 2).sum(-1)
            distance = torch.minimum(distance, d)
            farthest = distance.max(-1)[1]
        return points[rows[:, None], centroids]


@program({}, {"rays": (1, 40)}, rays="float rays=11 3")
class Chunks(nn.Module):
    """NeRF's: the network is run on so many points at a time."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 4)

    def forward(self, rays):
        return torch.cat([self.net(rays[i : i + 4]) for i in range(0, rays.shape[0], 4)], 0)


@program({}, {"rays": (1, 40)}, origins="float rays=6 3", directions="float rays=6 3")
class RayMarching(nn.Module):
    """Only rays that are still in the air go on."""

    def forward(self, origins, directions):
        directions = F.normalize(directions, dim=-1)
        depth = torch.zeros(origins.shape[0])
        alive = torch.arange(origins.shape[0])
        for _ in range(12):
            if alive.numel() == 0:
                break
            points = origins[alive] + depth[alive, None] * directions[alive]
            gap = points.norm(dim=-1) - 1.0
            depth[alive] = depth[alive] + gap.clamp(max=1.0)
            alive = alive[gap.abs() > 1e-2]
        return depth
