"""Scattering, wavelets, complex numbers, and networks that know how sure they are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NHW, NT, SIZES, T12, Part, add, add_class, features, image, kept, load, small_classifier

# kymatio


def _scattering(dimensions: int, *args: Any, **options: Any) -> nn.Module:
    module = load(f"kymatio.scattering{dimensions}d.frontend.torch_frontend")
    return kept(getattr(module, f"ScatteringTorch{dimensions}D")(*args, **options))


def _wave(length: int) -> Callable[..., Tensor]:
    return lambda n, t=length: torch.randn(n, t)


add("kymatio", "Scattering2D", lambda: _scattering(2, 2, (32, 32), L=4), lambda n: torch.randn(n, 3, 32, 32))
add(
    "kymatio",
    "Scattering2D, order 1",
    lambda: _scattering(2, 1, (16, 20), L=3, max_order=1),
    lambda n: torch.randn(n, 16, 20),
)
add("kymatio", "Scattering1D", lambda: _scattering(1, 4, 256, Q=4), _wave(256))
add("kymatio", "Scattering1D, order 1", lambda: _scattering(1, 3, 100, Q=2, max_order=1), _wave(100))


# pytorch-fid

FID = "pytorch_fid.inception"
FOUR_BLOCKS = {"output_blocks": (0, 1), "use_fid_inception": False, "resize_input": False}


def _inception(**options: Any) -> nn.Module:
    module = load(FID)
    weightless = module.fid_inception_v3
    module.fid_inception_v3 = lambda: module._inception_v3(num_classes=1008, aux_logits=False, weights=None)
    try:
        return kept(module.InceptionV3(**options))
    finally:
        module.fid_inception_v3 = weightless


PICTURES: dict[str, Sequence[int]] = {"h": (96, 128), "w": (96, 112)}
add(
    "pytorch_fid",
    "Inception, two blocks",
    lambda: _inception(output_blocks=(0, 1), resize_input=False),
    image(96),
    NHW,
    **PICTURES,
)
add("pytorch_fid", "Inception, resized", lambda: _inception(output_blocks=(1,)), image(48), NHW, h=(48, 64), w=(48, 56))


# torch-uncertainty

UNCERTAIN = "torch_uncertainty.models.classification"
RESNET = {
    "in_channels": 3,
    "num_classes": 4,
    "arch": 18,
    "num_estimators": 2,
    "style": "cifar",
    "width_multiplier": 0.25,
}
for each, options in (
    ("packed_resnet", {"alpha": 2, "gamma": 1}),
    ("batched_resnet", {}),
    ("mimo_resnet", {}),
):
    add_class("torch_uncertainty", each, RESNET | options, image(), NHW, module=UNCERTAIN, **SIZES)
LENET = {"in_channels": 3, "num_classes": 4, "num_estimators": 2}
add_class("torch_uncertainty", "packed_lenet", LENET, image(), module=UNCERTAIN)


def _packed_attention() -> nn.Module:
    made = load("torch_uncertainty.layers").PackedMultiheadAttention(16, 2, 2, 2, batch_first=True, last=True)
    return Part(made, lambda m, x: m(x, x, x)[0])


def _ensemble() -> nn.Module:
    made = load("torch_uncertainty.methods.deep_ensembles")._DeepEnsembles([small_classifier() for _ in range(3)])
    return kept(made)


def _mlp(name: str, **options: Any) -> nn.Module:
    made = getattr(load("torch_uncertainty.models.mlp"), name)(6, 2, [16, 16], **options)
    if "dist_family" not in options:
        return kept(made)
    return Part(made, lambda m, x: tuple(m(x).values()))


def _rows(n: int) -> Tensor:
    return torch.randn(n, 6)


add("torch_uncertainty", "packed attention", _packed_attention, features(32), NT, t=T12)
add("torch_uncertainty", "deep ensemble", _ensemble, image(), NHW, **SIZES)
add("torch_uncertainty", "packed_mlp, normal", lambda: _mlp("packed_mlp", dist_family="normal"), _rows)
add("torch_uncertainty", "batched_mlp", lambda: _mlp("batched_mlp"), _rows)
add("torch_uncertainty", "mlp, normal inverse gamma", lambda: _mlp("mlp", dist_family="nig"), _rows)


# complextorch and complexPyTorch: complex numbers inside, real results


def _complex(*layers: tuple[Any, ...], last: Callable[[Tensor], Tensor] = torch.abs) -> nn.Module:
    """A sequence of complextorch's layers between two real numbers for one complex and its absolute value."""
    package = load("complextorch.nn")
    network = nn.Sequential(*(getattr(package, name)(*args) for name, *args in layers))
    return Part(network, lambda m, x, y: last(m(torch.complex(x, y))))


def _complex_pair(*shape: int) -> Callable[..., tuple[Tensor, Tensor]]:
    return lambda n, t=12: (torch.randn(n, *shape), torch.randn(n, *shape))


def _complex_maps(n: int, h: int = 16, w: int = 16) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 2, h, w), torch.randn(n, 2, h, w)


def _complex_rows(n: int, t: int = 12) -> tuple[Tensor, Tensor]:
    return torch.randn(n, t, 4), torch.randn(n, t, 4)


def _complex_recurrence(name: str, **options: Any) -> nn.Module:
    made = getattr(load("complextorch.nn"), name)(4, 6, batch_first=True, **options)
    return Part(made, lambda m, x, y: m(torch.complex(x, y))[0].abs())


def _complex_attention() -> nn.Module:
    made = load("complextorch.nn").MultiheadAttention(2, 4, 4, 4, dropout=0.0)

    def call(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        z = torch.complex(x, y)
        return torch.view_as_real(m(z, z, z))

    return Part(made, call)


CONVOLUTIONS = (("Conv2d", 2, 4, 3, 1, 1), ("BatchNorm2d", 4), ("CReLU", False), ("AvgPool2d", 2), ("Conv2d", 4, 3, 3))
POLAR = (("Conv2d", 2, 4, 3), ("modReLU",), ("CVPolarTanh",), ("Conv2d", 4, 2, 1), ("CVCardiod",))
POOLED = (("Conv2d", 2, 4, 3, 1, 1), ("zReLU",), ("MagMaxPool2d", 2), ("AdaptiveAvgPool2d", 2))
for each, layers in (("convolutions", CONVOLUTIONS), ("polar", POLAR), ("pooled", POOLED)):
    make = functools.partial(_complex, *layers)
    add("complextorch", f"complextorch {each}", make, _complex_maps, NHW, NHW, h=(16, 20, 12), w=(16, 12, 22))
for each, options in (("GRU", {}), ("LSTM", {"bidirectional": True})):
    make = functools.partial(_complex_recurrence, each, **options)
    add("complextorch", f"complextorch {each}", make, _complex_rows, NT, NT, t=(5, 3, 8))
add("complextorch", "complextorch attention", _complex_attention, _complex_rows, NT, NT, t=T12)


def _complex_pytorch(norm: str) -> nn.Module:
    package = load("complexPyTorch.complexLayers")
    network = nn.Sequential(
        package.ComplexConv2d(2, 4, 3, 1, 1),
        getattr(package, norm)(4),
        package.ComplexReLU(),
        package.ComplexMaxPool2d(2, 2),
        package.ComplexConvTranspose2d(4, 3, 2, 2),
    )
    return Part(network, lambda m, x, y: m(torch.complex(x, y)).abs())


for each in ("ComplexBatchNorm2d", "NaiveComplexBatchNorm2d"):
    make = functools.partial(_complex_pytorch, each)
    add("complexPyTorch", f"with {each}", make, _complex_maps, NHW, NHW, h=(16, 20, 12), w=(16, 12, 22))


# torch-dct, ptwt


def _call(module: str, name: str, *args: Any, takes: int = 1, **options: Any) -> Callable[[], nn.Module]:
    def call(_: nn.Module, *tensors: Tensor) -> Any:
        return getattr(load(module), name)(*tensors[:takes], *args, **options)

    return functools.partial(Part, nn.Identity(), call)


for each in ("dct1", "dct", "idct"):
    add("torch_dct", each, _call("torch_dct", each), _wave(16), NT, t=(16, 9, 24))
add("torch_dct", "dct_2d, ortho", _call("torch_dct", "dct_2d", "ortho"), image(16), NHW, h=(16, 8, 13), w=(16, 24, 10))
add("torch_dct", "idct_2d", _call("torch_dct", "idct_2d"), image(16), NHW, h=(16, 8, 13), w=(16, 24, 10))


def _wavelets(name: str, back: str, wavelet: str, **options: Any) -> nn.Module:
    def call(_: nn.Module, x: Tensor) -> Any:
        package = load("ptwt")
        coefficients = getattr(package, name)(x, wavelet, **options)
        return coefficients, getattr(package, back)(coefficients, wavelet)

    return Part(nn.Identity(), call)


ODD: dict[str, Sequence[int]] = {"h": (32, 25, 40), "w": (32, 36, 27)}
add("ptwt", "wavedec and back", lambda: _wavelets("wavedec", "waverec", "db2", level=3), _wave(64), NT, t=(64, 50, 81))
add("ptwt", "swt and back", lambda: _wavelets("swt", "iswt", "haar", level=2), _wave(64), NT, t=(64, 48, 80))
make = functools.partial(_wavelets, "wavedec2", "waverec2", "db2", level=2, mode="constant")
add("ptwt", "wavedec2 and back", make, image(), NHW, **ODD)
make = functools.partial(_wavelets, "fswavedec2", "fswaverec2", "haar", level=2)
add("ptwt", "fswavedec2 and back", make, image(), NHW, **SIZES)


def _continuous() -> nn.Module:
    return Part(nn.Identity(), lambda _, x: load("ptwt").cwt(x, [1, 2, 4, 6], "mexh")[0])


def _packets() -> nn.Module:
    def call(_: nn.Module, x: Tensor) -> Any:
        packets = load("ptwt").WaveletPacket(x, "db2", mode="reflect", maxlevel=2)
        return torch.stack([packets[node] for node in packets.get_level(2)], 1)

    return Part(nn.Identity(), call)


add("ptwt", "cwt", _continuous, _wave(64), NT, t=(64, 48, 81))
add("ptwt", "WaveletPacket", _packets, _wave(64), NT, t=(64, 48, 80))


# torchbnn with its noise frozen


def _frozen() -> nn.Module:
    package = load("torchbnn")
    network = nn.Sequential(
        package.BayesConv2d(0, 0.1, 3, 8, 3, padding=1),
        package.BayesBatchNorm2d(0, 0.1, 8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        package.BayesLinear(0, 0.1, 8, 4),
    )
    package.utils.freeze(network)
    return network


add("torchbnn", "frozen Bayes network", _frozen, image(), NHW, **SIZES)
