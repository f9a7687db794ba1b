"""torch.bartlett_window, torch.hamming_window and torch.kaiser_window."""

import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

EXAMPLE = (torch.rand(3, 1) + 1,)
REASON = "the window's length must be fixed; make the window in __init__ and keep it as a buffer"


class WindowTests:
    name: str
    parameters: tuple[tuple[float, ...], ...] = ((),)
    """What may follow the length and `periodic`, apart from nothing."""

    @staticmethod
    def window(*args, **options):
        """torch's function."""
        raise NotImplementedError

    def many(self, x):
        whole = [self.window(n, periodic) for n in (1, 2, 7, 8) for periodic in (False, True)]
        more = [self.window(9, False, *values) for values in self.parameters]
        more += [self.window(5), self.window(6, dtype=torch.float64), self.window(4, periodic=False).double()]
        return tuple(x * w for w in (*whole, *more))

    def one(self, x):
        return x * self.window(8)

    def test_matches(self, exporter):
        assert_entry(self.name, self.many, EXAMPLE, exporter, dynamic="batch")

    def test_no_cells(self):
        body = assert_entry(self.name, lambda x: (x, self.window(0)), EXAMPLE, "dynamo")
        assert body.nodes.total() <= 2

    def test_applied(self):
        assert set(assert_entry(self.name, self.one, EXAMPLE, "dynamo").nodes) == {"Mul"}

    def test_declines_a_length_that_varies(self):
        with pytest.raises(CompatError, match=REASON):
            assert_same_outputs(lambda x: self.window(x.shape[0]) * x[:, 0], EXAMPLE, "dynamo", dynamic="batch")

    def test_sentinel(self):
        @rewrite(self.window, name=self.name, needed_on=EXPORTERS, registry=None)
        def broken(window_length, *args, **options):
            return torch.ones(window_length)

        with pytest.raises(VerificationError, match="does not compute what the model computes"):
            assert_same_outputs(self.one, EXAMPLE, "dynamo", rewrites=[broken])

    def test_still_needed(self, exporter):
        assert_still_needed(self.name, self.one, EXAMPLE, exporter)
