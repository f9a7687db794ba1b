import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat.functional.complex import Pair, is_complex, with_pairs

Z, W = torch.randn(2, 3, 4, dtype=torch.complex64), torch.randn(2, 3, 4, dtype=torch.complex64)


def _in_place(z, w):
    return z.clone().mul_(w).add_(w.conj()).sub_(w, alpha=2).div_(w).neg_()


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
