"""A plugin with a rewrite and a zoo.

Source: the identity is the identity.
"""

from types import SimpleNamespace

import torch
from torch import nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.zoo import Sample


class AcmeGate(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if float(x.sum()) < float("inf") else -x


@rewrite(AcmeGate, always=True, exactness=Exactness.BITWISE)
def acme_gate_to_identity(gate: AcmeGate) -> nn.Module:
    """Takes the gate for open."""
    return nn.Identity()


def build(name: str, size: tuple[int, int] | None = None) -> Sample:
    return Sample(nn.Sequential(nn.Conv2d(3, 2, 1), AcmeGate()), (torch.rand(1, 3, *(size or (4, 4))),))


zoo = SimpleNamespace(names=lambda: ["gated"], build=build)
