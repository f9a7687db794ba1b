"""What has no equivalent is refused, with its place and the reason; nothing is written."""

import pytest
import torch
from torch import nn

from control_flow.refused_programs import REFUSED
from torch_onnx_compat import export_compat
from torch_onnx_compat.control_flow.run import session
from torch_onnx_compat.control_flow.run.refusal import EndlessRecursion, RefusedDecision
from torch_onnx_compat.errors import UnsupportedError

CASES = [pytest.param(name, e, id=f"{name}-{e}") for name, (*_, exporters) in REFUSED.items() for e in exporters]


@pytest.mark.parametrize(("name", "which"), CASES)
def test_refused(name, which, tmp_path):
    model, message, dynamic, _ = REFUSED[name]
    with pytest.raises(UnsupportedError, match=message) as error:
        export_compat(model, torch.rand(3, 4) + 0.1, tmp_path / "m.onnx", exporter=which, dynamic=dynamic)
    assert len(str(error.value)) < 1500
    assert not list(tmp_path.iterdir())


class Halves(nn.Module):
    """Two calls of itself in the second branch, each of which would be tried on its own."""

    def halves(self, x):
        return x.sum(0) if x.shape[0] < 2 else self.halves(x[: x.shape[0] // 2]) * 2 + self.halves(x[x.shape[0] // 2 :])

    def forward(self, x):
        return self.halves(x)


def test_a_recursion_without_an_end_is_met_once_in_the_search_and_once_in_the_export(tmp_path, monkeypatch):
    met = []
    make = session.refusal

    def refusal(reason, place="", kind=RefusedDecision):
        met.append(kind)
        return make(reason, place, kind)

    monkeypatch.setattr(session, "refusal", refusal)
    with pytest.raises(RefusedDecision, match="calls itself as often as the inputs decide"):
        export_compat(
            *(Halves(), torch.rand(6, 4), tmp_path / "m.onnx"), exporter="torchscript", dynamic={"x": {0: "n"}}
        )
    assert met == [EndlessRecursion] * 2
