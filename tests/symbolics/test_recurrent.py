import pytest
import torch
from torch import nn
from torch_onnx_compat.symbolics.recurrent import recurrent as torch_recurrent

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.recurrent import operator
from torch_onnx_compat.testing import assert_same_outputs

LAYERS = {
    "LSTM": nn.LSTM(3, 4, bidirectional=True),
    "GRU": nn.GRU(3, 4, bidirectional=True, bias=False),
    "Tanh": nn.RNN(3, 4),
    "Relu": nn.RNN(3, 4, nonlinearity="relu"),
}
LENGTHS = torch.tensor([2, 5, 1])
X = torch.randn(5, 3, 3)


class Every(nn.Module):
    """All kinds, with lengths and without, from given states."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict(LAYERS)

    def forward(self, x, lengths, state):
        results = []
        for kind, layer in self.layers.items():
            for given in (lengths, None):
                own = state if layer.bidirectional else state[:1]
                states = [own, own * 2] if kind == "LSTM" else [own]
                results += operator(x, given, layer._flat_weights, states, kind)[: 1 + len(states)]
        return tuple(results)


def inputs(steps, batch):
    lengths = torch.arange(batch) % steps + 1
    return torch.randn(steps, batch, 3), lengths, torch.randn(2, batch, 4)


def exported(exporter, **options):
    dynamic = {"x": {0: "steps", 1: "batch"}, "lengths": {0: "batch"}, "state": {1: "batch"}}
    return assert_same_outputs(Every(), inputs(4, 3), exporter, dynamic=dynamic, **options)


@pytest.mark.parametrize("kind", LAYERS)
def test_eager_takes_each_sequence_by_itself(kind):
    layer = LAYERS[kind]
    directions = 2 if layer.bidirectional else 1
    state = [torch.randn(directions, 3, 4) for _ in range(2 if kind == "LSTM" else 1)]
    output, *last = operator(X, LENGTHS, layer._flat_weights, state, kind)
    for n, length in enumerate(LENGTHS):
        own = [s[:, n : n + 1].contiguous() for s in state]
        wanted, states = layer(X[:length, n : n + 1].contiguous(), tuple(own) if kind == "LSTM" else own[0])
        torch.testing.assert_close(output[:length, n : n + 1], wanted)
        assert not output[length:, n].any()
        for found, one in zip(last, states if kind == "LSTM" else [states], strict=False):
            torch.testing.assert_close(found[:, n : n + 1], one)


def test_operator_is_well_formed():
    layer = LAYERS["LSTM"]
    args = (X, LENGTHS, [w.detach() for w in layer._flat_weights], [torch.zeros(2, 3, 4)] * 2, "LSTM")
    torch.library.opcheck(operator, args, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("opset", [14, None])
def test_matches(exporter, opset):
    result = exported(exporter, opset=opset, uses=("recurrent",))
    assert result.nodes["LSTM"] == result.nodes["GRU"] == 2
    assert result.nodes["RNN"] == 4


def test_torchs_own_layers_are_left_alone():
    result = assert_same_outputs(nn.GRU(3, 4), X, "torchscript")
    assert "recurrent" not in {note.entry for note in result.applied}


def test_sentinel():
    @symbolic("torch_onnx_compat::recurrent", name="recurrent", needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, x: Value, lengths: Value | None, weights: list[Value], state: list[Value], kind: str):
        return torch_recurrent(op, op.Neg(x), lengths, weights, state, kind)

    with pytest.raises(VerificationError):
        exported("torchscript", symbolics=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match=r"namespace|torch_onnx_compat"):
        exported(exporter, exclude=["recurrent"])
