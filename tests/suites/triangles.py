"""torch.tril_indices and torch.triu_indices."""

import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]


class TriangleTests:
    name: str

    @staticmethod
    def indices(*args, **options):
        """torch's function."""
        raise NotImplementedError

    def many(self, x):
        size = x.shape[0]
        return self.indices(size, size), self.indices(size, 4, 1), self.indices(4, size, offset=-2)

    def one(self, x):
        return self.indices(x.shape[0], 4)

    def test_matches(self, exporter):
        assert_entry(self.name, self.many, EXAMPLE, exporter, dynamic="batch", samples=SAMPLES)

    def test_applied(self):
        result = assert_entry(self.name, self.one, EXAMPLE, "torchscript")
        assert "NonZero" in result.nodes

    def test_leaves_near_misses_alone(self):
        result = assert_same_outputs(lambda x: x[self.indices(3, 3)[0]], EXAMPLE, "torchscript")
        assert self.name not in {note.entry for note in (*result.applied, *result.declined)}

    def test_sentinel(self):
        @rewrite(self.indices, name=self.name, needed_on=EXPORTERS, registry=None)
        def broken(row, col, offset=0, **options):
            return torch.ones(row, col).nonzero().t()

        with pytest.raises(VerificationError, match="does not compute what the model computes"):
            assert_same_outputs(self.one, EXAMPLE, "torchscript", rewrites=[broken])

    def test_still_needed(self, exporter):
        assert_still_needed(self.name, self.one, EXAMPLE, exporter, dynamic="batch", samples=SAMPLES)
