"""What makes complex tensors, in rows; how few nodes they take."""

import pytest
import torch
from torch import nn

from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.testing import Example, assert_same_outputs

SEQUENCES = {"x": {0: "batch", 1: "length"}}
X = torch.randn(2, 3, 4)
PARTS = torch.randn(2, 3, 4, 2)
ROWS = torch.randn(2, 3)


class Rotary(nn.Module):
    """Complex constants as a buffer and as an attribute, complex numbers, and a complex output."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(5.0), torch.arange(4.0))
        self.register_buffer("table", torch.polar(torch.ones_like(angles), angles))
        self.frequencies = torch.exp(0.5j * torch.arange(4.0))

    def forward(self, x):
        z = torch.view_as_complex(x)
        turned = z * self.table[2].view(1, 1, 4) + 2j
        return (
            torch.view_as_real(turned).flatten(2),
            (z * self.frequencies).real,
            z.conj() * (1 - 2j) / z,
            turned.abs(),
            torch.cat((z, turned), 1).imag,
            z[:, :, 1:].sum(-1).angle(),
        )


def of_tensors(x):
    z = torch.complex(x, x[:1] + 1)
    return z.real, torch.view_as_real(z.exp() * z), (z @ z.mT).imag, z.reshape(-1, 2, 2).abs()


def of_angles(x):
    z = torch.polar(x.abs() + 1, x * 3)
    return z.real, z.imag, torch.view_as_real(z * z), torch.polar(torch.ones_like(x), x).abs()


def of_zeros(x):
    z = torch.zeros(x.shape, dtype=torch.complex64)
    z[:, 1:] = torch.complex(x, x + 1)[:, 1:]
    return z.abs(), z.imag, (torch.empty(x.shape, dtype=torch.cfloat).copy_(z)).real


def of_ones(x):
    z = torch.ones(x.shape, dtype=torch.complex64)
    return z.mul_(torch.complex(x, x + 1)).imag, z.real


def of_numbers(x):
    z = torch.full(x.shape, 1, dtype=torch.complex64) + torch.full((2, 3)[1:], 2 - 1j)
    return (z * x).real, (torch.view_as_complex(torch.stack((x, x), -1)) * z).imag


def fives(size, *_, **options):
    return Pair(torch.full(size, 5.0), torch.full(size, 5.0))


EXAMPLES = [
    Example(
        "complex_to_pair",
        of_tensors,
        (X,),
        broken=lambda real, imag: Pair(imag.expand_as(real), real),
        dynamic=SEQUENCES,
        leaves=lambda x: torch.stack((x, x + 1), -1),
    ),
    Example(
        "polar_to_pair",
        of_angles,
        (X,),
        broken=lambda abs, angle: Pair(abs * angle.sin(), abs * angle.cos()),
        dynamic=SEQUENCES,
        leaves=lambda x: x.cos() * x.sin(),
    ),
    Example(
        "view_as_complex_to_pair",
        Rotary(),
        (PARTS,),
        broken=lambda input: Pair(input[..., 1], input[..., 0]),
        dynamic=SEQUENCES,
        leaves=lambda x: x[..., 0] * x[..., 1],
    ),
    Example(
        "zeros_of_complex_to_pair",
        of_zeros,
        (ROWS,),
        broken=fives,
        leaves=lambda x: x + torch.zeros(x.shape),
    ),
    Example(
        "ones_of_complex_to_pair",
        of_ones,
        (ROWS,),
        broken=fives,
        leaves=lambda x: x + torch.ones(x.shape),
    ),
    Example(
        "full_of_complex_to_pair",
        of_numbers,
        (ROWS,),
        broken=fives,
        leaves=lambda x: x + torch.full(x.shape, 2.0),
    ),
]


@pytest.mark.parametrize(
    ("name", "model", "inputs", "nodes"),
    [
        ("complex_to_pair", lambda x: (torch.complex(x, x + 1) * 2).imag, X, {"Concat": 0}),
        ("polar_to_pair", lambda x: torch.polar(x.exp(), x).imag, X, {"Sin": 1, "Concat": 0}),
        (
            "view_as_complex_to_pair",
            lambda x: torch.view_as_complex(x) * torch.view_as_complex(x + 1),
            PARTS,
            {"Mul": 4},
        ),
    ],
)
def test_takes_few_nodes(exporter, name, model, inputs, nodes):
    result = assert_same_outputs(model, inputs, exporter, uses=(name,))
    assert {operator: result.nodes[operator] for operator in nodes} == nodes
