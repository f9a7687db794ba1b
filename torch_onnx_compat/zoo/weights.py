"""Where a model's numbers come from: a fixed seed, or a checkpoint that nobody has to trust."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.zoo.norms import MANNERS, NormInit, amplification, draw, measuring, norms
from torch_onnx_compat.zoo.sample import SEED

PICTURES = 4
"""How many pictures batch norms measure: within one, the deep features of some models hardly vary."""
_SHOWN = 5


def build_with_seed(
    build: Callable[[], nn.Module],
    args: tuple[Any, ...],
    hook: Callable[[nn.Module], RemovableHandle] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> nn.Module:
    """Builds a model in eval mode with numbers from a fixed seed; torch's own generator stays as it was.

    Fresh initialisation hides errors: norms that multiply by 1 and add 0, residual branches scaled by 0, heads of
    zeros, and batch norms that do not normalise, until the output of a deep model hardly depends on its input (by 4e-8
    of its spread in mobilenet_v3_small). So constants are drawn at random and batch norms measure the example, in the
    first manner of `MANNERS` that lets neither roundings nor the features of new pictures grow without bound.

    Args:
        build: Makes the model.
        args: Example inputs, of `PICTURES` pictures where that is cheap.
        hook: Registers what else is to be set while the model runs on the example.
        kwargs: Example keyword inputs.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        for manner in MANNERS:
            model = None  # a large one leaves before the next is built
            torch.manual_seed(SEED)
            model = _built(build, args, hook, kwargs or {}, manner)
            if amplification(model, args, kwargs or {}) <= 1:
                break
    assert model is not None
    return model


def _built(
    build: Callable[[], nn.Module],
    args: tuple[Any, ...],
    hook: Callable[[nn.Module], RemovableHandle] | None,
    kwargs: Mapping[str, Any],
    manner: NormInit,
) -> nn.Module:
    model = build()
    model.eval()
    for parameter in model.parameters():
        _wake(parameter)
    found = norms(model)
    for norm in found:
        draw(norm, manner)
    handles = [measuring(norm, manner) for norm in found] + ([hook(model)] if hook else [])
    if handles:
        model(*args, **kwargs)
    for handle in handles:
        handle.remove()
    return model


def _wake(parameter: Tensor) -> None:
    """Draws a parameter that initialisation left constant: ones from U(0.5, 1.5), any other constant from N(0, 0.1)."""
    first = parameter.flatten()[:1]
    if not parameter.is_floating_point() or not first.numel() or not bool((parameter == first).all()):
        return
    if float(first) == 1.0:
        parameter.uniform_(0.5, 1.5)
    else:
        parameter.normal_(0.0, 0.1)


def quiet_hub() -> AbstractContextManager[None]:
    """The Hub's client does not tell of each attempt to reach it; the error at the end says it once."""
    return quiet("huggingface_hub", logging.ERROR)


@contextmanager
def quiet(name: str, least: int) -> Iterator[None]:
    """A logger tells what is of that level and above."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(least)
    try:
        yield
    finally:
        logger.setLevel(level)


def load_checkpoint(model: nn.Module, path: Path) -> None:
    """Loads a checkpoint into a model, in place and strictly.

    Args:
        model: The model that the checkpoint was made for.
        path: What torch.save wrote: a state_dict, or a dict with one under ``state_dict`` or ``model``. It is read with
            ``weights_only=True``, so nothing in it can run. The ``module.`` that DataParallel puts before every name is
            taken off.

    Raises:
        CompatError: The file cannot be read, holds no state_dict, or does not fit the model.
    """
    state = _state_dict(path, _read(path))
    if state and all(name.startswith("module.") for name in state):
        state = {name.removeprefix("module."): value for name, value in state.items()}
    own = model.state_dict()
    problems = _name_of("missing", own.keys() - state.keys()) + _name_of("unexpected", state.keys() - own.keys())
    problems += [
        f"{name} has shape {tuple(value.shape)}, wanted {tuple(own[name].shape)}"
        for name, value in state.items()
        if isinstance(own.get(name), Tensor) and value.shape != own[name].shape
    ][:_SHOWN]
    if problems:
        raise CompatError(f"{path}: the checkpoint does not fit {type(model).__name__}: {'; '.join(problems)}.")
    model.load_state_dict(state, strict=True)


def _read(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise CompatError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except pickle.UnpicklingError as error:
        raise CompatError(
            f"{path}: holds Python objects beside tensors, which weights_only=True refuses, or is no checkpoint; "
            f"save model.state_dict() instead."
        ) from error
    except (RuntimeError, EOFError, ValueError, KeyError) as error:
        raise CompatError(f"{path}: is no checkpoint that torch.load can read: {error}") from error


def _state_dict(path: Path, loaded: Any) -> Mapping[str, Tensor]:
    for key in ("state_dict", "model"):
        if isinstance(loaded, Mapping) and isinstance(loaded.get(key), Mapping):
            loaded = loaded[key]
            break
    if not isinstance(loaded, Mapping) or not all(isinstance(value, Tensor) for value in loaded.values()):
        keys = f" with the keys {sorted(map(str, loaded))[:_SHOWN]}" if isinstance(loaded, Mapping) else ""
        raise CompatError(
            f"{path}: holds a {type(loaded).__name__}{keys}; wanted a state_dict, or a dict with one under "
            f"'state_dict' or 'model'."
        )
    return loaded


def _name_of(kind: str, names: set[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(sorted(names)[:_SHOWN])
    return [f"{kind} {shown}" + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")]
