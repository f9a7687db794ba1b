"""Programs after a detector, and with parts that are sent to experts: selections, suppression, empty results."""

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.ops import batched_nms, box_iou, nms, remove_small_boxes, roi_align

from fuzz.written.program import collector

PROGRAMS, program = collector()


def corners(boxes):
    return torch.cat([boxes[:, :2] * 10, boxes[:, :2] * 10 + 1 + boxes[:, 2:].abs() * 5], 1)


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class ScoreThenNms(nn.Module):
    def forward(self, boxes, scores):
        keep = scores > 0.5
        boxes, scores = corners(boxes)[keep], scores[keep]
        if boxes.shape[0] == 0:
            return torch.zeros(0, 5)
        kept = nms(boxes, scores, 0.5)[:5]
        return torch.cat([boxes[kept], scores[kept, None]], 1)


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class PaddedDetections(nn.Module):
    def forward(self, boxes, scores):
        kept = nms(corners(boxes), scores, 0.4)
        n = kept.numel()
        result = torch.full((10, 4), -1.0)
        count = min(n, 10)
        result[:count] = corners(boxes)[kept[:10]]
        return result, torch.tensor(count)


@program(boxes="float boxes=12 4", scores="unit boxes=12", labels="3 boxes=12")
class BatchedNms(nn.Module):
    def forward(self, boxes, scores, labels):
        return batched_nms(corners(boxes), scores, labels, 0.5)


@program(boxes="float boxes=12 4", scores="unit boxes=12", labels="3 boxes=12")
class ClassByClass(nn.Module):
    def forward(self, boxes, scores, labels):
        found = []
        for label in labels.unique().tolist():
            chosen = torch.where(labels == label)[0]
            found.append(chosen[nms(corners(boxes)[chosen], scores[chosen], 0.5)])
        return torch.cat(found).sort().values


@program(boxes="float boxes=12 4", scores="unit boxes=12", labels="3 boxes=12")
class ThreeClasses(nn.Module):
    def forward(self, boxes, scores, labels):
        found = []
        for label in range(3):
            chosen = (labels == label).nonzero().squeeze(1)
            if chosen.numel() > 0:
                found.append(scores[chosen].max())
            else:
                found.append(torch.tensor(0.0))
        return torch.stack(found)


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class TopThousand(nn.Module):
    def forward(self, boxes, scores):
        if boxes.shape[0] > 16:
            scores, order = scores.topk(16)
            boxes = boxes[order]
        return boxes * scores[:, None]


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class TopOfSelected(nn.Module):
    def forward(self, boxes, scores):
        chosen = scores > 0.3
        found = scores[chosen]
        k = min(4, found.shape[0])
        best = found.topk(k).values
        return F.pad(best, (0, 4 - k))


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class LowerThreshold(nn.Module):
    """Lowers the threshold until something is found."""

    def forward(self, boxes, scores):
        threshold = 0.9
        keep = scores > threshold
        while keep.sum() < 3 and threshold > 0.1:
            threshold -= 0.2
            keep = scores > threshold
        return (boxes * keep[:, None]).sum(0)


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class BestOrZero(nn.Module):
    def forward(self, boxes, scores):
        found = (scores > 0.8).nonzero(as_tuple=True)[0]
        return boxes[found[0]] if len(found) else torch.zeros(4)


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class OneResult(nn.Module):
    def forward(self, boxes, scores):
        kept = boxes[scores > 0.6]
        if kept.size(0) == 1:
            return kept[0] * 2
        if not kept.size(0):
            return boxes[0]
        return kept.mean(0)


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class SqueezeSelection(nn.Module):
    """squeeze() drops an axis where one box is found."""

    def forward(self, boxes, scores):
        index = (scores > 0.7).nonzero().squeeze()
        return boxes[index].sum()


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class SqueezeRank(nn.Module):
    def forward(self, boxes, scores):
        index = (scores > 0.7).nonzero().squeeze()
        if index.dim() == 0:
            index = index[None]
        return boxes[index].sum(0)


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class BroadcastSelection(nn.Module):
    def forward(self, boxes, scores):
        kept = corners(boxes)[scores > 0.5]
        return box_iou(kept, corners(boxes)).sum(0)


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class SmallBoxes(nn.Module):
    def forward(self, boxes, scores):
        kept = remove_small_boxes(corners(boxes), 3.0)
        return kept.shape[0] * scores.sum() if kept.shape[0] else scores.max()


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class MergeLoop(nn.Module):
    """Suppression by hand."""

    def forward(self, boxes, scores):
        order = scores.argsort(descending=True)
        overlaps = box_iou(corners(boxes)[order], corners(boxes)[order])
        keep = torch.ones(len(order), dtype=torch.bool)
        for i in range(len(order)):
            if keep[i]:
                keep[i + 1 :] &= overlaps[i, i + 1 :] < 0.3
        return order[keep]


@program(boxes="float boxes=12 4", scores="unit boxes=12")
class WhileLeft(nn.Module):
    def forward(self, boxes, scores):
        left, found = scores.argsort(descending=True), []
        boxes = corners(boxes)
        while left.numel() > 0:
            first = left[0]
            found.append(first)
            if left.numel() == 1:
                break
            overlap = box_iou(boxes[first][None], boxes[left[1:]])[0]
            left = left[1:][overlap <= 0.3]
        return torch.stack(found)


@program(features="float 1 4 height=16 width=16", boxes="float boxes=6 4")
class RoiLevels(nn.Module):
    """Sends boxes to levels by their area."""

    def forward(self, features, boxes):
        boxes = corners(boxes)
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        level = (area > 12).long()
        result = torch.zeros(len(boxes), 4)
        for number, scale in enumerate((1.0, 0.5)):
            chosen = torch.where(level == number)[0]
            if chosen.numel() == 0:
                continue
            part = roi_align(features, [boxes[chosen]], 2, scale, 2)
            result[chosen] = part.mean((2, 3))
        return result


@program(x="float tokens=10 4")
class TopTwoExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        result = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == i)
            result[rows] += weights[rows, places, None] * expert(x[rows])
        return result


@program(x="float tokens=10 4")
class HitExperts(nn.Module):
    """Mixtral's way: a loop over the experts that are hit."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        result = torch.zeros_like(x)
        for number in (mask.sum((-1, -2)) > 0).nonzero():
            place, token = torch.where(mask[number].squeeze(0))
            result.index_add_(0, token, self.experts[int(number)](x[token]) * weights[token, place, None])
        return result


@program(x="float tokens=10 4")
class SortedExperts(nn.Module):
    """Tokens sorted by expert, and pieces by their counts."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        chosen = self.gate(x).argmax(-1)
        order = chosen.argsort(stable=True)
        counts = torch.bincount(chosen, minlength=3).tolist()
        parts = [expert(part) for expert, part in zip(self.experts, x[order].split(counts), strict=True)]
        return torch.cat(parts)[order.argsort()]


@program(x="float tokens=10 4")
class Capacity(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)

    def forward(self, x):
        capacity = max(4, int(1.25 * x.shape[0] / 3))
        chosen = F.one_hot(self.gate(x).argmax(-1), 3)
        place = chosen.cumsum(0) * chosen
        kept = chosen * (place <= capacity)
        return x * kept.sum(-1, keepdim=True), torch.tensor(capacity)


@program(x="float tokens=10 4")
class EmptyExpertByMax(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)

    def forward(self, x):
        chosen = self.gate(x).argmax(-1)
        outs = []
        for i in range(3):
            part = x[chosen == i]
            outs.append(part.amax(0) if part.numel() else x.amin(0))
        return torch.stack(outs)


@program(x="float tokens=10 4")
class FirstHalfOfSelected(nn.Module):
    def forward(self, x):
        part = x[x[:, 0] > 0]
        return part[: part.shape[0] // 2].sum(0)


@program(x="float tokens=10 4")
class StridedSelection(nn.Module):
    def forward(self, x):
        part = x[x[:, 0] > 0]
        step = 2 if part.shape[0] > 6 else 1
        return part[::step].sum(0)


@program(x="float tokens=10 4")
class EvenSelection(nn.Module):
    def forward(self, x):
        part = x[x[:, 0] > 0]
        if part.shape[0] % 2:
            part = torch.cat([part, part[-1:]])
        return part.view(-1, 2, 4).prod(1).sum(0)


@program(x="float tokens=10 4")
class PadSelection(nn.Module):
    def forward(self, x):
        part = x[x.sum(1) > 0]
        missing = 16 - part.shape[0]
        return F.pad(part, (0, 0, 0, missing)) if missing > 0 else part[:16]


@program(x="float tokens=10 4")
class NegativePadSelection(nn.Module):
    def forward(self, x):
        part = x[x.sum(1) > 0]
        return F.pad(part, (0, 0, 0, 8 - part.shape[0]))


@program(x="float tokens=10 4")
class ReshapedSelection(nn.Module):
    def forward(self, x):
        part = x[x > 0]
        whole = part.numel() // 3 * 3
        return part[:whole].reshape(-1, 3).sum(0)


@program(x="float tokens=10 4")
class MedianOfSelection(nn.Module):
    def forward(self, x):
        part = x[x > 0]
        return part.sort().values[part.numel() // 2] if part.numel() > 0 else x.max()


@program(x="float tokens=10 4")
class JoinSelections(nn.Module):
    def forward(self, x):
        up, down = x[x[:, 0] > 0], x[x[:, 0] <= 0]
        if up.shape[0] < down.shape[0]:
            up, down = down, up
        return torch.cat([up * 2, down]).cumsum(0)[-1]


@program(x="float tokens=10 4")
class ChainedSelection(nn.Module):
    def forward(self, x):
        part = x[x[:, 0] > 0]
        part = part[part[:, 1] > 0]
        scale = 1.0 if part.shape[0] > 1 else 3.0
        return x * scale


@program(x="float tokens=10 4")
class CountByItem(nn.Module):
    def forward(self, x):
        count = (x[:, 0] > 0).sum().item()
        return x[:count].sum(0) if count else x.mean(0)


@program(x="float tokens=10 4")
class SplitAtPlace(nn.Module):
    def forward(self, x):
        place = int(x[:, 0].argmax())
        return x[:place].sum(0) - x[place:].sum(0)


@program(x="float tokens=10 4")
class SliceByValues(nn.Module):
    def forward(self, x):
        start = x[:, 0].argmin()
        stop = x[:, 1].argmax()
        if start > stop:
            start, stop = stop, start
        return x[start : stop + 1].sum(0)


@program(x="float 1 height=8 width=10")
class BoundingBox(nn.Module):
    """The box around what is positive."""

    def forward(self, x):
        y, z = torch.where(x[0] > 1)
        if y.numel() == 0:
            return torch.zeros(4)
        return torch.stack([y.min(), z.min(), y.max(), z.max()]).float()


@program(x="float 1 height=8 width=10")
class CropToContent(nn.Module):
    def forward(self, x):
        rows = (x[0] > 1).any(1).nonzero()[:, 0]
        if rows.shape[0] < 2:
            return x[0].sum(0)
        return x[0, int(rows[0]) : int(rows[-1]) + 1].sum(0)


@program(x="float 1 height=8 width=10")
class Peaks(nn.Module):
    """Keypoints of a heat map."""

    def forward(self, x):
        top = F.max_pool2d(x, 3, 1, 1)
        places = ((x == top) & (x > 0.5)).nonzero()
        values = x[places[:, 0], places[:, 1], places[:, 2]]
        if len(values) > 5:
            values = values.topk(5).values
        return values.sort().values


@program(x="float 1 height=8 width=10")
class LabelsPresent(nn.Module):
    def forward(self, x):
        labels = x.clamp(-3, 3).round().long()
        return torch.stack([(labels == v).sum() for v in labels.unique()])


@program(x="float batch=3 height=8 width=8")
class PerImageCounts(nn.Module):
    def forward(self, x):
        found = []
        for image in x:
            mask = image > 1.0
            found.append(image[mask].mean() if mask.any() else image.new_tensor(0.0))
        return torch.stack(found)


@program(x="float batch=3 boxes=7 4")
class RaggedImages(nn.Module):
    """The detections of each image, padded to the most."""

    def forward(self, x):
        kept = [boxes[boxes[:, 0] > 0] for boxes in x]
        most = max(len(k) for k in kept)
        return torch.stack([F.pad(k, (0, 0, 0, most - len(k))) for k in kept])


@program(x="float batch=3 boxes=7 4")
class PadSequences(nn.Module):
    def forward(self, x):
        return nn.utils.rnn.pad_sequence([boxes[boxes[:, 0] > 0] for boxes in x], batch_first=True)


@program(x="float batch=3 boxes=7 4")
class CountsPerImage(nn.Module):
    def forward(self, x):
        counts = [int((b[:, 0] > 0).sum()) for b in x]
        return torch.tensor(counts), x.sum()


@program(x="float points=20 3")
class Voxels(nn.Module):
    def forward(self, x):
        places, inverse, counts = torch.unique(
            x.clamp(-4, 4).round().long(), dim=0, return_inverse=True, return_counts=True
        )
        sums = torch.zeros(places.shape[0], 3).index_add_(0, inverse, x)
        return sums / counts[:, None]


@program(x="float points=20 3")
class FarthestPoints(nn.Module):
    def forward(self, x):
        chosen = [torch.tensor(0)]
        distance = ((x - x[0]) ** 2).sum(-1)
        for _ in range(min(4, len(x)) - 1):
            chosen.append(distance.argmax())
            distance = torch.minimum(distance, ((x - x[chosen[-1]]) ** 2).sum(-1))
        return torch.stack(chosen)


@program(x="float points=20 3")
class BallQuery(nn.Module):
    def forward(self, x):
        near = torch.cdist(x, x) < 1.5
        index = torch.where(near, torch.arange(len(x)), len(x)).sort(-1).values[:, :4]
        index = torch.where(index == len(x), index[:, :1], index)
        return x[index].amax(1)


@program(x="float points=20 3")
class OutlierRejection(nn.Module):
    def forward(self, x):
        distance = x.norm(dim=1)
        inside = distance < distance.mean() + distance.std()
        if inside.sum() < 3:
            return x.mean(0)
        return x[inside].mean(0)


@program(scores="unit a=6 b=8")
class GreedyMatching(nn.Module):
    def forward(self, scores):
        s, matches = scores.clone(), []
        for _ in range(min(s.shape)):
            best = s.argmax()
            row, column = best // s.shape[1], best % s.shape[1]
            if s[row, column] < 0.3:
                break
            matches.append(torch.stack([row, column]))
            s[row] = -1
            s[:, column] = -1
        return torch.stack(matches) if matches else torch.zeros(0, 2, dtype=torch.long)


@program(scores="unit a=6 b=8")
class MutualNearest(nn.Module):
    def forward(self, scores):
        forward, back = scores.argmax(1), scores.argmax(0)
        mutual = back[forward] == torch.arange(scores.shape[0])
        valid = mutual & (scores.amax(1) > 0.2)
        return torch.stack([valid.nonzero()[:, 0], forward[valid]], 1)


@program(scores="unit a=6 b=8")
class AnchorMatcher(nn.Module):
    def forward(self, scores):
        if scores.numel() == 0:
            raise ValueError("no anchors")
        best, match = scores.max(0)
        match = torch.where(best < 0.3, -1, match)
        between = (best >= 0.3) & (best < 0.7)
        match[between] = -2
        return match
