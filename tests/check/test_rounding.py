"""Decisions that hang on a rounding, in models whose own answer changes with it, and real errors beside them."""

import torch
from torch import nn

from torch_onnx_compat import Verify
from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.rounding import compare_outputs
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import prepare

ROWS, TIES = 60, 8


class NearTies(nn.Module):
    """Which of two sums is the greater, in 60 rows; in the first eight rounding alone tells."""

    def __init__(self):
        super().__init__()
        first = torch.rand(ROWS, 300, generator=torch.Generator().manual_seed(0))
        second = first + 1
        second[:TIES] = first[:TIES].flip(1)
        self.register_buffer("table", torch.stack((first, second)))

    def forward(self, x):
        return (self.table * x).sum(-1).argmax(0)


class Selects(nn.Module):
    """The rows above 0.3, one of which is at it but for rounding."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, x):
        scores = (x * self.weight).sum(-1)
        return x[scores > 0.3], scores[scores > 0.3]


class Truncates(nn.Module):
    def forward(self, x):
        return x.trunc()


def verdicts(model, x, change, how=None):
    prepared = prepare(model.eval(), (x,))
    observation = Observation(prepared)
    case = Case("example", prepared.inputs, observation.reference("example", prepared.inputs))
    found = [change(o.clone()).numpy() for o in case.reference.outputs]
    return compare_outputs([str(i) for i in range(len(found))], found, case, how or Verify(), observation)


def flipped(rows):
    def change(output):
        output[rows] = 1 - output[rows]
        return output

    return change


X = torch.full((300,), 0.7)


def test_what_rounding_decides_passes():
    (row,) = verdicts(NearTies(), X, flipped([0, 3]))
    assert row.ok
    assert "2 values off" in row.detail


def test_more_than_rounding_decides_does_not():
    (row,) = verdicts(NearTies(), X, flipped(range(TIES + 1)))
    assert not row.ok


def test_exact_inputs_are_no_excuse():
    """Without weights nothing is rounded before the decision, and whole numbers are exactly that."""
    x = torch.arange(300.0)
    (row,) = verdicts(Truncates(), x, lambda o: torch.cat((o[:1] + 1, o[1:])))
    assert not row.ok


def test_most_of_an_output_is_never_excused():
    (row,) = verdicts(NearTies(), X, flipped(range(ROWS // 2)))
    assert not row.ok


def test_the_callers_tolerance_is_the_last_word():
    (row,) = verdicts(NearTies(), X, flipped([0, 3]), Verify(rtol=1e-3))
    assert not row.ok


ABOVE, AT = torch.tensor([[0.4, 0.4], [0.9, 0.1]]), torch.tensor([[0.2, 0.1]])


def test_a_row_that_is_at_the_threshold():
    x = torch.cat((ABOVE, AT, AT / 2))
    without = 2 if len(Selects()(x)[0]) == 3 else 3
    other = [torch.cat((ABOVE, AT))[:without], torch.tensor([0.8, 1.0, 0.3])[:without]]
    assert all(row.ok for row in verdicts(Selects(), x, lambda o: other[0] if o.ndim > 1 else other[1]))


def test_a_row_that_is_not():
    x = torch.cat((ABOVE, AT, AT / 2))
    rows = verdicts(Selects(), x, lambda o: o[:1])
    assert not any(row.ok for row in rows)
