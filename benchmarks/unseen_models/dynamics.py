"""Flows, differential equations, transforms of fields, and kernels."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import N, Part, add, add_class, load


def _flow(name: str) -> nn.Module:
    flow = getattr(load("zuko.flows"), name)(3, 2, transforms=2, hidden_features=(8, 8))
    return Part(flow, lambda m, x, context: m(context).log_prob(x))


for each in ("MAF", "NSF", "NICE", "SOSPF"):
    make = functools.partial(_flow, each)
    add("zuko", f"zuko {each}", make, lambda n: (torch.randn(n, 3), torch.randn(n, 2)), N, N)


def _equation(**options: Any) -> nn.Module:
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))
    times = torch.linspace(0, 1, 5)
    return Part(network, lambda m, x: load("torchdiffeq").odeint(lambda t, y: m(y), x, times, **options))


add("torchdiffeq", "neural ODE, rk4", lambda: _equation(method="rk4"), lambda n: torch.randn(n, 3))
add("torchdiffeq", "neural ODE, dopri5", _equation, lambda n: torch.randn(n, 3))


def _path(n: int) -> Tensor:
    return torch.randn(n, 10, 3)


def _spline(_: nn.Module, x: Tensor) -> Any:
    package = load("torchcde")
    return package.CubicSpline(package.natural_cubic_coeffs(x)).evaluate(torch.tensor(2.5))


def _hermite(_: nn.Module, x: Tensor) -> Any:
    return load("torchcde").hermite_cubic_coefficients_with_backward_differences(x)


add("torchcde", "Hermite coefficients", lambda: Part(nn.Identity(), _hermite), _path)
add("torchcde", "natural cubic spline", lambda: Part(nn.Identity(), _spline), _path)


def _field(n: int) -> Tensor:
    return torch.randn(n, 3, 12, 24)


def _there_and_back() -> nn.Module:
    package = load("torch_harmonics")
    return nn.Sequential(package.RealSHT(12, 24), package.InverseRealSHT(12, 24))


add_class("torch-harmonics", "RealSHT", {"nlat": 12, "nlon": 24}, _field)
add("torch-harmonics", "SHT and back", _there_and_back, _field)


def _kernel() -> nn.Module:
    kernels = load("gpytorch").kernels
    return Part(kernels.ScaleKernel(kernels.RBFKernel(ard_num_dims=3)), lambda m, x, y: m(x, y).to_dense())


add("gpytorch", "RBF kernel", _kernel, lambda n, t=6: (torch.randn(n, 3), torch.randn(t, 3)), N, {0: "t"}, t=(6, 4, 9))


def _tensor_regression() -> nn.Module:
    made: nn.Module = load("tltorch").TRL((4, 5), (3,), bias=True, rank=0.5, factorization="tucker")
    return made


add("tensorly-torch", "TRL", _tensor_regression, lambda n: torch.randn(n, 4, 5))
