"""F.fractional_max_pool2d without and with indices."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.fractional_max_pool import fractional_max_pool2d
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

ARGS = (torch.randn(2, 3, 9, 7), torch.rand(2, 3, 2))


class FractionalPoolTests:
    name: str
    indices: bool

    def pool(self, x, samples, *args, **options):
        """The results that are asked for, as a tuple."""
        result = F.fractional_max_pool2d(x, *args, _random_samples=samples, return_indices=self.indices, **options)
        return result if self.indices else (result,)

    def many(self, x, u):
        return (
            *self.pool(x, u, 2, (4, 3)),
            *self.pool(x, u, (3, 2), output_ratio=(0.6, 0.4)),
            *self.pool(x, u, (2, 3), (1, 2)),
            *self.pool(x[0], u[:1], 3, 2),
            *self.pool(x, u, 1, (9, 7)),
            *self.pool(x.double(), u.double(), 2, 4),
            *nn.FractionalMaxPool2d(2, 3, return_indices=True, _random_samples=u)(x)[: 1 + self.indices],
        )

    def test_matches(self, exporter):
        assert_entry(self.name, self.many, ARGS, exporter)

    def test_matches_any_batch(self, exporter):
        other = torch.randn(5, 3, 9, 7), torch.rand(5, 3, 2)
        model = lambda x, u: self.pool(x, u, 2, (4, 3))  # noqa: E731
        assert_entry(self.name, model, ARGS, exporter, dynamic="batch", samples=[other])

    @pytest.mark.parametrize(("size", "output", "kernel"), [(9, 4, 2), (31, 13, 3), (100, 71, 2), (8, 1, 8)])
    def test_equals_eager(self, size, output, kernel):
        x, u = torch.randn(2, 50, size, size + 3), torch.rand(2, 50, 2)
        u[0, :2] = torch.tensor([[0.0, 1.0 - 2**-24], [1.0 - 2**-24, 0.0]])
        found = catalogue()[self.name].body(x, kernel, (output, output), _random_samples=u)
        for one, wanted in zip(found if self.indices else (found,), self.pool(x, u, kernel, output), strict=True):
            torch.testing.assert_close(one, wanted, rtol=0, atol=0)

    def test_declines_random_samples(self, exporter):
        with pytest.raises(CompatError, match="pass them on as _random_samples"):
            assert_same_outputs(lambda x: self.pool(x, None, 2, 3), ARGS[:1], exporter)

    def test_declines_varying_sizes(self, exporter):
        with pytest.raises(CompatError, match="height and width must be fixed"):
            assert_same_outputs(lambda x, u: self.pool(x, u, 2, 3), ARGS, exporter, dynamic={"x": {2: "height"}})

    def test_sentinel(self):
        @rewrite(catalogue()[self.name].match, name=self.name, needed_on=EXPORTERS, registry=None)
        def broken(input, kernel_size, output_size, output_ratio=None, return_indices=False, _random_samples=None):
            swapped = _random_samples.flip(-1)
            found = fractional_max_pool2d(input, kernel_size, output_size, output_ratio, swapped, indices=True)
            return found if self.indices else found[0]

        with pytest.raises(VerificationError):
            assert_same_outputs(lambda x, u: self.pool(x, u, 2, 3), ARGS, "torchscript", rewrites=[broken])

    def test_still_needed(self, exporter):
        assert_still_needed(self.name, lambda x, u: self.pool(x, u, 2, 3), ARGS, exporter)
