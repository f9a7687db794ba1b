"""Every program comes out right on every branch, on both exporters, and is untouched afterwards."""

import numpy as np
import pytest
import torch

from control_flow.programs import PROGRAMS
from torch_onnx_compat import export_compat


def outputs(result):
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        return [leaf for value in result.values() for leaf in outputs(value)]
    if isinstance(result, (tuple, list)):
        return [leaf for value in result for leaf in outputs(value)]
    return [torch.tensor(result)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_on_every_branch(name, exporter):
    program = PROGRAMS[name]
    if exporter in program.skip:
        pytest.skip("refused on this exporter; see test_refused")
    result = export_compat(program.model, program.example, exporter=exporter, dynamic=program.dynamic)
    session = result.session()
    for sample in program.samples:
        feeds = {i.name: t.numpy() for i, t in zip(session.get_inputs(), sample, strict=True)}
        found = session.run(None, feeds)
        with torch.no_grad():
            wanted = outputs(program.model(*(t.clone() for t in sample)))
        for one, other in zip(found, wanted, strict=True):
            assert one.shape == tuple(other.shape)
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-4, atol=1e-4)
