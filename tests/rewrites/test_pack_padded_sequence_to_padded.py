import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence
from torch.nn.utils.rnn import pack_padded_sequence as pack

from torch_onnx_compat import rewrite
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.recurrent import Lengths
from torch_onnx_compat.testing import assert_same_outputs

VERIFY = Verify(rtol=0.0, atol=0.0, random=False, sizes={"batch": ()})
DYNAMIC = {"x": {0: "batch"}, "lengths": {0: "batch"}}

USES = ("pack_padded_sequence_to_padded",)


class Scaled(nn.Module):
    """Computes on the packed data, and has the function under another name."""

    def forward(self, x, lengths):
        packed = pack(x, lengths, batch_first=True, enforce_sorted=False)
        first, length = pad_packed_sequence(PackedSequence(packed.data * 3 + 1, *packed[1:]))
        return first, length, pad_packed_sequence(packed, batch_first=True)[0]


class Listed(nn.Module):
    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, [4, 4, 1])
        return nn.utils.rnn.pad_packed_sequence(packed)


class Reads(nn.Module):
    def forward(self, x, lengths):
        return pack(x, lengths, batch_first=True).batch_sizes[1] * x


def inputs(*lengths):
    return torch.randn(len(lengths), 6, 3), torch.tensor(lengths)


def exported(model, exporter, **options):
    samples = [inputs(1, 2, 5, 4, 6), inputs(2)]
    return assert_same_outputs(
        model, inputs(3, 5, 2), exporter, dynamic=DYNAMIC, samples=samples, verify=VERIFY, **options
    )


def test_matches(exporter):
    exported(Scaled(), exporter, uses=USES)


def test_matches_with_a_list(exporter):
    result = assert_same_outputs(Listed(), torch.randn(6, 3, 2), exporter, uses=USES)
    assert result.nodes["Slice"] == 1


def test_nothing_is_sorted(exporter):
    assert "TopK" not in exported(Scaled(), exporter, uses=USES).nodes


def test_declines_a_look_at_the_batch_sizes():
    with pytest.raises(CompatError, match="batch sizes"):
        assert_same_outputs(Reads(), inputs(5, 3, 2), "torchscript", verify=VERIFY)


def test_sentinel():
    @rewrite(
        "torch.nn.utils.rnn.pack_padded_sequence",
        name="pack_padded_sequence_to_padded",
        needed_on=EXPORTERS,
        registry=None,
    )
    def broken(input, lengths, batch_first=False, enforce_sorted=True):
        return PackedSequence(input.transpose(0, 1), Lengths(lengths + 1, input.shape[0]))

    with pytest.raises(VerificationError):
        exported(Scaled(), "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError):
        exported(Scaled(), exporter, exclude=[*USES, "pad_packed_sequence_to_mask"])
