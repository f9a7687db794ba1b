"""The error of an output, and what eager half excuses."""

import numpy as np
import onnxruntime
import pytest
import torch

from torch_onnx_compat import Float16, export_compat
from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.precision.judge import Judge, errors_of
from torch_onnx_compat.prepare import prepare


def test_scores_are_not_excused_by_the_boxes_beside_them():
    exact = np.stack([np.full(100, 2000.0), np.linspace(0.1, 0.9, 100)])
    found = exact.copy()
    found[1, 50] += 0.1
    assert errors_of(found, exact).worst > 0.1


def test_a_value_near_zero_counts_by_what_is_usual_around_it():
    exact = np.array([1.0, -1.0, 1e-9] * 10)
    found = exact + 1e-4
    assert errors_of(found, exact).worst == pytest.approx(1.2e-4, rel=0.3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_wrong_where_eager_is_finite(bad):
    exact = np.ones(9)
    found = exact.copy()
    found[3] = bad
    assert errors_of(found, exact).worst == np.inf
    counts = np.arange(9) != 3
    assert errors_of(found, exact, counts).worst == 0.0


def test_of_whole_numbers_the_share_that_differs():
    error = errors_of(np.array([1, 2, 3, 5]), np.array([1, 2, 3, 4]))
    assert (error.worst, error.mean) == (1.0, 0.25)


def judged(function, x, off, half=None):
    """The row for a file that is off by some numbers."""
    observation = Observation(prepare(function, (x,)))
    reference = observation.reference("example", observation.prepared.inputs)
    case = Case("example", observation.prepared.inputs, reference)
    outputs = [(reference.outputs[0] + off).numpy()]
    judge = Judge(observation, half or Float16(), ["y"])
    return judge.judge(case, lambda inputs: outputs, lambda inputs: outputs)[0]


def test_the_limit_decides():
    x = torch.linspace(1, 2, 50)
    assert judged(lambda x: x * 2, x, 0.01).ok
    assert not judged(lambda x: x * 2, x, 0.2).ok
    assert not judged(lambda x: x * 2, x, 0.01, Float16(limit=1e-3)).ok


def test_eager_half_excuses_twice_its_error():
    x = torch.linspace(1, 2, 50)
    off = torch.zeros(50)
    off[::10] = 0.03
    row = judged(lambda x: torch.sin(x * 30), x, off)
    assert row.eager is not None
    assert row.eager.worst > 0.015
    assert row.ok


def test_eager_half_does_not_excuse_what_is_off_everywhere():
    row = judged(lambda x: torch.sin(x * 1000), torch.linspace(1, 2, 50), 0.5)
    assert row.eager is not None
    assert row.eager.worst > 0.25
    assert not row.ok


def test_values_that_the_example_has_few_of_are_judged():
    """A sum that the example keeps small, as it has one large value only, overflows where many are large."""

    class Energy(torch.nn.Module):
        def forward(self, x):
            return x.square().sum(-1).sqrt()

    x = torch.randn(2, 64, generator=torch.Generator().manual_seed(0))
    x[:, 5] = 180.0
    result = export_compat(Energy(), (x,), dynamic="batch", precision="float16")
    assert "spread values" in {row.case for row in result.precision.errors}
    session = onnxruntime.InferenceSession(result.model_bytes)
    many = torch.full_like(x, 150.0)
    (found,) = session.run(None, {session.get_inputs()[0].name: many.numpy()})
    assert found == pytest.approx(Energy()(many).numpy(), rel=1e-2)
