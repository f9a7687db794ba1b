"""Recurrent layers, in rows: packed sequences, projections, any length; the operators against torch's own layers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_cases.recurrent import Packed
from torch import nn
from torch.nn.utils import rnn
from torch.nn.utils.rnn import PackedSequence
from torch.nn.utils.rnn import pack_padded_sequence as pack
from torch.nn.utils.rnn import pad_packed_sequence as pad
from torch_onnx_compat.symbolics import recurrent
from torch_onnx_compat.symbolics.recurrent import (
    Lengths,
    recurrent_operator,
    run_call,
    until_longest_operator,
    with_steps_operator,
)

from torch_onnx_compat import Ops, Value
from torch_onnx_compat.catalogue.entry import EXPORTERS, Declined
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs, is_armed

# Random lengths would be no lengths: each must lie between 1 and the number of steps.
EXACT = {"verify": Verify(rtol=0.0, atol=0.0, random=False, sizes={"batch": ()})}
ROUNDED = {"verify": Verify(rtol=1e-5, atol=1e-6, random=False, sizes={"batch": ()})}
DYNAMIC = {"x": {0: "batch"}, "lengths": {0: "batch"}}


def sequences(*lengths, dtype=torch.int64):
    return torch.randn(len(lengths), 6, 3), torch.tensor(lengths, dtype=dtype)


SAMPLES = [sequences(1, 2, 5, 4, 6), sequences(2)]


# Operators


class Every(nn.Module):
    """All kinds, with lengths and without, from given states."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict(LAYERS)

    def forward(self, x, lengths, state):
        results = []
        for kind, layer in self.layers.items():
            for given_lengths in (lengths, None):
                own = state if layer.bidirectional else state[:1]
                states = [own, own * 2] if kind == "LSTM" else [own]
                results += recurrent_operator(x, given_lengths, layer._flat_weights, states, kind)[: 1 + len(states)]
        return tuple(results)


def of_negative(op: Ops, x: Value, lengths: Value | None, weights: list[Value], state: list[Value], kind: str):
    return recurrent.recurrent(op, op.Neg(x), lengths, weights, state, kind)


def with_other_steps(x):
    fixed, steps = x.permute(2, 0, 1), x.shape[0] * 2
    return (
        with_steps_operator(x, 3, None, 7.0),
        with_steps_operator(x, 9, None, -1.0),
        with_steps_operator(x[..., 0], steps, torch.full((), steps, dtype=torch.int64), 0.0),
        with_steps_operator(fixed, 4, None, float("-inf")),
        with_steps_operator(fixed, 1, None, 0.0),
        with_steps_operator(fixed, 2, None, 0.0),
    )


LAYERS = {
    "LSTM": nn.LSTM(3, 4, bidirectional=True),
    "GRU": nn.GRU(3, 4, bidirectional=True, bias=False),
    "Tanh": nn.RNN(3, 4),
    "Relu": nn.RNN(3, 4, nonlinearity="relu"),
}
OPERATORS = [
    Example(
        "recurrent",
        Every(),
        (torch.randn(4, 3, 3), torch.tensor([1, 2, 3]), torch.randn(2, 3, 4)),
        broken=of_negative,
        dynamic={"x": {0: "steps", 1: "batch"}, "lengths": {0: "batch"}, "state": {1: "batch"}},
        options={"opset": opset},
    )
    for opset in (14, None)
]
OPERATORS += [
    Example(
        "until_longest",
        lambda x, lengths: (
            until_longest_operator(x, lengths),
            until_longest_operator(x[..., 0], lengths) * 2,
            until_longest_operator(x.long(), lengths),
        ),
        (torch.randn(5, 3, 2), torch.tensor([2, 4, 1])),
        broken=lambda op, x, lengths: op.Identity(x),
        dynamic={"x": {1: "batch"}, "lengths": {0: "batch"}},
        samples=[(torch.randn(5, 2, 2), torch.tensor([5, 3]))],
        leaves=lambda x, lengths: x[:3] * lengths[0],
        options=EXACT,
    ),
    Example(
        "with_steps",
        with_other_steps,
        (torch.randn(5, 3, 2),),
        broken=lambda op, x, steps, varying, value: op.Identity(x),
        dynamic={"x": {0: "steps", 1: "batch"}},
        samples=[(torch.randn(6, 2, 2),)],
        leaves=lambda x: x[:3],
        options=EXACT,
    ),
]


# Layers


PACKED = {
    "lstm_of_packed": ("LSTM", nn.LSTM, {}),
    "gru_of_packed": ("GRU", nn.GRU, {}),
    "rnn_tanh_of_packed": ("Tanh", nn.RNN, {}),
    "rnn_relu_of_packed": ("Relu", nn.RNN, {"nonlinearity": "relu"}),
}
"""Kind, as run_call has it, and layer of each entry."""


def layer_of(name, **options):
    _, layer, own = PACKED[name]
    return layer(3, 4, batch_first=True, **own, **options)


class Padded(nn.Module):
    """A layer of float32 over padded sequences."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, lengths=None):
        output = self.layer(x.float())[0]
        return output if lengths is None else output * lengths[0]


class Given(nn.Module):
    """An LSTM with projections and an initial state."""

    def __init__(self, **options):
        super().__init__()
        self.layer = nn.LSTM(3, 4, proj_size=2, batch_first=True, **options)

    def forward(self, x, h, c):
        output, state = self.layer(x, (h, c))
        return output, *state


class Many(nn.Module):
    """Layers of two directions, and one that goes on from the first one's last states."""

    def __init__(self, kind):
        super().__init__()
        layer, options = MAKERS[kind]
        self.first = layer(3, 4, batch_first=True, bidirectional=True, num_layers=2, **options)
        self.last = layer(8, 4, bias=False, **options)

    def forward(self, x):
        output, state = self.first(x)
        states = state if isinstance(state, tuple) else (state,)
        given = tuple(one[:1].transpose(1, 2).transpose(1, 2) for one in states)
        return self.last(output.transpose(0, 1), given if len(given) > 1 else given[0])[0], *states


MAKERS = {
    "LSTM": (nn.LSTM, {}),
    "GRU": (nn.GRU, {}),
    "Tanh": (nn.RNN, {"nonlinearity": "tanh"}),
    "Relu": (nn.RNN, {"nonlinearity": "relu"}),
}
ANY_LENGTH = {
    "LSTM": "lstm_of_any_length",
    "GRU": "gru_of_any_length",
    "Tanh": "rnn_tanh_of_any_length",
    "Relu": "rnn_relu_of_any_length",
}


def with_broken_result(kind, change, *, packed=False):
    def broken(*args):
        result = run_call(kind, args, packed=packed)
        return NotImplemented if result is NotImplemented else change(*result)

    return broken


def of_packed(name):
    return Example(
        name,
        Packed(layer_of(name, bidirectional=True, num_layers=2, bias=False)),
        sequences(3, 6, 2),
        broken=with_broken_result(PACKED[name][0], lambda x, *last: (x, *(2 * s for s in last)), packed=True),
        dynamic=DYNAMIC,
        samples=SAMPLES,
        leaves=Padded(layer_of(name)),
        options=ROUNDED,
    )


def of_any_length(kind):
    return Example(
        ANY_LENGTH[kind],
        Many(kind),
        (torch.randn(2, 5, 3),),
        broken=with_broken_result(kind, lambda output, *state: (output.flip(1), *state)),
        dynamic={"x": {0: "batch", 1: "length"}},
    )


SCALED_LSTM = with_broken_result("LSTM", lambda output, *state: (output * 1.01, *state))
EXAMPLES = [
    *OPERATORS,
    *(
        Example(
            "float64_recurrent",
            layer(3, 4).double(),
            (torch.randn(4, 2, 3).double(),),
            dynamic=None,
            declines="cast the layer and what it gets to float32",
            leaves=Padded(layer(3, 4)),
            # A row's entry is tried last, and the RNN's is another's on dynamo before: see test_float64_is_refused.
            exporters=("torchscript",) if layer is nn.RNN else EXPORTERS,
        )
        for layer in (nn.LSTM, nn.GRU, nn.RNN)
    ),
    *map(of_packed, PACKED),
    Example(
        "lstm_projection_to_matmul",
        Given(bidirectional=True),
        (torch.randn(2, 5, 3), torch.randn(2, 2, 2), torch.randn(2, 2, 4)),
        broken=SCALED_LSTM,
        dynamic={"x": {0: "batch", 1: "length"}, "h": {1: "batch"}, "c": {1: "batch"}},
    ),
    Example(
        "lstm_projection_to_matmul",
        nn.LSTM(3, 4, proj_size=2),
        (torch.randn(5, 2, 3),),
        broken=SCALED_LSTM,
        dynamic=None,
        leaves=nn.LSTM(3, 4, bidirectional=True),
    ),
    *map(of_any_length, ANY_LENGTH),
]


# Packing


class Scaled(nn.Module):
    """Computes on the packed data."""

    def forward(self, x, lengths):
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        first, length = rnn.pad_packed_sequence(PackedSequence(packed.data * 3 + 1, *packed[1:]))
        return first, length, rnn.pad_packed_sequence(packed, batch_first=True)[0]


class Renamed(nn.Module):
    """Has the functions under other names, in its own module."""

    def forward(self, x, lengths):
        return pad(pack(x, lengths, batch_first=True, enforce_sorted=False))


class Listed(nn.Module):
    def forward(self, x):
        return rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [4, 4, 1]))


class PaddedAnew(nn.Module):
    """In all ways at once; the lengths go through in their own type."""

    def forward(self, x, lengths):
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return (
            *rnn.pad_packed_sequence(packed),
            rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-7.5)[0],
            rnn.pad_packed_sequence(packed, True, float("-inf"), x.shape[1])[0],
            rnn.pad_packed_sequence(packed, total_length=8)[0],
            rnn.pad_packed_sequence(packed, padding_value=2.0, total_length=6)[0],
        )


class Reads(nn.Module):
    def forward(self, x, lengths):
        return rnn.pack_padded_sequence(x, lengths, batch_first=True).batch_sizes[1] * x


class Unknown(nn.Module):
    def forward(self, x):
        return rnn.pad_packed_sequence(PackedSequence(x, torch.tensor([2, 1])))[0]


def with_one_more_step(input, lengths, batch_first=False, enforce_sorted=True):
    return PackedSequence(input.transpose(0, 1), Lengths((lengths + 1).clamp(max=6), input.shape[0]))


def without_padding(sequence, batch_first=False, padding_value=0.0, total_length=None):
    return sequence.data.transpose(0, 1) if batch_first else sequence.data, sequence.batch_sizes.lengths


def shorten(self, input, hidden, batch_sizes):
    batch_sizes.lengths = batch_sizes.lengths.clamp(max=1)


EXAMPLES += [
    Example(name, model, inputs, broken, dynamic=DYNAMIC, samples=SAMPLES, options=options)
    for name, model, inputs, broken, options in (
        ("pack_padded_sequence_to_padded", Scaled(), sequences(3, 5, 2), with_one_more_step, EXACT),
        ("pad_packed_sequence_to_mask", PaddedAnew(), sequences(3, 5, 2), without_padding, EXACT),
        ("packed_sequence_check", Packed(nn.GRU(3, 4, batch_first=True)), sequences(3, 6), shorten, ROUNDED),
    )
]
PACKING = {"pack_padded_sequence_to_padded", "pad_packed_sequence_to_mask"}


# The operators in eager torch


@pytest.mark.parametrize("kind", LAYERS)
def test_each_sequence_by_itself(kind):
    x, lengths = torch.randn(5, 3, 3), torch.tensor([2, 5, 1])
    layer = LAYERS[kind]
    directions = 2 if layer.bidirectional else 1
    state = [torch.randn(directions, 3, 4) for _ in range(2 if kind == "LSTM" else 1)]
    output, *last = recurrent_operator(x, lengths, layer._flat_weights, state, kind)
    for n, length in enumerate(lengths):
        own = [s[:, n : n + 1].contiguous() for s in state]
        wanted, states = layer(x[:length, n : n + 1].contiguous(), tuple(own) if kind == "LSTM" else own[0])
        torch.testing.assert_close(output[:length, n : n + 1], wanted)
        assert not output[length:, n].any()
        for found, one in zip(last, states if kind == "LSTM" else [states], strict=False):
            torch.testing.assert_close(found[:, n : n + 1], one)


def test_operators_are_well_formed():
    x, lengths = torch.randn(5, 3, 3), torch.tensor([2, 4, 1])
    weights = [w.detach() for w in LAYERS["LSTM"]._flat_weights]
    args = (x, lengths, weights, [torch.zeros(2, 3, 4)] * 2, "LSTM")
    torch.library.opcheck(recurrent_operator, args, test_utils=("test_schema", "test_faketensor"))
    torch.library.opcheck(until_longest_operator, (x, lengths), test_utils=("test_schema",))
    torch.library.opcheck(with_steps_operator, (x, 7, None, 1.5), test_utils=("test_schema", "test_faketensor"))
    assert torch.equal(until_longest_operator(x, lengths), x[:4])
    assert torch.equal(with_steps_operator(x, 3, None, 7.0), x[:3])
    assert torch.equal(with_steps_operator(x, 7, None, 7.0), torch.cat((x, torch.full((2, 3, 3), 7.0))))


@settings(max_examples=20, deadline=None)
@given(st.booleans(), st.booleans(), st.integers(1, 3), st.integers(1, 4))
def test_projections_equal_eager(bidirectional, bias, layers, length):
    layer = nn.LSTM(3, 4, layers, bias, proj_size=2, bidirectional=bidirectional).double()
    directions = layers * (1 + bidirectional)
    shapes = ((length, 2, 3), (directions, 2, 2), (directions, 2, 4))
    x, h, c = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    args = (x, (h, c), layer._flat_weights, bias, layers, 0.0, False, bidirectional, False)
    torch.testing.assert_close(run_call("LSTM", args, packed=False), torch.lstm(*args))


# Nodes


@pytest.mark.parametrize("row", OPERATORS, ids=lambda row: row.entry)
def test_nodes_of_operators(row, exporter):
    nodes = {
        "recurrent": {"LSTM": 2, "GRU": 2, "RNN": 4},
        "until_longest": {"Slice": 3},
        "with_steps": {"Pad": 5},
    }[row.entry]
    options = {"dynamic": row.dynamic, "samples": row.samples, **row.options}
    result = assert_entry(row.entry, row.model, row.inputs, exporter, **options)
    assert {op: result.nodes[op] for op in nodes} == nodes


@pytest.mark.parametrize("name", PACKED)
def test_one_node_for_a_packed_layer(name, exporter):
    options = {"dynamic": DYNAMIC, "samples": SAMPLES, "uses": (name, "recurrent"), **ROUNDED}
    result = assert_same_outputs(Packed(layer_of(name), last=True), sequences(3, 6, 2), exporter, **options)
    assert result.nodes[{"Tanh": "RNN", "Relu": "RNN"}.get(PACKED[name][0], PACKED[name][0])] == 1
    assert not {"Loop", "Scan", "If"} & set(result.nodes)


def test_one_node_for_a_projected_layer(exporter):
    result = assert_entry("lstm_projection_to_matmul", nn.LSTM(3, 4, proj_size=2), torch.randn(5, 2, 3), exporter)
    assert result.nodes["LSTM"] == 1


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.slow if k in ("Tanh", "Relu") else ()) for k in ANY_LENGTH]
)
def test_one_node_for_a_layer_of_any_length(kind):
    if not is_armed(ANY_LENGTH[kind], "dynamo", {}):
        pytest.skip("torch's own file has any length")
    node, x = {"LSTM": "LSTM", "GRU": "GRU"}.get(kind, "RNN"), torch.randn(2, 5, 3)
    dynamic = {"x": {0: "batch", 1: "length"}}
    assert assert_entry(ANY_LENGTH[kind], Many(kind), x, "dynamo", dynamic=dynamic).nodes[node] == 3
    # Also where the length is fixed.
    maker, options = MAKERS[kind]
    layer = maker(3, 4, batch_first=True, **options)
    assert assert_entry(ANY_LENGTH[kind], layer, x, "dynamo", dynamic="batch").nodes[node] == 1


def test_layers_of_padded_sequences_are_left_alone():
    for layer in (nn.LSTM(3, 4), nn.GRU(3, 4), nn.RNN(3, 4), nn.RNN(3, 4, nonlinearity="relu")):
        result = assert_same_outputs(layer, torch.randn(6, 2, 3), "torchscript", dynamic={"input": {0: "length"}})
        assert not result.applied
        assert not result.declined
    with pytest.raises(CompatError, match="must be equal to input_size"):
        assert_same_outputs(nn.GRU(3, 4), torch.randn(6, 2, 2), "torchscript")


@pytest.mark.parametrize("model", [Scaled(), Renamed()])
def test_nothing_is_sorted(model, exporter):
    options = {"dynamic": DYNAMIC, "samples": SAMPLES, "uses": PACKING, **EXACT}
    assert "TopK" not in assert_same_outputs(model, sequences(3, 5, 2), exporter, **options).nodes


def test_lengths_in_a_list(exporter):
    result = assert_entry("pack_padded_sequence_to_padded", Listed(), torch.randn(6, 3, 2), exporter)
    assert result.nodes["Slice"] == 1


def test_lengths_of_another_type():
    samples = [sequences(1, 2, 5, 4, 6, dtype=torch.int32), sequences(2, dtype=torch.int32)]
    inputs = sequences(3, 5, 2, dtype=torch.int32)
    options = {"dynamic": DYNAMIC, "samples": samples, "uses": PACKING, **EXACT}
    assert_same_outputs(PaddedAnew(), inputs, "torchscript", **options)


# What is refused


@pytest.mark.parametrize("name", PACKED)
def test_declines_dropout_in_training(name):
    x, lengths = torch.randn(6, 2, 3), Lengths(torch.tensor([3, 6]), 2)
    weights = layer_of(name, num_layers=2)._flat_weights
    with pytest.raises(Declined, match=r"dropout must be 0 in training mode, got 0\.5"):
        run_call(PACKED[name][0], (x, lengths, None, weights, True, 2, 0.5, True, False), packed=True)


def test_declines_a_look_at_the_batch_sizes():
    with pytest.raises(CompatError, match="batch sizes"):
        assert_same_outputs(Reads(), sequences(5, 3, 2), "torchscript", **EXACT)


def test_declines_what_it_did_not_pack():
    with pytest.raises(CompatError, match="declined: the sequences must have been packed by pack_padded_sequence"):
        assert_same_outputs(Unknown(), torch.randn(3, 2), "torchscript")


@pytest.mark.parametrize("operator", ["recurrent", "until_longest", "with_steps"])
def test_operators_need_their_symbolic(operator, exporter):
    row = next(row for row in OPERATORS if row.entry == operator)
    options = {"dynamic": row.dynamic, "samples": row.samples, **row.options}
    with pytest.raises(CompatError, match=r"namespace|torch_onnx_compat"):
        assert_same_outputs(row.model, row.inputs, exporter, exclude=[operator], **options)


def test_the_check_is_in_the_way(exporter):
    row = next(row for row in EXAMPLES if row.entry == "packed_sequence_check")
    options = {"dynamic": row.dynamic, "samples": row.samples, **row.options}
    with pytest.raises(CompatError, match="must have 2 dimensions"):
        assert_same_outputs(row.model, row.inputs, exporter, exclude=[row.entry], **options)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_float64_is_refused(layer, exporter):
    if layer is nn.RNN and exporter == "dynamo":
        result = assert_same_outputs(layer(3, 4).double(), torch.randn(4, 2, 3).double(), exporter)
        assert "torch's own file" in result.notes[0]  # torch unrolls it
        return
    with pytest.raises(CompatError, match="cast the layer and what it gets to float32"):
        assert_same_outputs(layer(3, 4).double(), torch.randn(4, 2, 3).double(), exporter)
