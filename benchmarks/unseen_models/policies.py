"""Networks of reinforcement learning."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, N, Part, add, features, image, load, points


def _agents(name: str, *args: Any, **options: Any) -> nn.Module:
    made: nn.Module = getattr(load("torchrl.modules"), name)(*args, **options)
    return made


CNN = {"cnn_kwargs": {"num_cells": [4], "kernel_sizes": [3], "strides": [1]}}
CNN |= {"mlp_kwargs": {"depth": 1, "num_cells": 8}}


def _dueling() -> nn.Module:
    """A network whose lazy parameters are made."""
    model = _agents("DuelingCnnDQNet", 3, **CNN)
    with torch.no_grad():
        model(torch.randn(1, 3, 8, 8))
    return model


add("torchrl", "torchrl DuelingCnnDQNet", _dueling, image(8))


DECISIONS = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_inner": 8, "n_positions": 64, "resid_pdrop": 0.0}
DECISIONS |= {"attn_pdrop": 0.0, "activation": "relu"}


def _decide() -> nn.Module:
    package = load("torchrl.modules")
    return _agents("DecisionTransformer", 4, 2, config=package.DecisionTransformer.DTConfig(**DECISIONS))


add(
    "torchrl",
    "torchrl DecisionTransformer",
    _decide,
    lambda n, t=6: (torch.randn(n, t, 4), torch.randn(n, t, 2), torch.randn(n, t, 1)),
    NT,
    NT,
    NT,
    t=(6, 4, 9),
)
add(
    "torchrl",
    "torchrl QMixer",
    lambda: _agents("QMixer", (5,), 8, 3, torch.device("cpu")),
    lambda n: (torch.randn(n, 3, 1), torch.randn(n, 5)),
    N,
    N,
)
for each in ("LSTM", "GRU"):
    make = functools.partial(_agents, each, 3, 6, num_layers=2)
    add("torchrl", f"torchrl {each} of Python", make, features(3, 6), NT, t=(6, 4, 9))


def _masked_lstm() -> nn.Module:
    keys = {"in_keys": ["x", "h", "c", "is_init"], "out_keys": ["y", "h2", "c2"]}
    package = load("torchrl.modules")
    lstm = package.LSTMModule(3, 6, **keys, default_recurrent_mode=True)

    def call(model: Any, x: Tensor, start: Tensor) -> Any:
        zero = torch.zeros(x.shape[0], x.shape[1], 1, 6)
        data = load("tensordict").TensorDict({"x": x, "is_init": start, "h": zero, "c": zero}, x.shape[:2])
        return model(data)["y"]

    return Part(lstm, call)


add(
    "torchrl",
    "torchrl LSTMModule of episodes",
    _masked_lstm,
    lambda n, t=6: (torch.randn(n, t, 3), (torch.arange(t) % 3 == 0)[None, :, None].expand(n, t, 1).clone()),
    NT,
    NT,
    t=(6, 4, 9),
)
AGENTS = {"n_agent_inputs": 4, "n_agent_outputs": 2, "n_agents": 3, "depth": 1, "num_cells": 8}
for centralised, shared in ((False, True), (True, True), (False, False)):
    make = functools.partial(_agents, "MultiAgentMLP", centralized=centralised, share_params=shared, **AGENTS)
    name = f"torchrl MultiAgentMLP, {'centralised' if centralised else 'apart'}, {'shared' if shared else 'own'}"
    add("torchrl", name, make, lambda n: torch.randn(n, 3, 4))


def _dictionary() -> nn.Module:
    package = load("tensordict.nn")
    model = package.TensorDictSequential(
        package.TensorDictModule(nn.Linear(4, 8), ["x"], ["h"]),
        package.TensorDictModule(lambda h, x: (h.relu().sum(-1, True) * x, h.argmax(-1)), ["h", "x"], ["y", "best"]),
        package.TensorDictModule(nn.Softmax(-1), ["y"], ["action"]),
    )

    def call(model: Any, x: Tensor) -> Any:
        found = model(load("tensordict").TensorDict({"x": x}, batch_size=x.shape[:1]))
        return found["action"], found["best"]

    return Part(model, call)


def _distributed() -> nn.Module:
    package = load("tensordict.nn")
    network = nn.Sequential(nn.Linear(4, 6), package.NormalParamExtractor())
    split = package.TensorDictModule(network, ["x"], ["loc", "scale"])
    deterministic = load("tensordict.nn").InteractionType.DETERMINISTIC
    draw = package.ProbabilisticTensorDictModule(
        ["loc", "scale"],
        ["action"],
        distribution_class=load("torchrl.modules").TanhNormal,
        default_interaction_type=deterministic,
    )
    return Part(package.ProbabilisticTensorDictSequential(split, draw), lambda m, x: m(x=x))


add("tensordict", "ProbabilisticTensorDictSequential", _distributed, points)


def _by_keys() -> nn.Module:
    package = load("tensordict.nn")
    first = package.TensorDictModule(nn.Linear(4, 8), ["x"], ["h"])
    last = package.TensorDictModule(nn.Linear(8, 3), ["h"], ["y"])
    return Part(package.TensorDictSequential(first, last), lambda m, x: m(x=x))


add("tensordict", "TensorDictSequential", _dictionary, points)
add("tensordict", "TensorDictSequential by keywords", _by_keys, points)


# stable-baselines3


A2C = "common.policies"


def _policy(module: str, cls: str, see: Callable[[Any], Any], act: Callable[[Any], Any], **options: Any) -> nn.Module:
    spaces = load("gymnasium.spaces")
    made = getattr(load(f"stable_baselines3.{module}"), cls)(see(spaces), act(spaces), lambda _: 1e-3, **options)
    return Part(made, lambda m, x: (m.q_net(x), m(x)) if hasattr(m, "q_net") else m(x, deterministic=True))


def _numbers(spaces: Any) -> Any:
    return spaces.Box(-1, 1, (5,))


def _screen(spaces: Any) -> Any:
    return spaces.Box(0, 255, (3, 36, 36), dtype="uint8")


def _force(spaces: Any) -> Any:
    return spaces.Box(-2, 2, (3,))


def _button(spaces: Any) -> Any:
    return spaces.Discrete(4)


def _buttons(spaces: Any) -> Any:
    return spaces.MultiDiscrete([2, 3, 4])


def _switches(spaces: Any) -> Any:
    return spaces.MultiBinary(4)


def _both(spaces: Any) -> Any:
    return spaces.Dict({"image": _screen(spaces), "number": _button(spaces), "vector": _numbers(spaces)})


def _seen(n: int) -> Tensor:
    return torch.randn(n, 5)


def _screens(n: int) -> Tensor:
    return torch.randint(0, 256, (n, 3, 36, 36), dtype=torch.uint8)


def _observations(n: int) -> dict[str, Tensor]:
    return {"image": _screens(n), "number": torch.randint(0, 4, (n,)), "vector": _seen(n)}


POLICIES: dict[str, tuple[Any, ...]] = {
    "actor and critic": (A2C, "ActorCriticPolicy", _numbers, _force),
    "actor and critic, discrete": (A2C, "ActorCriticPolicy", _numbers, _button),
    "actor and critic, several": (A2C, "ActorCriticPolicy", _numbers, _buttons),
    "actor and critic, switches": (A2C, "ActorCriticPolicy", _numbers, _switches),
    "DQN": ("dqn.policies", "DQNPolicy", _numbers, _button),
    "SAC": ("sac.policies", "SACPolicy", _numbers, _force),
    "TD3": ("td3.policies", "TD3Policy", _numbers, _force),
}
for each, args in POLICIES.items():
    add("stable_baselines3", f"policy {each}", functools.partial(_policy, *args), _seen)
SQUASHED = {"use_sde": True, "squash_output": True}
make = functools.partial(_policy, A2C, "ActorCriticPolicy", _numbers, _force, **SQUASHED)
add("stable_baselines3", "policy actor and critic, gSDE", make, _seen)
CNN = {"features_extractor_kwargs": {"features_dim": 16}}
make = functools.partial(_policy, A2C, "ActorCriticCnnPolicy", _screen, _button, **CNN)
add("stable_baselines3", "policy of pictures", make, _screens)
make = functools.partial(_policy, "dqn.policies", "CnnPolicy", _screen, _button, **CNN)
add("stable_baselines3", "policy of pictures, DQN", make, _screens)
CNN = {"features_extractor_kwargs": {"cnn_output_dim": 16}}
make = functools.partial(_policy, A2C, "MultiInputActorCriticPolicy", _both, _force, **CNN)
add("stable_baselines3", "policy of several", make, _observations, N, N, N)
