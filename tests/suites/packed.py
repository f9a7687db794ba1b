"""Recurrent layers over packed sequences."""

import pytest
import torch
from operator_cases.recurrent import Packed

from torch_onnx_compat import rewrite
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.functional.recurrent import Lengths, of_call
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

# Random lengths would be no lengths: each must lie between 1 and 6.
VERIFY = Verify(rtol=1e-5, atol=1e-6, random=False, sizes={"batch": ()})
DYNAMIC = {"x": {0: "batch"}, "lengths": {0: "batch"}}


def inputs(*lengths):
    return torch.randn(len(lengths), 6, 3), torch.tensor(lengths)


class PackedTests:
    name: str
    kind: str
    """As of_call has it."""
    function: object
    node: str

    @staticmethod
    def layer(**options):
        raise NotImplementedError

    def exported(self, model, exporter, check=assert_same_outputs, **options):
        samples = [inputs(1, 2, 5, 4, 6), inputs(2)]
        return check(model, inputs(3, 6, 2), exporter, dynamic=DYNAMIC, samples=samples, verify=VERIFY, **options)

    def test_matches(self, exporter):
        model = Packed(self.layer(bidirectional=True, num_layers=2, bias=False))
        self.exported(model, exporter, uses=(self.name, "recurrent"))

    def test_one_node_for_a_layer(self, exporter):
        result = self.exported(Packed(self.layer(), last=True), exporter, uses=(self.name, "recurrent"))
        assert result.nodes[self.node] == 1
        assert not {"Loop", "Scan", "If"} & set(result.nodes)

    def test_padded_sequences_are_left_alone(self):
        result = assert_same_outputs(self.layer(), torch.randn(2, 6, 3), "torchscript", dynamic="batch")
        assert self.name not in {note.entry for note in (*result.applied, *result.declined)}

    def test_declines_dropout_in_training(self):
        x, lengths = torch.randn(6, 2, 3), Lengths(torch.tensor([3, 6]), 2)
        weights = self.layer(num_layers=2)._flat_weights
        with pytest.raises(Declined, match=r"dropout must be 0 in training mode, got 0\.5"):
            of_call(self.kind, (x, lengths, None, weights, True, 2, 0.5, True, False), packed=True)

    def test_sentinel(self):
        @rewrite(self.function, name=self.name, needed_on=EXPORTERS, registry=None)
        def broken(*args):
            result = of_call(self.kind, args, packed=True)
            return NotImplemented if result is NotImplemented else (result[0], *(2 * s for s in result[1:]))

        with pytest.raises(VerificationError):
            self.exported(Packed(self.layer()), "torchscript", rewrites=[broken])

    def test_still_needed(self):
        def without(*args, **options):
            assert_still_needed(self.name, *args, **options)

        self.exported(Packed(self.layer()), "torchscript", without)
