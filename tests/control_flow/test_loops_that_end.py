"""Loops without a bound: the search for decisions takes the example's branches, with which such a loop may not end."""

import pytest
import torch
import torch.nn.functional as F

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.control_flow.run import loop_plan
from torch_onnx_compat.control_flow.run.loop_plan import _ends
from torch_onnx_compat.result import ExportResult


def halves(x: torch.Tensor) -> torch.Tensor:
    while x.shape[1] > 1:
        if x.shape[1] % 2:
            x = F.pad(x, (0, 1), value=1.0)
        x = x[:, ::2] - x[:, 1::2]
    return x


def export(x: torch.Tensor) -> ExportResult:
    return export_compat(halves, x, dynamic={"x": {0: "b", 1: "n"}}, exporter="torchscript")


@pytest.mark.parametrize("size", [8, 9])
def test_a_branch_that_the_rounds_take_by_turns(size):
    result = export(torch.randn(2, size))
    for b, n in ((1, 1), (2, 2), (3, 3), (2, 7), (1, 12), (2, 17), (2, 33)):
        x = torch.randn(b, n)
        torch.testing.assert_close(result(x)[0], halves(x), rtol=1e-4, atol=1e-5)


def test_a_loop_that_would_not_end_is_refused(monkeypatch):
    monkeypatch.setattr(loop_plan, "MOST_ROUNDS", 2)
    with pytest.raises(CompatError, match="it has not ended after 2 rounds as the file would have them"):
        export(torch.randn(2, 9))


def test_rounds_are_counted():
    def body(number: torch.Tensor, limit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return number + 1 != limit, number + 1

    go, zero = torch.tensor(True), torch.tensor(0)
    assert _ends(body, go, (zero, torch.tensor(7)), 1)
    assert not _ends(body, go, (zero, torch.tensor(-1)), 1)
    assert _ends(body, torch.tensor(False), (zero, torch.tensor(-1)), 1)
