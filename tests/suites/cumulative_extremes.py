"""torch.cummax and torch.cummin."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

INHERITED = [HealthCheck.differing_executors]  # each sibling runs the method as its own
INF, NAN = float("inf"), float("nan")
VALUES = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, INF, -INF, NAN]), min_size=1, max_size=70)
ARGS = (torch.tensor([[1.0, 1.0, -2.0, 3.0, 3.0], [0.0, 7.0, 7.0, -1.0, 8.0]]), torch.tensor([[2, -3, 2], [5, 5, -9]]))


class CumulativeExtremeTests:
    name: str

    @staticmethod
    def extreme(*args, **options):
        """torch's function."""
        raise NotImplementedError

    def many(self, x, i):
        alone = self.extreme(x, 1).values
        return *self.extreme(x, 1), *self.extreme(x, 0), *self.extreme(i, -1), *self.extreme(i.int(), 0), alone

    def test_matches(self, exporter):
        assert_entry(self.name, self.many, ARGS, exporter)

    def test_matches_any_batch(self, exporter):
        assert_entry(self.name, self.many, ARGS, exporter, dynamic="batch")

    @given(VALUES, st.integers(1, 3))
    @settings(max_examples=100, deadline=None, suppress_health_check=INHERITED)
    def test_equals_eager(self, values, rows):
        x = torch.tensor(values).expand(rows, -1).contiguous()
        for dim in (0, 1, -1):
            found, wanted = tuple(catalogue()[self.name].body(x, dim)), tuple(self.extreme(x, dim))
            torch.testing.assert_close(found, wanted, equal_nan=True, rtol=0, atol=0)

    def test_declines_out(self):
        with pytest.raises(Declined, match="out must be None"):
            catalogue()[self.name].body(ARGS[0], 1, out=(ARGS[0], ARGS[0]))

    def test_sentinel(self):
        @rewrite(self.extreme, name=self.name, needed_on=EXPORTERS, registry=None)
        def broken(input, dim):
            return (torch.cumsum(input, dim), torch.zeros_like(input, dtype=torch.int64))

        with pytest.raises(VerificationError, match="does not compute what the model computes"):
            assert_same_outputs(lambda x, i: self.extreme(x, 1), ARGS, "torchscript", rewrites=[broken])

    def test_still_needed(self, exporter):
        assert_still_needed(self.name, self.many, ARGS, exporter)
