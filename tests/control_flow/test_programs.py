"""Every program comes out right on every branch, on both exporters, and is untouched afterwards."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.torch_version import TorchVersion

from control_flow.programs import PROGRAMS, SIZES, Program
from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import UnsupportedError


def outputs(result):
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        return [leaf for value in result.values() for leaf in outputs(value)]
    if isinstance(result, (tuple, list)):
        return [leaf for value in result for leaf in outputs(value)]
    return [torch.tensor(result)]


@pytest.mark.one_exporter
@pytest.mark.parametrize("name", PROGRAMS)
def test_right_on_every_branch(name, exporter):
    check(PROGRAMS[name], exporter)


def check(program, exporter):
    """Exports a program and runs the file on every sample."""
    try:
        result = export_compat(program.model, program.example, exporter=exporter, dynamic=program.dynamic)
    except UnsupportedError as refusal:
        if exporter == "dynamo" and TorchVersion(torch.__version__) < "2.9":
            pytest.skip(f"torch.export of this version refuses: {refusal}")
        raise
    session = result.session()
    for sample in program.samples:
        feeds = {i.name: t.numpy() for i, t in zip(session.get_inputs(), sample, strict=True)}
        found = session.run(None, feeds)
        with torch.no_grad():
            wanted = outputs(program.model(*(t.clone() for t in sample)))
        for one, other in zip(found, wanted, strict=True):
            assert one.shape == tuple(other.shape)
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-4, atol=1e-4)


class RoundsUp(nn.Module):
    """Pads to a multiple of 3, as local attention does; torch.export keeps the quotient symbolic."""

    def forward(self, x):
        parts = x.shape[0] / 3
        if parts.is_integer():
            return x * 2
        return F.pad(x, (0, 0, 0, math.ceil(parts) * 3 - x.shape[0]))


def test_a_number_from_outside_is_rounded_in_an_if():
    check(Program(RoundsUp(), SIZES, "batch"), "torchscript")
