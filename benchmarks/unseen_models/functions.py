"""Splines, fields, acquisition functions, and clusters."""

from __future__ import annotations

import functools
import tempfile
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, T12, N, Part, add, load, points

# pykan, torchdyn, torchsde, botorch


def _kan() -> nn.Module:
    with tempfile.TemporaryDirectory() as folder:
        options = {"symbolic_enabled": False, "auto_save": False, "save_act": False, "ckpt_path": folder}
        made: nn.Module = load("kan").KAN([4, 3, 2], **options)
    return made


def _kan_products() -> nn.Module:
    with tempfile.TemporaryDirectory() as folder:
        made: nn.Module = load("kan").KAN([4, [2, 1], 2], auto_save=False, ckpt_path=folder)
    return made


add("pykan", "KAN, splines alone", _kan, points)
add("pykan", "KAN with products and symbols", _kan_products, points)


def _ode(solver: str, **options: Any) -> nn.Module:
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
    times = torch.linspace(0, 1, 4)
    return Part(load("torchdyn.core").NeuralODE(network, solver=solver, **options), lambda m, x: m(x, times))


for each in ("euler", "rk4", "tsit5", "dopri5"):
    add("torchdyn", f"torchdyn NeuralODE, {each}", functools.partial(_ode, each), points)


class Brown(nn.Module):
    """A stochastic equation, whose noise is an argument."""

    noise_type, sde_type = "diagonal", "ito"

    def __init__(self) -> None:
        super().__init__()
        self.drift, self.spread = nn.Linear(4, 4), nn.Linear(4, 4)

    def f(self, t: Tensor, y: Tensor) -> Tensor:
        """The drift."""
        return torch.tanh(self.drift(y)) * t

    def g(self, t: Tensor, y: Tensor) -> Tensor:
        """The diffusion."""
        return 0.3 * torch.sigmoid(self.spread(y))


def _sde(method: str) -> nn.Module:
    package = load("torchsde")

    class Motion(package.BaseBrownian):  # type: ignore[misc, name-defined]
        """Increments that a tensor gives."""

        def __init__(self, noise: Tensor) -> None:
            super().__init__()
            self.noise = noise

        def __call__(self, ta: Any, tb: Any = None, return_U: bool = False, return_A: bool = False) -> Any:  # noqa: N803
            step = self.noise[round(float(ta) * 8)] * (tb - ta) ** 0.5
            return (step, 0.5 * (tb - ta) * step) if return_U else step

        def __repr__(self) -> str:
            return "Motion()"

        dtype = property(lambda self: self.noise.dtype)
        device = property(lambda self: self.noise.device)
        shape = property(lambda self: self.noise.shape[1:])

        levy_area_approximation = "none"

    def call(model: Any, x: Tensor, noise: Tensor) -> Any:
        return package.sdeint(model, x, torch.linspace(0, 1, 3), bm=Motion(noise), method=method, dt=0.125)

    return Part(Brown(), call)


for each in ("euler", "milstein"):
    make = functools.partial(_sde, each)
    add("torchsde", f"torchsde {each}", make, lambda n: (torch.randn(n, 4), torch.randn(9, n, 4)), N, {1: "n"})
FUNCTIONS = {"Ackley": 4, "Hartmann": 6, "Levy": 4, "Michalewicz": 5, "Shekel": 4, "DTLZ2": 6, "ZDT1": 4}
for each, width in FUNCTIONS.items():
    options = {"dim": width} if each in ("Ackley", "Levy", "Michalewicz", "DTLZ2", "ZDT1") else {}
    if each in ("DTLZ2", "ZDT1"):
        options["num_objectives"] = 2
    make = functools.partial(
        lambda name, o: Part(getattr(load("botorch.test_functions"), name)(**o), lambda m, x: m(x, noise=False)),
        each,
        options,
    )
    add("botorch", f"botorch {each}", make, functools.partial(lambda width, n: torch.rand(n, width), width))


def _acquisition(name: str, **options: Any) -> nn.Module:
    x = torch.rand(8, 3, dtype=torch.float64)
    model = load("botorch.models").SingleTaskGP(x, x.sum(1, keepdim=True).sin(), outcome_transform=None)
    model.eval()
    made: nn.Module = getattr(load("botorch.acquisition"), name)(model, **options)
    return made


ACQUISITIONS = {"LogExpectedImprovement": {"best_f": 0.5}, "UpperConfidenceBound": {"beta": 0.2}, "PosteriorMean": {}}
for each, options in ACQUISITIONS.items():
    make = functools.partial(_acquisition, each, **options)
    add("botorch", f"botorch {each}", make, lambda n: torch.rand(n, 1, 3, dtype=torch.float64))


# torch-kmeans, fast-pytorch-kmeans


def _points_a(n: int, t: int = 12) -> tuple[Tensor, Tensor]:
    x = torch.randn(n, t, 3)
    return x, x[:, :4] + 0.1


def _kmeans(model: Any, x: Tensor, centers: Tensor) -> Any:
    result = model(x, k=4, centers=centers)
    return result.labels, result.centers, result.inertia


def _lloyd(_: nn.Module, x: Tensor, centers: Tensor) -> Any:
    model = load("fast_pytorch_kmeans").KMeans(n_clusters=4, max_iter=8, mode="euclidean")
    return model.fit_predict(x, centers), model.centroids


for each in ("KMeans", "SoftKMeans"):
    make = functools.partial(
        lambda name: Part(getattr(load("torch_kmeans"), name)(max_iter=6, num_init=1, verbose=False), _kmeans), each
    )
    add("torch-kmeans", f"torch-kmeans {each}", make, _points_a, NT, N, t=T12)
add(
    "fast-pytorch-kmeans",
    "fast-pytorch-kmeans",
    lambda: Part(nn.Identity(), _lloyd),
    lambda n, t=12: tuple(v[0] for v in _points_a(1, t)),
    {0: "t"},
    {},
    t=T12,
)
