"""Recurrent layers, packed sequences and cells in Python loops."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from operator_cases.case import Case
from torch_onnx_compat.check.options import Verify

GIVEN = {"verify": Verify(random=False, sizes={"b2": ()})}
"""Lengths that are drawn at random are none, or not sorted."""

KINDS = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}


class Flat(nn.Module):
    """A layer whose state comes out as tensors and, where asked, goes in as inputs."""

    def __init__(self, layer, state=False):
        super().__init__()
        self.layer, self.state = layer, state

    def forward(self, x, *state):
        given = (state if len(state) > 1 else state[0]) if state else None
        output, last = self.layer(x, given)
        return (output, *last) if isinstance(last, tuple) else (output, last)


def sequences(length=6, width=3):
    return lambda n: (torch.randn(n, n + 4 if length is None else length, width),)


def time_first(n):
    return (torch.randn(n + 3, n, 3),)


def with_state(*widths, layers=1):
    return lambda n: (torch.randn(n, 6, 3), *(torch.randn(layers, n, width) for width in widths))


class Unbatched(nn.Module):
    """A layer that gets one sequence of those it is given."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x[0])[0]


class Packed(nn.Module):
    def __init__(self, layer, *, is_sorted=False, total=None, padding=0.0, last=False):
        super().__init__()
        self.layer, self.last = layer, last
        self.is_sorted, self.total, self.padding = is_sorted, total, padding

    def forward(self, x, lengths):
        first = self.layer.batch_first
        packed = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=self.is_sorted)
        output, state = self.layer(packed)
        if self.last:
            return state[0] if isinstance(state, tuple) else state
        total = x.shape[1 if first else 0] if self.total == "whole" else self.total
        output, lengths = pad_packed_sequence(output, first, self.padding, total)
        return (output, lengths, *state) if isinstance(state, tuple) else (output, lengths, state)


def packed(is_sorted=False, first=True):
    def inputs(n):
        lengths = torch.tensor([3, 6, 1, 5, 2][:n])
        lengths = lengths.sort(descending=True).values if is_sorted else lengths
        x = torch.randn(n, 6, 3)
        return (x if first else x.transpose(0, 1).contiguous()), lengths

    return inputs


class Loop(nn.Module):
    """A cell in a Python loop over a fixed number of steps."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        state = None
        outputs = []
        for step in range(4):
            state = self.cell(x[:, step], state)
            outputs.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(outputs, 1)


def layers():
    for name, kind in KINDS.items():
        variants = {
            "": {},
            "bidirectional, 2 layers": {"bidirectional": True, "num_layers": 2},
            "no bias": {"bias": False},
        }
        if name == "LSTM":
            variants |= {
                "proj_size": {"proj_size": 2},
                "proj_size, bidirectional, 2 layers": {"proj_size": 2, "bidirectional": True, "num_layers": 2},
            }
        if name == "RNN":
            variants |= {"relu": {"nonlinearity": "relu", "bidirectional": True}}
        for variant, options in variants.items():
            yield Case(name, variant, Flat(kind(3, 4, batch_first=True, **options)), sequences())
        yield Case(name, "dynamic length", Flat(kind(3, 4, batch_first=True)), sequences(None))
        yield Case(
            name,
            "bidirectional, dynamic length",
            Flat(kind(3, 4, batch_first=True, bidirectional=True)),
            sequences(None),
        )
        yield Case(name, "time first, dynamic length", Flat(kind(3, 4, 2)), time_first)
        states = (4, 4) if name == "LSTM" else (4,)
        yield Case(name, "initial state", Flat(kind(3, 4, batch_first=True)), with_state(*states))
        both = kind(3, 4, 2, batch_first=True, bidirectional=True)
        yield Case(name, "initial state, bidirectional, 2 layers", Flat(both), with_state(*states, layers=4))
        yield Case(name, "no batch axis", Unbatched(kind(3, 4)), sequences())


def packs():
    for name, kind in KINDS.items():
        make = lambda kind=kind, **options: kind(3, 4, **{"batch_first": True, **options})  # noqa: E731
        yield Case(f"packed {name}", "", Packed(make()), packed(), options=GIVEN)
        yield Case(f"packed {name}", "sorted", Packed(make(), is_sorted=True), packed(True), options=GIVEN)
        yield Case(
            f"packed {name}",
            "bidirectional, 2 layers",
            Packed(make(bidirectional=True, num_layers=2)),
            packed(),
            options=GIVEN,
        )
        yield Case(f"packed {name}", "time first", Packed(make(batch_first=False)), packed(first=False), options=GIVEN)
        yield Case(
            f"packed {name}", "last states only", Packed(make(bidirectional=True), last=True), packed(), options=GIVEN
        )
    yield Case("packed LSTM", "total_length", Packed(make_lstm(), total=8), packed(), options=GIVEN)
    yield Case("packed LSTM", "total_length of the input", Packed(make_lstm(), total="whole"), packed(), options=GIVEN)
    yield Case(
        "packed LSTM",
        "total_length of the input, dynamic length",
        Packed(make_lstm(), total="whole", padding=2.5),
        lambda n: (torch.randn(n, n + 4, 3), torch.tensor([3, 6, 1, 5, 2][:n])),
        options={"verify": Verify(random=False, sizes={"b2": (), "b6": ()})},
    )
    yield Case("packed LSTM", "padding_value", Packed(make_lstm(), padding=-7.0), packed(), options=GIVEN)
    yield Case(
        "packed LSTM", "proj_size", Packed(nn.LSTM(3, 4, proj_size=2, batch_first=True)), packed(), options=GIVEN
    )


def make_lstm():
    return nn.LSTM(3, 4, batch_first=True)


CASES = [
    *layers(),
    *(
        Case(
            name,
            "float64",
            Flat(kind(3, 4, batch_first=True).double()),
            lambda n: (torch.randn(n, 6, 3).double(),),
            declined="runs no recurrent layer in float64; cast the layer",
        )
        for name, kind in KINDS.items()
    ),
    *packs(),
    Case("LSTMCell", "in a loop", Loop(nn.LSTMCell(3, 4)), sequences(4)),
    Case("GRUCell", "in a loop", Loop(nn.GRUCell(3, 4)), sequences(4)),
    Case("RNNCell", "in a loop", Loop(nn.RNNCell(3, 4)), sequences(4)),
    Case("RNNCell", "relu, no bias", Loop(nn.RNNCell(3, 4, bias=False, nonlinearity="relu")), sequences(4)),
]
