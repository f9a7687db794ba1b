import pytest
import torch
from operator_cases.recurrent import Packed
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_same_outputs

USES = ("packed_sequence_check",)
ARGS = torch.randn(2, 6, 3), torch.tensor([3, 6])
OPTIONS = {
    "dynamic": {"x": {0: "batch"}, "lengths": {0: "batch"}},
    "samples": [(torch.randn(3, 6, 3), torch.tensor([3, 1, 5]))],
    "verify": Verify(rtol=1e-5, atol=1e-6, random=False, sizes={"batch": ()}),
}


def test_matches(exporter):
    assert_same_outputs(Packed(nn.GRU(3, 4, batch_first=True)), ARGS, exporter, uses=USES, **OPTIONS)


def test_layers_of_padded_sequences_are_checked():
    result = assert_same_outputs(nn.GRU(3, 4), torch.randn(6, 2, 3), "torchscript")
    assert not result.applied
    assert not result.declined
    with pytest.raises(CompatError, match="must be equal to input_size"):
        assert_same_outputs(nn.GRU(3, 4), torch.randn(6, 2, 2), "torchscript")


def test_sentinel():
    @rewrite(
        "torch.nn.modules.rnn.RNNBase.check_forward_args",
        name="packed_sequence_check",
        needed_on=EXPORTERS,
        registry=None,
    )
    def broken(self, input, hidden, batch_sizes):
        raise ValueError("broken")

    with pytest.raises(CompatError, match="broken"):
        assert_same_outputs(Packed(nn.GRU(3, 4, batch_first=True)), ARGS, "torchscript", rewrites=[broken], **OPTIONS)


def test_still_needed(exporter):
    with pytest.raises(CompatError, match="must have 2 dimensions"):
        assert_same_outputs(Packed(nn.GRU(3, 4, batch_first=True)), ARGS, exporter, exclude=USES, **OPTIONS)
