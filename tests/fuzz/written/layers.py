"""Programs of torch's layers at odd sizes, and of torch's own means: scripts, maps, conditions, subclasses."""

import warnings

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=2 3 height=7 width=9")
class PoolsOdd(nn.Module):
    def forward(self, x):
        a = F.max_pool2d(x, 3, 2, 1, ceil_mode=True)
        b = F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)
        c = F.avg_pool2d(x, 2, ceil_mode=True, divisor_override=3)
        return a, b, c, F.lp_pool2d(x.abs() + 1, 2, 2)


@program(x="float batch=2 3 height=7 width=9")
class PoolWithIndices(nn.Module):
    def forward(self, x):
        y, i = F.max_pool2d(x, 2, return_indices=True)
        return F.max_unpool2d(y, i, 2, output_size=x.shape[2:]), i


@program(x="float batch=2 3 height=7 width=9")
class AdaptivePools(nn.Module):
    def forward(self, x):
        h, w = x.shape[2:]
        return (
            F.adaptive_avg_pool2d(x, (3, None)),
            F.adaptive_max_pool2d(x, 2),
            F.adaptive_avg_pool2d(x, ((h + 1) // 2, w)),
        )


@program(x="float batch=2 3 height=7 width=9")
class ResizeModes(nn.Module):
    def forward(self, x):
        h, w = x.shape[2:]
        return (
            F.interpolate(x, scale_factor=0.5, mode="nearest"),
            F.interpolate(x, size=(h * 2 - 1, w + 3), mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=(1.5, 0.7), mode="nearest-exact"),
            F.interpolate(x, size=(5, 5), mode="area"),
        )


@program(x="float batch=2 3 height=7 width=9")
class ResizeDownAndUp(nn.Module):
    def forward(self, x):
        y = F.interpolate(x, scale_factor=1 / 3, mode="bilinear", antialias=True)
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear")


@program(x="float batch=2 3 height=7 width=9")
class PadModes(nn.Module):
    def forward(self, x):
        return (
            F.pad(x, (1, 2, 0, 1), "reflect"),
            F.pad(x, (2, 2, 0, 0), "replicate"),
            F.pad(x, (1, 0, 0, 1), "circular"),
            F.pad(x, (-1, 2), value=3),
        )


@program(x="float batch=2 3 height=7 width=9")
class SamePadding(nn.Module):
    """TensorFlow's padding, as efficientnets have it."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 2)

    def forward(self, x):
        ph, pw = (max((-(-n // 2) - 1) * 2 + 3 - n, 0) for n in x.shape[-2:])
        return self.conv(F.pad(x, [pw // 2, pw - pw // 2, ph // 2, ph - ph // 2]))


@program(x="float batch=2 3 length=9")
class Convolutions1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.causal = nn.Conv1d(3, 3, 3, dilation=2)
        self.same = nn.Conv1d(3, 3, 4, padding="same")
        self.up = nn.ConvTranspose1d(3, 3, 4, 2, 1, output_padding=1)
        self.circular = nn.Conv1d(3, 3, 3, padding=1, padding_mode="circular")

    def forward(self, x):
        return self.causal(F.pad(x, (4, 0))), self.same(x), self.up(x)[..., : x.shape[-1]], self.circular(x)


@program(x="float batch=2 4 height=7 width=9")
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.group, self.instance = nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True)
        self.local = nn.LocalResponseNorm(3)

    def forward(self, x):
        return self.group(x), self.instance(x), self.local(x), F.layer_norm(x, x.shape[1:]), F.normalize(x, dim=1)


@program(x="float batch=2 length=5 6")
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 4, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(8, 3, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, n = self.gru(y.flip(1))
        return z[:, -1], n[-1], h[-2:].mean(0), c[0]


@program(x="float length=5 batch=2 6")
class RecurrentWithState(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 4, proj_size=3)
        self.rnn = nn.RNN(6, 4, nonlinearity="relu", bidirectional=True)
        self.cell = nn.GRUCell(6, 4)

    def forward(self, x):
        h = (x.new_ones(1, x.shape[1], 3), x.new_zeros(1, x.shape[1], 4))
        return self.lstm(x, h)[0], self.rnn(x)[1], self.cell(x[0]), self.cell(x[-1], x.new_ones(x.shape[1], 4))


@program(x="float batch=2 length=5 8", mask="mask batch=2 length=5")
class AttentionFullyMasked(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, mask):
        return self.attention(x, x, x, key_padding_mask=mask, need_weights=False)[0].nan_to_num(0)


@program(x="float batch=2 length=5 8", mask="mask batch=2 length=5")
class ScaledDotMasked(nn.Module):
    def forward(self, x, mask):
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        a = F.scaled_dot_product_attention(q, q, q, attn_mask=mask[:, None, None])
        b = F.scaled_dot_product_attention(q, q, q, is_causal=True)
        return a.nan_to_num(0), b, (q @ q.mT).masked_fill(mask[:, None, None], -torch.inf).softmax(-1).nan_to_num(0)


@program(x="float batch=2 length=5 8", mask="mask batch=2 length=5")
class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)

    def forward(self, x, mask):
        mask = mask.clone()
        mask[:, 0] = False
        return self.layer(
            x, src_key_padding_mask=mask, src_mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        )


@program(x="float batch=2 length=5 8")
class GroupedQueries(nn.Module):
    def forward(self, x):
        q = x.unflatten(-1, (4, 2)).transpose(1, 2)
        k = q[:, :2]
        return F.scaled_dot_product_attention(q, k, k, enable_gqa=True), F.scaled_dot_product_attention(
            q, q[:, :, :1], q[:, :, :1]
        )


@program(x="float batch=2 length=5 8")
class LastQueryCausal(nn.Module):
    """A decoder's step: fewer queries than keys."""

    def forward(self, x):
        q = x[:, -2:]
        n, m = q.shape[1], x.shape[1]
        mask = torch.ones(n, m, dtype=torch.bool).tril(m - n)
        return F.scaled_dot_product_attention(q, x, x, attn_mask=mask), F.scaled_dot_product_attention(
            q, x, x, is_causal=True
        )


def _script(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit.script is deprecated, and still in many models
        return torch.jit.script(code)


@_script
def _scripted(x: torch.Tensor, n: int):
    total = torch.zeros_like(x)
    for i in range(n):
        if bool(x.sum() > 0):  # noqa: SIM108
            total = total + x * i
        else:
            total = total - i
    return total


@program(x="float batch=3 4")
class CallsScript(nn.Module):
    def forward(self, x):
        return _scripted(x, x.shape[0]), _scripted(-x, 2)


@_script
class _Box:
    def __init__(self, x: torch.Tensor):
        self.x = x

    def twice(self):
        return self.x * 2


@program(x="float batch=3 4")
class CallsScriptClass(nn.Module):
    def forward(self, x):
        return _Box(x + 1).twice()


class _Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        if x.max() > 3:
            return torch.round(x) * scale
        return x * scale

    @staticmethod
    def backward(ctx, g):
        return g, None


@program(x="float batch=3 4")
class AutogradFunction(nn.Module):
    def forward(self, x):
        return _Straight.apply(x, 0.5), _Straight.apply(x * 10, x.shape[0])


@program(x="float batch=3 4")
class Gradients(nn.Module):
    def forward(self, x):
        return torch.func.grad(lambda y: (y**3).sum())(x), torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1]


@program(x="float batch=3 4")
class VmapOfFunction(nn.Module):
    def forward(self, x):
        def one(row, scale):
            return (row * scale).softmax(-1) @ row

        return torch.vmap(one, in_dims=(0, None))(x, 2.0), torch.vmap(lambda c: c.cumsum(0), in_dims=1, out_dims=1)(x)


@program(x="float batch=3 4")
class Condition(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, (x,))


@program(x="float batch=3 4")
class NestedCondition(nn.Module):
    def forward(self, x):
        def large(v):
            return torch.cond(v.max() > 5, lambda u: u / u.max(), lambda u: u + 1, (v,))

        return torch.cond(x.abs().sum() > 3, large, lambda v: v * x.shape[0], (x,))


@program(x="float batch=3 4")
class ConditionOnSize(nn.Module):
    def forward(self, x):
        return torch.cond(torch.tensor(x.shape[0] > 4), lambda v: v.cumsum(0), lambda v: v * 1.5, (x,))


class _Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result * 2 if func is torch.add else result


@program(x="float batch=3 4")
class TensorSubclass(nn.Module):
    def forward(self, x):
        y = torch.add(x.as_subclass(_Tagged), 1)
        return y.as_subclass(torch.Tensor) + 1


class _Wrapped:
    """What __torch_function__ lets stand for a tensor."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.value if isinstance(a, cls) else a for a in args]
        return cls(func(*args, **(kwargs or {})) + 1)


@program(x="float batch=3 4")
class TensorLike(nn.Module):
    def forward(self, x):
        return torch.relu(torch.mul(_Wrapped(x), 2)).value


@program(x="float batch=3 4")
class NoGradForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    @torch.inference_mode()
    def forward(self, x):
        return self.layer(x) if not torch.is_grad_enabled() else self.layer(x) * 2


@program(x="float batch=3 4")
class GradModeDecides(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            z = (y**2).sum()
        return x * 2 if z.requires_grad else x


@program(x="float batch=3 4")
class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.layer, x, use_reentrant=False)


@program(x="float batch=3 4")
class DropoutAlways(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.0, training=True), F.dropout(x, 0.5, self.training), F.alpha_dropout(x, 0.3, False)


@program(x="float batch=3 4")
class TrainingFlags(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        self.norm.train(x.shape[0] > 10)
        return self.norm(x)


@program(x="float batch=3 4")
class Distributions(nn.Module):
    def forward(self, x):
        d = torch.distributions.Normal(x, x.exp().clamp(1e-3, 10))
        return d.log_prob(torch.zeros_like(x)), d.entropy(), torch.distributions.Categorical(logits=x).entropy()


@program(x="float batch=3 4")
class LinearAlgebra(nn.Module):
    def forward(self, x):
        a = x.mT @ x + torch.eye(4) * 3
        return (
            torch.linalg.det(a / 10),
            torch.linalg.solve(a, torch.eye(4)[:, :1]),
            torch.linalg.norm(x, ord=torch.inf, dim=1),
        )


@program(x="float batch=3 4", bins="6 batch=3 length=5")
class BagOfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(6, 4, mode="max")
        self.mean = nn.EmbeddingBag(6, 4, mode="mean", padding_idx=0)

    def forward(self, x, bins):
        return self.bag(bins) + x, self.mean(bins)


@program(x="float batch=2 3 height=7 width=9")
class SampleGrid(nn.Module):
    def forward(self, x):
        theta = torch.tensor([[1.0, 0.2, 0.1], [-0.1, 0.9, 0.0]]).expand(x.shape[0], 2, 3)
        grid = F.affine_grid(theta, x.shape, align_corners=False)
        return F.grid_sample(x, grid, padding_mode="border", align_corners=False), F.grid_sample(
            x, grid, mode="nearest", padding_mode="reflection", align_corners=True
        )


@program(x="float batch=2 3 height=7 width=9")
class ShiftedWindows(nn.Module):
    def forward(self, x):
        h, w = x.shape[2:]
        y = F.pad(x, (0, -w % 4, 0, -h % 4)).roll((-2, -2), (2, 3))
        y = y.unflatten(2, (-1, 4)).unflatten(4, (-1, 4)).permute(0, 2, 4, 1, 3, 5).flatten(0, 2)
        y = y - y.mean((2, 3), keepdim=True)
        nh, nw = -(-h // 4), -(-w // 4)
        y = y.view(-1, nh, nw, 3, 4, 4).permute(0, 3, 1, 4, 2, 5).reshape(-1, 3, nh * 4, nw * 4)
        return y.roll((2, 2), (2, 3))[..., :h, :w]


@program(x="float batch=2 3 height=7 width=9")
class LossAsOutput(nn.Module):
    def forward(self, x):
        return (
            F.cross_entropy(x, x.argmax(1)),
            F.smooth_l1_loss(x, x.round()),
            F.kl_div(x.log_softmax(1), x.softmax(1), reduction="batchmean"),
            F.huber_loss(x, -x, reduction="none"),
        )


@program(x="float batch=3 4")
class Activations(nn.Module):
    def forward(self, x):
        return (
            F.gelu(x, approximate="tanh"),
            F.mish(x),
            F.softplus(x, 2, 5),
            F.hardshrink(x),
            F.rrelu(x),
            F.threshold(x, 0.1, -2),
            F.logsigmoid(x),
            F.softmin(x, -1),
            F.prelu(x, torch.tensor([0.2])),
        )


@program(x="float batch=3 4")
class SpecialFunctions(nn.Module):
    def forward(self, x):
        return (
            torch.expm1(x.clamp(-5, 5)),
            torch.erfinv(x.tanh()),
            torch.lgamma(x.abs() + 0.1),
            torch.sinc(x),
            torch.xlogy(x.abs(), x.abs()),
            torch.logaddexp(x, -x),
            torch.special.entr(x.sigmoid()),
            x.logit(1e-3),
        )


@program(x="float batch=3 length=6")
class Statistics(nn.Module):
    def forward(self, x):
        return (
            x.std(1),
            x.var(0, correction=0),
            torch.std_mean(x, 1, correction=0),
            x.logsumexp(1),
            x.norm(p=3, dim=1),
            x.T.cov() if x.shape[0] > 1 else x,
            x.aminmax(),
        )
