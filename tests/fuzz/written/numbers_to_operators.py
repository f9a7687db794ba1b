"""Programs that give an operator a number made of a size: a window, a step, a count, an order, an epsilon, a slope."""

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class RolledByHalf(nn.Module):
    def forward(self, x):
        return torch.roll(x, x.shape[2] // 2, 2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class RolledMethod(nn.Module):
    def forward(self, x):
        return x.roll(x.shape[2] // 2, -1)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class WindowsOfHalf(nn.Module):
    def forward(self, x):
        return x.unfold(2, x.shape[2] // 2, 1).sum(-1)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class RepeatedByThird(nn.Module):
    def forward(self, x):
        return x.repeat(1, 1, x.shape[2] // 3)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class TiledByThird(nn.Module):
    def forward(self, x):
        return torch.tile(x, (x.shape[2] // 3,))


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class PaddedByHalf(nn.Module):
    def forward(self, x):
        return F.pad(x, (0, x.shape[2] // 2))


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class SteppedSlice(nn.Module):
    def forward(self, x):
        return x[:, :, :: max(1, x.shape[2] // 4)]


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class AdaptivePoolToHalf(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool1d(x, x.shape[2] // 2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class ConvPadding(nn.Module):
    def forward(self, x):
        return F.conv1d(x, torch.ones(1, 3, 3), padding=x.shape[2] // 4)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class ConvDilation(nn.Module):
    def forward(self, x):
        return F.conv1d(x, torch.ones(1, 3, 2), dilation=x.shape[2] // 4)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class AveragedOverThird(nn.Module):
    def forward(self, x):
        return F.avg_pool1d(x, x.shape[2] // 3)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class ResizedToHalf(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=x.shape[2] // 2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class ResizedToDouble(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=x.shape[2] * 2, mode="linear")


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class Chunks(nn.Module):
    def forward(self, x):
        return x.chunk(2, 2)[0].sum(2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class SplitIntoHalves(nn.Module):
    def forward(self, x):
        return x.split(x.shape[2] // 2, 2)[0]


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class DiagonalAtHalf(nn.Module):
    def forward(self, x):
        return torch.diagonal(x, x.shape[2] // 2 - 2, 1, 2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class TriangleAtHalf(nn.Module):
    def forward(self, x):
        return torch.tril(x, x.shape[2] // 2 - 3)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class NarrowedToHalf(nn.Module):
    def forward(self, x):
        return x.narrow(2, 1, x.shape[2] // 2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class SelectedMiddle(nn.Module):
    def forward(self, x):
        return x.select(2, x.shape[2] // 2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class LargestHalf(nn.Module):
    def forward(self, x):
        return x.topk(x.shape[2] // 2, 2).values


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class Median(nn.Module):
    def forward(self, x):
        return x.kthvalue(x.shape[2] // 2 + 1, 2).values


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class OneHotOfLength(nn.Module):
    def forward(self, x):
        return F.one_hot(torch.arange(3), x.shape[2]).float() * x[0]


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class IdentityOfLength(nn.Module):
    def forward(self, x):
        return x @ torch.eye(x.shape[2])[:, :2]


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class Linspace(nn.Module):
    def forward(self, x):
        return x * torch.linspace(0, 1, x.shape[2])


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class Logspace(nn.Module):
    def forward(self, x):
        return x * torch.logspace(0, 1, x.shape[2])


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class SummedHalf(nn.Module):
    def forward(self, x):
        return x[..., : x.shape[2] // 2].cumsum(-1)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class TurnedByRemainder(nn.Module):
    def forward(self, x):
        return torch.rot90(x, x.shape[2] % 4, (1, 2))


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class InterleavedThird(nn.Module):
    def forward(self, x):
        return x.repeat_interleave(x.shape[2] // 3, 2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class Unflattened(nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0], x.shape[1] * x.shape[2]).unflatten(1, (x.shape[2], 3))


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class ExpandedToDouble(nn.Module):
    def forward(self, x):
        return x.mean(2, keepdim=True).expand(-1, -1, x.shape[2] * 2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class StdCorrection(nn.Module):
    def forward(self, x):
        return x.std(2, correction=x.shape[2] // 5)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class QuantileOfFraction(nn.Module):
    def forward(self, x):
        return torch.quantile(x, 1 / x.shape[2], 2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class LayerNormOfShape(nn.Module):
    def forward(self, x):
        return F.layer_norm(x, x.shape[2:])


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class LayerNormEps(nn.Module):
    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], eps=1e-5 * x.shape[2])


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class LeakySlope(nn.Module):
    def forward(self, x):
        return F.leaky_relu(x, 1 / x.shape[2])


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class SoftplusBeta(nn.Module):
    def forward(self, x):
        return F.softplus(x, beta=x.shape[2] / 9)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class NormalizeEps(nn.Module):
    def forward(self, x):
        return F.normalize(x, p=2, dim=2, eps=x.shape[2] * 1.0)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class NormOfPower(nn.Module):
    def forward(self, x):
        return torch.norm(x, p=x.shape[2] // 4, dim=1)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class ClampedToFraction(nn.Module):
    def forward(self, x):
        return x.clamp(max=1 / x.shape[2])


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class AddAlpha(nn.Module):
    def forward(self, x):
        return torch.add(x, x, alpha=x.shape[2])


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class FilledWithLength(nn.Module):
    def forward(self, x):
        return torch.full((3,), x.shape[2]) + x[0, :, 0]


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class ZerosOfLength(nn.Module):
    def forward(self, x):
        return torch.zeros(x.shape[2]) + x


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class Temperature(nn.Module):
    def forward(self, x):
        return torch.softmax(x / (x.shape[2] ** 0.5), 1)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class HannWindow(nn.Module):
    def forward(self, x):
        return x * torch.hann_window(x.shape[2])


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class OddNumbers(nn.Module):
    def forward(self, x):
        return torch.arange(1, x.shape[2], 2) * 1.0 + x[0, 0, :1]


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class ReshapedRest(nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0], 3, -1, 1).transpose(1, 2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class PoolStride(nn.Module):
    def forward(self, x):
        return F.max_pool1d(x, 2, stride=max(1, x.shape[2] // 4))


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class GroupNormEps(nn.Module):
    def forward(self, x):
        return F.group_norm(x, 3, eps=x.shape[2] * 1e-3)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class InstanceNormEps(nn.Module):
    def forward(self, x):
        return F.instance_norm(x, eps=x.shape[2] * 1e-2)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class CeluAlpha(nn.Module):
    def forward(self, x):
        return F.celu(x, x.shape[2] / 4)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class HardtanhBounds(nn.Module):
    def forward(self, x):
        return F.hardtanh(x, -1 / x.shape[2], 1 / x.shape[2])


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class ThresholdAndValue(nn.Module):
    def forward(self, x):
        return F.threshold(x, 1 / x.shape[2], float(x.shape[2]))


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class HuberDelta(nn.Module):
    def forward(self, x):
        return F.huber_loss(x, x * 0, delta=x.shape[2] / 9, reduction="none")


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class RreluBounds(nn.Module):
    def forward(self, x):
        return F.rrelu(x, 1 / x.shape[2], 1 / x.shape[2])


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class CosineEps(nn.Module):
    def forward(self, x):
        return F.cosine_similarity(x, x.flip(2), dim=1, eps=x.shape[2] * 0.1)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class ResponseNormAlpha(nn.Module):
    def forward(self, x):
        return F.local_response_norm(x, 2, alpha=x.shape[2] * 0.01)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class TimesDifferenced(nn.Module):
    def forward(self, x):
        return torch.diff(x, n=x.shape[2] // 5, dim=2)


@program({}, {"length": (1, 90)}, x="number batch=2 3 length=9")
class NanReplaced(nn.Module):
    def forward(self, x):
        return torch.nan_to_num(x, x.shape[2] * 0.1)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class BatchNormEps(nn.Module):
    def forward(self, x):
        return F.batch_norm(x, torch.zeros(3), torch.ones(3), eps=x.shape[2] * 1e-4)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class IsCloseTolerance(nn.Module):
    def forward(self, x):
        return torch.isclose(x, x * 1.01, atol=x.shape[2] * 1e-3)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class AddcmulValue(nn.Module):
    def forward(self, x):
        return torch.addcmul(x, x, x, value=x.shape[2] * 0.1)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class LerpWeight(nn.Module):
    def forward(self, x):
        return torch.lerp(x, x * 2, x.shape[2] * 0.1)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class HardshrinkLambda(nn.Module):
    def forward(self, x):
        return F.hardshrink(x, x.shape[2] * 0.05)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class EluAlpha(nn.Module):
    def forward(self, x):
        return F.elu(x, x.shape[2] * 0.1)


@program({}, {"length": (1, 90)}, x="float batch=2 3 length=9")
class FloatOfASize(nn.Module):
    def forward(self, x):
        return x.clamp(min=float(x.shape[2] * 1e-3))
