"""Normalizing flows, and pyro's networks."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, T12, N, Part, add, image, load, points

# nflows


def _both(model: Any, x: Tensor) -> Any:
    """A transform's results there and back, with their log-determinants."""
    return *model(x), *model.inverse(x)


def _residual(i: int, o: int) -> nn.Module:
    made: nn.Module = load("nflows.nn.nets").ResidualNet(i, o, hidden_features=8, num_blocks=1)
    return made


TAILS = {"num_bins": 4, "tails": "linear", "tail_bound": 2.0}
COUPLED: dict[str, Any] = {"mask": [1, 0, 1, 0], "transform_net_create_fn": _residual}
NFLOWS: dict[str, dict[str, Any]] = {
    "PiecewiseRationalQuadraticCouplingTransform": COUPLED | TAILS,
    "PiecewiseQuadraticCouplingTransform": COUPLED | TAILS,
    "AffineCouplingTransform": COUPLED,
    "MaskedAffineAutoregressiveTransform": {"features": 4, "hidden_features": 8, "num_blocks": 1},
    "MaskedPiecewiseRationalQuadraticAutoregressiveTransform": {"features": 4, "hidden_features": 8, "num_blocks": 1}
    | TAILS,
    "LULinear": {"features": 4},
    "SVDLinear": {"features": 4, "num_householder": 2},
    "QRLinear": {"features": 4, "num_householder": 2},
    "PiecewiseCubicCDF": {"shape": [4], **TAILS},
}
for each, options in NFLOWS.items():
    make = functools.partial(lambda name, o: Part(getattr(load("nflows.transforms"), name)(**o), _both), each, options)
    add("nflows", f"nflows {each}", make, points)


def _multiscale() -> nn.Module:
    package = load("nflows.transforms")
    model = package.MultiscaleCompositeTransform(2)
    first = package.CompositeTransform([package.SqueezeTransform(), package.ActNorm(12)])
    shape = model.add_transform(first, (12, 4, 4))
    model.add_transform(package.OneByOneConvolution(shape[0]), shape)
    return Part(model, lambda m, x: m(x))


add("nflows", "nflows MultiscaleCompositeTransform", _multiscale, lambda n: torch.randn(n, 3, 8, 8))


# normflows

NORMFLOWS: dict[str, tuple[Any, ...]] = {
    "CoupledRationalQuadraticSpline": (4, 1, 8),
    "AutoregressiveRationalQuadraticSpline": (4, 1, 8),
    "CircularAutoregressiveRationalQuadraticSpline": (4, 1, 8, (1, 2)),
    "MaskedAffineAutoregressive": (4, 8),
    "LULinearPermute": (4,),
}
for each, args in NORMFLOWS.items():
    make = functools.partial(lambda name, a: Part(getattr(load("normflows.flows"), name)(*a), _both), each, args)
    add("normflows", f"normflows {each}", make, points)
for each in ("Planar", "Radial"):
    make = functools.partial(lambda name: getattr(load("normflows.flows"), name)((4,)), each)
    add("normflows", f"normflows {each}", make, points)


# FrEIA


def _dense(i: int, o: int) -> nn.Module:
    return nn.Sequential(nn.Linear(i, 8), nn.ReLU(), nn.Linear(8, o))


def _freia(name: str, size: tuple[int, ...], **options: Any) -> nn.Module:
    framework = load("FrEIA.framework")
    model = framework.SequenceINN(*size)
    for _ in range(2):
        model.append(getattr(load("FrEIA.modules"), name), **options)

    def call(model: Any, x: Tensor) -> Any:
        y, jacobian = model(x)
        return y, jacobian, *model(y * 0.9, rev=True)

    return Part(model, call)


FREIA: dict[str, dict[str, Any]] = {
    "AllInOneBlock": {"subnet_constructor": _dense, "permute_soft": True},
    "RNVPCouplingBlock": {"subnet_constructor": _dense},
    "GLOWCouplingBlock": {"subnet_constructor": _dense},
    "GINCouplingBlock": {"subnet_constructor": _dense},
    "HouseholderPerm": {"n_reflections": 2},
}
for each, options in FREIA.items():
    add("FrEIA", f"FrEIA {each}", functools.partial(_freia, each, (4,), **options), points)
for each in ("IRevNetDownsampling", "HaarDownsampling"):
    add("FrEIA", f"FrEIA {each}", functools.partial(_freia, each, (3, 8, 8)), image(8), N)


# pyro


def _pyro(name: str, *args: Any, inverse: bool = False, **options: Any) -> nn.Module:
    made = getattr(load("pyro.distributions.transforms"), name)(*args, **options)

    def call(model: Any, x: Tensor) -> Any:
        y = model(x)
        result = (y, model.log_abs_det_jacobian(x, y))
        model.clear_cache()
        return (*result, model._inverse(x)) if inverse else result

    return Part(made, call)


PYRO: dict[str, tuple[bool, dict[str, Any]]] = {
    "spline_coupling": (True, {"hidden_dims": [8], "count_bins": 4}),
    "affine_autoregressive": (True, {"hidden_dims": [8]}),
    "spline_autoregressive": (True, {"hidden_dims": [8], "count_bins": 4}),
    "block_autoregressive": (False, {}),
    "neural_autoregressive": (False, {"hidden_dims": [8], "width": 4}),
    "polynomial": (False, {"hidden_dims": [8]}),
    "sylvester": (False, {"count_transforms": 2}),
    "planar": (False, {}),
    "radial": (False, {}),
    "householder": (True, {"count_transforms": 2}),
    "matrix_exponential": (True, {}),
    "spline": (True, {"count_bins": 4}),
}
for each, (inverse, options) in PYRO.items():
    add("pyro-ppl", f"pyro {each}", functools.partial(_pyro, each, 4, inverse=inverse, **options), points)
for each in ("HaarTransform", "DiscreteCosineTransform"):
    make = functools.partial(_pyro, each, dim=-1, inverse=True)
    add("pyro-ppl", f"pyro {each}", make, lambda n, t=12: torch.randn(n, t), NT, t=T12)
add("pyro-ppl", "pyro AutoRegressiveNN", lambda: load("pyro.nn").AutoRegressiveNN(4, [8], [2, 1]), points)
