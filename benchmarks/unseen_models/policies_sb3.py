"""Policies of stable-baselines3."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import N, Part, add, load

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
