"""A size that is a key at the example: neither exporter can write it, and the error says what it is about."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError

X = torch.rand(1, 3, 12, 8)


class Get(nn.Module):
    table = {24: 1.0, 12: 2.0}  # noqa: RUF012

    def forward(self, x):
        return x * self.table.get(x.shape[2], 3.0)


class Contains(Get):
    def forward(self, x):
        h = x.shape[2]
        return x * (self.table[h] if h in self.table else 3.0)  # noqa: SIM401


class Literal(nn.Module):
    def forward(self, x):
        return x * {24: 1.0, 12: 2.0}.get(x.shape[2], 3.0)


class Apart(nn.Module):
    """What the remedy says."""

    def forward(self, x):
        return x * (1.0 if x.shape[2] == 24 else 2.0 if x.shape[2] == 12 else 3.0)


@pytest.mark.parametrize("kind", [Get, Contains, Literal])
def test_the_error_names_the_key(kind, exporter):
    with pytest.raises(CompatError) as refusal:
        export_compat(kind().eval(), X, dynamic={"x": {2: "height"}}, exporter=exporter)
    text = str(refusal.value)
    assert "test_keys_of_the_example.py:" in text
    assert "with == instead (if height == 224: ...)" in text
    assert "of dynamic" in text


def test_the_remedy_helps(exporter):
    result = export_compat(Apart().eval(), X, dynamic={"x": {2: "height"}}, exporter=exporter)
    for height in (24, 12, 7):
        x = torch.rand(1, 3, height, 8)
        assert torch.allclose(result(x)[0], Apart()(x))
