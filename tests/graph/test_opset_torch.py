"""Modules of torch, exported at opset 20 by the dynamo exporter and taken down, against eager torch."""

import logging
import warnings

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn

from torch_onnx_compat.graph.opset.convert import convert

OLD = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7)
BEYOND_OLD = {"convolutions", "attention"}
"""With torch 2.6, whose own export these tests begin with: BatchNorm is refused, axes of ReduceMean are computed."""


class Upsampled(nn.Module):
    def forward(self, x):
        y = nn.functional.interpolate(x, scale_factor=2, mode="bilinear")
        return nn.functional.pad(y, (1, 0, 0, 2)).chunk(2, dim=1)[1].unsqueeze(1).amax(dim=(1, 2))


class Masked(nn.Module):
    def forward(self, x):
        scores = torch.einsum("nid,njd->nij", x, x).tril()
        return scores.clamp(-1, 2).softmax(1).mean(-1) + torch.arange(x.shape[1]).clamp(max=3)


MODULES = {
    "convolutions": (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Hardswish(), nn.GroupNorm(2, 8), nn.Mish(), Upsampled()
        ),
        (2, 3, 8, 8),
    ),
    "attention": (
        nn.Sequential(
            nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True, norm_first=True), Masked()
        ),
        (3, 5, 16),
    ),
}


@pytest.fixture(scope="module")
def exported():
    """Exports a module once."""
    programs = {}

    def export(name):
        if OLD and name in BEYOND_OLD:
            pytest.skip("torch 2.6 does not export it, or not with constant axes")
        if name not in programs:
            module, shape = MODULES[name]
            programs[name] = _export(module.eval(), torch.randn(shape))
        return programs[name]

    return export


def _export(module, x):
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # torch's own, of every version
        program = torch.onnx.export(
            module, (x,), dynamo=True, opset_version=20, dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), verbose=False
        )
        other = torch.randn(x.shape[0] + 1, *x.shape[1:])
        return ir.to_proto(program.model), x, other, module(x), module(other)


@pytest.mark.parametrize("opset", [17, 13, 11])
@pytest.mark.parametrize("name", MODULES)
def test_matches_eager(oracle, exported, name, opset):
    proto, x, other, y, other_y = exported(name)
    lowered = oracle.converted(proto, opset)
    oracle.assert_written_for(lowered, opset)
    for given, expected in ((x, y), (other, other_y)):
        (actual,) = oracle.run(lowered, {lowered.graph.input[0].name: given.numpy()})
        np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-4, atol=2e-6)


def test_places_survive(oracle, exported):
    model = ir.from_proto(exported("attention")[0])
    convert(model, 13)
    key = "pkg.torch.onnx.name_scopes"
    norms = {node.metadata_props[key] for node in model.graph if node.op_type == "Sqrt" and key in node.metadata_props}
    assert {scope for scope in norms if "norm1" in scope}
    assert {scope for scope in norms if "norm2" in scope}
