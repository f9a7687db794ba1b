import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from torch_onnx_compat import rewrite
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

VERIFY = Verify(rtol=0.0, atol=0.0, random=False, sizes={"batch": ()})
DYNAMIC = {"x": {0: "batch"}, "lengths": {0: "batch"}}

USES = ("pad_packed_sequence_to_mask",)


class Padded(nn.Module):
    """In all ways at once; the lengths go through in their own type."""

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return (
            *pad_packed_sequence(packed),
            pad_packed_sequence(packed, batch_first=True, padding_value=-7.5)[0],
            pad_packed_sequence(packed, True, float("-inf"), x.shape[1])[0],
            pad_packed_sequence(packed, total_length=8)[0],
            pad_packed_sequence(packed, padding_value=2.0, total_length=6)[0],
        )


class Unknown(nn.Module):
    def forward(self, x):
        return pad_packed_sequence(PackedSequence(x, torch.tensor([2, 1])))[0]


def inputs(*lengths, dtype=torch.int64):
    return torch.randn(len(lengths), 6, 3), torch.tensor(lengths, dtype=dtype)


def exported(exporter, dtype=torch.int64, **options):
    samples = [inputs(1, 2, 5, 4, 6, dtype=dtype), inputs(2, dtype=dtype)]
    args = inputs(3, 5, 2, dtype=dtype)
    return assert_same_outputs(Padded(), args, exporter, dynamic=DYNAMIC, samples=samples, verify=VERIFY, **options)


def test_matches(exporter):
    exported(exporter, uses=USES)


def test_matches_with_lengths_of_another_type():
    exported("torchscript", torch.int32, uses=USES)


def test_declines_what_it_did_not_pack():
    with pytest.raises(CompatError, match="declined: the sequences must have been packed by pack_padded_sequence"):
        assert_same_outputs(Unknown(), torch.randn(3, 2), "torchscript")


def test_sentinel():
    @rewrite(
        "torch.nn.utils.rnn.pad_packed_sequence", name="pad_packed_sequence_to_mask", needed_on=EXPORTERS, registry=None
    )
    def broken(sequence, batch_first=False, padding_value=0.0, total_length=None):
        data = sequence.data.transpose(0, 1) if batch_first else sequence.data
        return data, sequence.batch_sizes.lengths

    with pytest.raises(VerificationError):
        exported("torchscript", rewrites=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError):
        exported(exporter, exclude=[*USES, "pack_padded_sequence_to_padded"])
