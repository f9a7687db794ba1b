import pytest
import torch
from operator_cases.recurrent import Packed
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.recurrent import Lengths, of_call
from torch_onnx_compat.testing import assert_same_outputs

USES = ("gru_of_packed", "recurrent")
VERIFY = Verify(rtol=1e-5, atol=1e-6, random=False, sizes={"batch": ()})
DYNAMIC = {"x": {0: "batch"}, "lengths": {0: "batch"}}


def inputs(*lengths):
    return torch.randn(len(lengths), 6, 3), torch.tensor(lengths)


def exported(model, exporter, **options):
    return assert_same_outputs(
        model,
        inputs(3, 6, 2),
        exporter,
        dynamic=DYNAMIC,
        samples=[inputs(1, 2, 5, 4, 6), inputs(2)],
        verify=VERIFY,
        **options,
    )


def layer(**options):
    return nn.GRU(3, 4, batch_first=True, **options)


def test_matches(exporter):
    exported(Packed(layer(bidirectional=True, num_layers=2, bias=False)), exporter, uses=USES)


def test_one_node_for_a_layer(exporter):
    result = exported(Packed(layer(), last=True), exporter, uses=USES)
    assert result.nodes["GRU"] == 1
    assert not {"Loop", "Scan", "If"} & set(result.nodes)


def test_padded_sequences_are_left_alone():
    result = assert_same_outputs(layer(), torch.randn(2, 6, 3), "torchscript", dynamic="batch")
    assert not {"gru_of_packed"} & {note.entry for note in (*result.applied, *result.declined)}


def test_declines_dropout_in_training():
    weights = layer(num_layers=2)._flat_weights
    with pytest.raises(Declined, match=r"dropout must be 0 in training mode, got 0\.5"):
        of_call(
            "GRU",
            (torch.randn(6, 2, 3), Lengths(torch.tensor([3, 6]), 2), None, weights, True, 2, 0.5, True, False),
            packed=True,
        )


def test_sentinel():
    @rewrite(torch.gru, name="gru_of_packed", needed_on=EXPORTERS, registry=None)
    def broken(*args):
        result = of_call("GRU", args, packed=True)
        return NotImplemented if result is NotImplemented else (result[0], *(2 * s for s in result[1:]))

    with pytest.raises(VerificationError):
        exported(Packed(layer()), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError):
        exported(Packed(layer()), "torchscript", exclude=["gru_of_packed"])
