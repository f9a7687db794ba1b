import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import export_compat
from torch_onnx_compat.functional.complex import Pair, is_complex, with_pairs

Z, W = torch.randn(2, 3, 4, dtype=torch.complex64), torch.randn(2, 3, 4, dtype=torch.complex64)


def _in_place(z, w):
    return z.clone().mul_(w).add_(w.conj()).sub_(w, alpha=2).div_(w).neg_().tanh_().__iadd__(1).exp_()


def _assigned(z, w):
    changed = z.clone()
    part = changed[:, 1:]
    part[..., 0] = w[:, 1:, 0]
    part.copy_(part + 1)
    return changed


CALLS = {
    "arithmetic": lambda z, w: (z + w, z - w, 1 - z, 2 * z, z * w, z / w, 1 / w, -z, z**2, z + w.real, w.imag - z),
    "products": lambda z, w: (z @ w.mT, torch.einsum("bij,bkj->bik", z, w), torch.bmm(z, w.mH)),
    "contractions": lambda z, w: (
        *(torch.tensordot(z, w, dims) for dims in (0, ([0, 1], [0, 1]), ([2], [2]))),
        *(torch.einsum("bij,bkj,bkl->" + kept, z, w, z[..., :2]) for kept in ("bil", "ik", "")),
        torch.einsum("bij->ji", (z,)),
    ),
    "shapes": lambda z, w: (z.reshape(6, 4), z[:, 1:], z.flatten(1), z.unsqueeze(0), z.permute(2, 0, 1), z.roll(1, 1)),
    "pieces": lambda z, w: (
        *z.chunk(2, 2),
        *z.unbind(0),
        torch.cat((z, w), 1),
        torch.stack((z, w.real)),
        F.pad(z, (1, 2)),
    ),
    "sums": lambda z, w: (z.sum(1), z.mean((0, 2)), z.cumsum(-1)),
    "parts": lambda z, w: (z.real, torch.imag(z), torch.view_as_real(z), z.abs(), abs(z), z.angle(), z.conj() * w),
    "functions": lambda z, w: (torch.exp(z), z.reciprocal(), z.log(), torch.where(z.real > 0, z, w)),
    "exponentials": lambda z, w: (torch.log2(z), z.log10(), z.sqrt(), torch.rsqrt(w), z**0.5, z**7, z.pow(w.real)),
    "trigonometry": lambda z, w: (z.sin(), z.cos(), z.tan(), z.sinh(), z.cosh(), z.tanh(), z.sigmoid()),
    "lengths": lambda z, w: (z.sgn(), z.norm(), torch.norm(z, dim=1), torch.linalg.vector_norm(z, 1, 2, True)),
    "comparisons": lambda z, w: (z == z.real, z != w, z.isnan(), z.isinf(), z.isfinite(), (z - z).sgn() == 0),
    "layers": lambda z, w: (
        F.linear(z, w[0], w[0, :, 0]),
        F.conv1d(z, w.permute(2, 1, 0), w[0, 0], padding=1),
        F.conv2d(z[None], w[:, :2, None], stride=2),
    ),
    "values": lambda z, w: (
        z.masked_fill(z.real > 0, 2.0),
        z.masked_fill(z.real > 0, 1 - 2j),
        z.index_fill(1, torch.tensor([0]), -1),
        z.index_add(1, torch.tensor([0, 0, 2]), w),
        z.index_copy(1, torch.tensor([0, 2]), w[:, :2]),
        z.scatter(1, torch.tensor([[[0, 1, 2, 0]]]), w),
        z.scatter_add(1, torch.tensor([[[0, 1, 2, 0]]]), w),
        torch.lerp(z, w, 0.3),
        z.clone().masked_fill_(z.imag > 0, 0),
        z.clone().fill_(2).add_(w),
        z.clone().zero_(),
    ),
    "new": lambda z, w: (z.new_zeros(2, 3), z.new_ones((2,)), z.new_ones(3, dtype=torch.int64), torch.full_like(z, 3)),
    "statistics": lambda z, w: (
        z.var(),
        z.var(1),
        z.std(-1, unbiased=False),
        F.normalize(z, dim=-1),
        F.dropout(z, 0.5, False),
    ),
    "small": lambda z, w: (torch.expm1(z * 1e-4), torch.log1p(w * 1e-4), torch.log1p(z)),
    "many factors": lambda z, w: (
        torch.addcmul(z, z, w, value=2),
        torch.addcdiv(z, z, w),
        torch.baddbmm(z[:, :, :3], z, w.mT, beta=2),
        torch.addmm(z[0, :, :3], z[0], w[0].T, alpha=3),
        z.prod(-1),
        z.prod(1, keepdim=True),
        z.prod(),
        z.cumprod(1),
    ),
    "outer products": lambda z, w: (
        torch.outer(z[0, 0], w[0, 0]),
        torch.vdot(z[0, 0], w[0, 0]),
        torch.dot(z[0, 0], w[0, 0]),
        torch.inner(z, w),
        torch.kron(z[0], w[0]),
    ),
    "in place": lambda z, w: (*map(_in_place, (z, z[:, 1:]), (w, w[:, :2])), _assigned(z, w)),
    "constants": lambda z, w: (torch.zeros_like(z), torch.ones_like(z) * w),
    "types": lambda z, w: (z.to(torch.complex128), z.to(w.device), z.clone()),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_equals_complex_tensors(call):
    found, wanted = call(Pair.of(Z), Pair.of(W)), call(Z, W)
    for a, b in zip(found, wanted, strict=True):
        assert is_complex(a) == is_complex(b)
        torch.testing.assert_close(a.tensor() if isinstance(a, Pair) else a, b)


def test_has_a_complex_tensors_attributes():
    pair = Pair.of(Z)
    assert (pair.dtype, pair.shape, pair.dim(), len(pair)) == (Z.dtype, Z.shape, 3, 2)
    assert torch.is_complex(pair)
    assert not torch.is_floating_point(pair)


@pytest.mark.parametrize("z", [3e38 + 1e30j, 1e-30j, 0j, complex("inf"), 3e-39 + 4e-39j])
def test_length_neither_overflows_nor_vanishes(z):
    tensor = torch.tensor([z])
    torch.testing.assert_close(Pair.of(tensor).abs(), tensor.abs(), rtol=1e-5, atol=0.0)


@pytest.mark.parametrize(
    "z", [300 + 1j, -300 - 2j, 0j, 1e-20 + 1e-20j, -4 + 0j, -1e-30 - 1e-30j, 1j * 300, 1e38 + 1e38j]
)
@pytest.mark.parametrize("name", ["tanh", "tan", "sigmoid", "sqrt", "log"])
def test_functions_neither_overflow_nor_lose_digits(name, z):
    tensor = torch.tensor([z], dtype=torch.complex64)
    wanted = getattr(tensor.to(torch.complex128), name)().to(torch.complex64)
    found = getattr(Pair.of(tensor), name)().tensor()
    for part in ("real", "imag"):
        torch.testing.assert_close(getattr(found, part), getattr(wanted, part), rtol=3e-5, atol=1e-37)


def test_with_pairs_turns_constants_and_numbers():
    (z, number, real), kwargs = with_pairs(torch.add, (Z, 2j, W.real), {"alpha": 1})
    assert isinstance(z, Pair)
    assert torch.equal(torch.view_as_real(number), torch.tensor([0.0, 2.0]))
    assert real.dtype is torch.float32
    assert kwargs == {"alpha": 1}


def test_with_pairs_leaves_other_calls_alone():
    args, kwargs = (W.real, 2.0), {}
    assert with_pairs(torch.add, args, kwargs) == (args, kwargs)
    assert with_pairs(torch.linalg.svd, (Z,), kwargs)[0] == (Z,)


class Spectrum(nn.Module):
    """Functions of a spectrum, of each group one, as views of real numbers."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(3, 3, dtype=torch.complex64)

    def forward(self, x):
        z = torch.fft.rfft(x)
        made = [z.tanh(), z.sqrt(), z**2.5, torch.log1p(z), torch.expm1(z * 0.1), z.sgn(), z.cumprod(-1), self.mix(z)]
        made += [z.masked_fill(z.real > 0, 0), z.new_zeros(len(z), 2), torch.addcmul(z, z, z), F.normalize(z, dim=-1)]
        made += [z.clone().exp_(), torch.kron(z, z)[:2]]
        real = [z.norm(dim=-1), torch.linalg.vector_norm(z, dim=-1), z.var(-1), z == z, z.isnan(), z.isfinite()]
        return [torch.view_as_real(one) for one in made] + real


@pytest.mark.one_exporter
@pytest.mark.filterwarnings("ignore")
@pytest.mark.dynamo_from("2.10", "x[..., 0] is a Gather that onnxruntime does not load")
def test_files_hold_what_complex_functions_compute(exporter):
    model, x = Spectrum().eval(), torch.randn(5, 4)
    session = export_compat(model, x[:3], exporter=exporter, dynamic={"x": {0: "batch"}}).session()
    with torch.no_grad():
        for found, wanted in zip(session.run(None, {"x": x.numpy()}), model(x), strict=True):
            torch.testing.assert_close(torch.as_tensor(found), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", [float("nan"), float("inf")], ids=str)
def test_files_find_the_complex_numbers_that_are_none(value, exporter):
    class Finds(nn.Module):
        def forward(self, x):
            z = torch.complex(x, x * 0)
            return z.isnan(), z.isinf(), z.isfinite()

    x = torch.tensor([1.0, value, -2.0])
    found = export_compat(Finds().eval(), x, exporter=exporter).session().run(None, {"x": x.numpy()})
    for a, b in zip(found, Finds()(x), strict=True):
        assert a.tolist() == b.tolist()
