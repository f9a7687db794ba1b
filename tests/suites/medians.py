"""torch.median and torch.nanmedian."""

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
ARGS = (torch.tensor([[1.5, -2.0, 3.0, 0.5], [0.0, NAN, -1.0, 2.0]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


class MedianTests:
    name: str

    @staticmethod
    def median(*args, **options):
        """torch's function."""
        raise NotImplementedError

    def many(self, x, i):
        overall = self.median(x), self.median(i), self.median(i, 0).values
        return *overall, *(self.median(x, 1)[0], self.median(x[:1], dim=0)[0], self.median(x, 1, keepdim=True)[0])

    def test_matches(self, exporter):
        assert_entry(self.name, self.many, ARGS, exporter)

    def test_matches_any_batch(self, exporter):
        assert_entry(self.name, self.many, ARGS, exporter, dynamic="batch")

    @given(st.lists(st.sampled_from([-2.0, 0.0, 1.0, 2.5, INF, -INF, NAN]), min_size=1, max_size=12))
    @settings(max_examples=200, deadline=None, suppress_health_check=INHERITED)
    def test_equals_eager(self, values):
        x, body = torch.tensor(values), catalogue()[self.name].body
        exactly = {"equal_nan": True, "rtol": 0, "atol": 0}
        torch.testing.assert_close(body(x), self.median(x), **exactly)
        for keepdim in (False, True):
            torch.testing.assert_close(body(x, 0, keepdim).values, self.median(x, 0, keepdim).values, **exactly)

    def test_declines_out(self):
        with pytest.raises(Declined, match="out must be None"):
            catalogue()[self.name].body(ARGS[0], 1, out=(ARGS[0], ARGS[0]))

    def test_declines_single_numbers(self):
        with pytest.raises(Declined, match="must have an axis"):
            catalogue()[self.name].body(torch.tensor(1.0), 0)

    def test_sentinel(self):
        @rewrite(self.median, name=self.name, needed_on=EXPORTERS, registry=None)
        def broken(input, *axis):
            return input.mean()

        with pytest.raises(VerificationError, match="does not compute what the model computes"):
            assert_same_outputs(lambda x, i: self.median(x[0]), ARGS, "torchscript", rewrites=[broken])

    def test_still_needed(self, exporter):
        assert_still_needed(self.name, self.many, ARGS, exporter)
