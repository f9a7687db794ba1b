"""torch.quantile and torch.nanquantile."""

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
METHODS = ("lower", "higher", "nearest", "midpoint")
Q = torch.tensor([0.0, 0.25, 0.7, 1.0])
ARGS = (torch.tensor([[1.5, -2.0, 3.0, 0.5, 8.0], [0.0, 7.5, -1.0, 2.0, NAN]]),)


class QuantileTests:
    name: str

    @staticmethod
    def quantile(*args, **options):
        """torch's function."""
        raise NotImplementedError

    def many(self, x):
        linear = self.quantile(x, 0.3), self.quantile(x, 0.9, dim=1), self.quantile(x, Q, 1)
        others = (self.quantile(x, 0.6, dim=1, interpolation=method) for method in METHODS)
        return *linear, self.quantile(x, 0.4, 0, keepdim=True), *others

    def test_matches(self, exporter):
        assert_entry(self.name, self.many, ARGS, exporter)

    def test_matches_any_batch(self, exporter):
        assert_entry(self.name, self.many, ARGS, exporter, dynamic="batch")

    @given(
        st.lists(st.sampled_from([-2.0, 0.0, 1.0, 2.5, 7.0, INF, NAN]), min_size=1, max_size=12),
        st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.77, 1.0]),
        st.sampled_from(["linear", *METHODS]),
        st.booleans(),
    )
    @settings(max_examples=300, deadline=None, suppress_health_check=INHERITED)
    def test_equals_eager(self, values, q, method, keepdim):
        x = torch.tensor(values).reshape(-1, 1).repeat(1, 2)
        for probability in (q, torch.tensor([q, 0.5])):
            for dim in (None, 0, 1):
                found = catalogue()[self.name].body(x, probability, dim, keepdim, interpolation=method)
                wanted = self.quantile(x, probability, dim, keepdim, interpolation=method)
                torch.testing.assert_close(found, wanted, equal_nan=True)

    def test_declines_out(self):
        with pytest.raises(Declined, match="out must be None"):
            catalogue()[self.name].body(ARGS[0], 0.5, out=ARGS[0].clone())

    def test_sentinel(self):
        @rewrite(self.quantile, name=self.name, needed_on=EXPORTERS, registry=None)
        def broken(input, q, *args, **options):
            return input.mean()

        with pytest.raises(VerificationError, match="does not compute what the model computes"):
            assert_same_outputs(lambda x: self.quantile(x[0], 0.3), ARGS, "torchscript", rewrites=[broken])

    def test_still_needed(self, exporter):
        assert_still_needed(self.name, self.many, ARGS, exporter)
