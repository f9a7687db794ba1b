"""What sizes do as Python's whole numbers do, in torch.export."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends.internals.numbers import complete_numbers

KINDS = (torch.SymInt, torch.SymFloat)


class Bits(nn.Module):
    """Masks of one run of ones, of several, of a negative number; a size as the mask, and as the count of a shift."""

    def forward(self, x):
        n, m = x.shape[1], x.shape[0]
        parts = [n & 7, n & 10, n & -4, (3 - n) & 6, n & m, n | 5, n ^ m, 9 ^ n, ~n, n >> 1, (2 - n) >> 2, n << 2]
        parts += [1 << (m & 7), 300 >> m, *divmod(n, 3), *divmod(20, n), 12 & n, 12 | n]
        return x.sum() * torch.tensor([float(part) for part in parts])


class PowerOfTwo(nn.Module):
    """torch writes the condition that the capture assumes with a function of its own."""

    def forward(self, x):
        n = x.shape[1]
        return x.sum(1) if n & (n - 1) == 0 else x.mean(1)


@pytest.mark.dynamo_from("2.9", "torch does not keep the conditions on sizes, and fixes sizes in lists of numbers")
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("model", [Bits(), PowerOfTwo()], ids=lambda model: type(model).__name__)
def test_bits_of_sizes(model, verify, exporter):
    x = torch.randn(3, 6)
    dynamic = {"x": {0: "rows", 1: "columns"}}
    session = export_compat(model.eval(), (x,), dynamic=dynamic, exporter=exporter, verify=verify).session()
    for shape in ((3, 6), (2, 7), (1, 8), (6, 13), (4, 16), (5, 1)):
        x = torch.randn(shape)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x))


def test_masks_are_exact():
    """Of every number and every mask of seven bits, the negative ones too."""
    with complete_numbers():
        mask_of = vars(torch.SymInt)["__and__"]
        either_of, one_of = vars(torch.SymInt)["__or__"], vars(torch.SymInt)["__xor__"]
    for number in range(-70, 70):
        for mask in range(-70, 70):
            assert mask_of(number, mask) == number & mask
            assert either_of(number, mask) == number | mask
            assert one_of(number, mask) == number ^ mask


def _fail(before):
    assert [dict(vars(kind)) for kind in KINDS] != before
    raise ValueError("within")


def test_torchs_numbers_are_as_before():
    before = [dict(vars(kind)) for kind in KINDS]
    with pytest.raises(ValueError, match="within"), complete_numbers():
        _fail(before)
    assert [dict(vars(kind)) for kind in KINDS] == before
