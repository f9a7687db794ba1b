"""Spiking networks over time steps."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, Part, add, features, kept, load


def _over_time(cell: nn.Module) -> nn.Module:
    """A cell of snntorch over the time steps of (n, t, features), its states passed on."""

    def call(m: Any, x: Tensor) -> Tensor:
        states = m[1].reset_mem()
        states = states if isinstance(states, tuple) else (states,)
        found = []
        for step in range(x.shape[1]):
            results = m[1](m[0](x[:, step]), *states)
            states = results[-len(states) :]
            found.append(torch.cat(results, -1))
        return torch.stack(found, 1)

    return Part(nn.ModuleList([nn.Linear(6, 8), cell]), call)


SNN: dict[str, dict[str, Any]] = {
    "Leaky": {"beta": 0.9},
    "Synaptic": {"alpha": 0.8, "beta": 0.9},
    "Alpha": {"alpha": 0.9, "beta": 0.8},
    "RLeaky": {"beta": 0.9, "linear_features": 8},
    "Lapicque": {"beta": 0.9},
    "SLSTM": {"input_size": 8, "hidden_size": 8, "threshold": 0.1},
}
STEPS: dict[str, Sequence[int]] = {"t": (5, 3, 8)}
for each, options in SNN.items():
    make = functools.partial(lambda name, given: _over_time(getattr(load("snntorch"), name)(**given)), each, options)
    add("snntorch", f"snntorch {each}", make, features(6, 5), NT, **STEPS)


def _hidden_states() -> nn.Module:
    package = load("snntorch")
    network = nn.Sequential(
        nn.Linear(6, 8),
        package.Leaky(beta=0.9, init_hidden=True),
        nn.Linear(8, 4),
        package.Leaky(0.8, init_hidden=True, output=True),
    )

    def call(m: nn.Module, x: Tensor) -> Any:
        load("snntorch.utils").reset(m)
        return torch.stack([m(x[:, step])[1] for step in range(x.shape[1])], 1)

    return Part(network, call)


def _spiking_convolutions() -> nn.Module:
    cell = load("snntorch").SConv2dLSTM(2, 3, 3, max_pool=2, threshold=0.05)

    def call(m: Any, x: Tensor) -> Any:
        synapse, membrane = m.reset_mem()
        found = []
        for picture in x.unbind(1):
            spikes, synapse, membrane = m(picture, synapse, membrane)
            found.append(spikes.sum((2, 3)) + membrane.mean((2, 3)))
        return torch.stack(found, 1)

    return Part(cell, call)


add("snntorch", "snntorch hidden states", _hidden_states, features(6, 5), NT, **STEPS)
add(
    "snntorch",
    "SConv2dLSTM",
    _spiking_convolutions,
    lambda n, t=3, h=8, w=8: torch.randn(n, t, 2, h, w),
    {0: "n", 1: "t", 3: "h", 4: "w"},
    t=(3, 2, 5),
    h=(8, 10, 12),
    w=(8, 12, 6),
)


def _jelly(name: str, **options: Any) -> nn.Module:
    package = "spikingjelly.activation_based"
    layer, neuron = load(f"{package}.layer"), load(f"{package}.neuron")
    functional = load(f"{package}.functional")
    network = nn.Sequential(
        layer.Conv2d(3, 8, 3, 1, 1),
        layer.BatchNorm2d(8),
        getattr(neuron, name)(**options),
        layer.MaxPool2d(2),
        layer.Conv2d(8, 8, 3, 1, 1),
        getattr(neuron, name)(**options),
        layer.AdaptiveAvgPool2d(1),
        layer.Flatten(),
        layer.Linear(8, 4),
    )
    functional.set_step_mode(network, "m")

    def call(m: nn.Module, x: Tensor) -> Any:
        functional.reset_net(m)
        return m(x.transpose(0, 1)).mean(0)

    return Part(network, call)


def _clips(n: int, t: int = 4, h: int = 16, w: int = 16) -> Tensor:
    return torch.randn(n, t, 3, h, w) * 8


CLIP_AXES = {0: "n", 1: "t", 3: "h", 4: "w"}
CLIPS: dict[str, Sequence[int]] = {"t": (4, 2, 6), "h": (16, 20, 12), "w": (16, 12, 22)}
for each in ("IFNode", "LIFNode", "ParametricLIFNode", "EIFNode", "IzhikevichNode"):
    make = functools.partial(_jelly, each, v_threshold=0.3)
    add("spikingjelly", each, make, _clips, CLIP_AXES, **CLIPS)


def _jelly_lstm(name: str) -> nn.Module:
    made = getattr(load("spikingjelly.activation_based.rnn"), name)(6, 8, 1)
    return Part(made, lambda m, x: m(x.transpose(0, 1))[0].transpose(0, 1))


for each in ("SpikingLSTM", "SpikingGRU"):
    add("spikingjelly", each, functools.partial(_jelly_lstm, each), features(6, 5), NT, **STEPS)


def _norse(name: str, *args: Any) -> nn.Module:
    made = getattr(load("norse.torch"), name)(*args)
    return Part(made, lambda m, x: m(3 * x.transpose(0, 1)))


for each, args in (
    ("LIFRecurrent", (6, 8)),
    ("LSNNRecurrent", (6, 8)),
    ("LIF", ()),
    ("LI", ()),
    ("LIFRefracRecurrent", (6, 8)),
    ("LIFAdEx", ()),
):
    add("norse", f"norse {each}", functools.partial(_norse, each, *args), features(6, 5), NT, **STEPS)


def _norse_sequence() -> nn.Module:
    package = load("norse.torch")
    made = package.SequentialState(
        package.Lift(nn.Conv2d(3, 4, 3)), package.LIF(), package.Lift(nn.Flatten(1)), nn.LazyLinear(4), package.LI()
    )
    made(torch.randn(2, 1, 3, 12, 12))
    return Part(made, lambda m, x: m(4 * x.transpose(0, 1))[0])


def _encoded(name: str, *args: Any) -> nn.Module:
    return kept(getattr(load("norse.torch"), name)(*args))


add("norse", "norse SequentialState", _norse_sequence, lambda n, t=4: torch.randn(n, t, 3, 12, 12), NT, t=(4, 2, 6))
add(
    "norse",
    "ConstantCurrentLIFEncoder",
    lambda: _encoded("ConstantCurrentLIFEncoder", 30),
    lambda n: 3 * torch.rand(n, 6),
)
add("norse", "SpikeLatencyLIFEncoder", lambda: _encoded("SpikeLatencyLIFEncoder", 30), lambda n: 3 * torch.rand(n, 6))
