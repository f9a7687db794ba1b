"""Speech and music, and the quantisers of their codecs."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, T12, add, add_class, features, load

QUANTISERS: dict[str, tuple[int, dict[str, Any]]] = {
    "VectorQuantize": (8, {"dim": 8, "codebook_size": 16}),
    "FSQ": (8, {"levels": [4, 5, 6], "dim": 8}),
    "LFQ": (4, {"codebook_size": 16, "dim": 4}),
    "ResidualFSQ": (8, {"levels": [4, 5], "num_quantizers": 2, "dim": 8}),
    "RandomProjectionQuantizer": (8, {"dim": 8, "codebook_size": 16, "codebook_dim": 4}),
}
for each, (width, options) in QUANTISERS.items():
    name = f"vector-quantize {each}"
    add_class("vector-quantize-pytorch", each, options, features(width), NT, name=name, t=T12)
CONFORMER = {"dim": 16, "depth": 1, "dim_head": 8, "heads": 2, "conv_kernel_size": 7}
add_class("conformer", "Conformer", CONFORMER, features(16), NT, t=T12)
add("torchcrepe", "Crepe tiny", lambda: load("torchcrepe").Crepe("tiny"), lambda n: torch.randn(n, 1024))
STEPS = {"depth": 1, "time_transformer_depth": 1, "freq_transformer_depth": 1, "flash_attn": False}
STFT = {"stft_n_fft": 64, "stft_hop_length": 16, "stft_win_length": 64, "freqs_per_bands": (8, 9, 16)}
ROFORMER = {"dim": 16, "dim_head": 8, "heads": 2, **STEPS, **STFT}
add_class("BS-RoFormer", "BSRoformer", ROFORMER, lambda n: torch.randn(n, 256), module="bs_roformer")


def _pyannote(module: str, name: str) -> nn.Module:
    model: Any = getattr(load(f"pyannote.audio.models.{module}"), name)()
    if module == "segmentation":
        task = load("pyannote.audio.core.task")
        model.specifications = task.Specifications(
            problem=task.Problem.MULTI_LABEL_CLASSIFICATION,
            resolution=task.Resolution.FRAME,
            duration=1.0,
            classes=["a", "b", "c"],
        )
        model.build()
    made: nn.Module = model
    return made


def _sound(n: int, t: int = 16000) -> Tensor:
    return torch.randn(n, 1, t)


for where, each in (
    ("segmentation", "PyanNet"),
    ("embedding", "XVectorSincNet"),
    ("embedding", "WeSpeakerResNet34"),
):
    make = functools.partial(_pyannote, where, each)
    add("pyannote.audio", each, make, _sound, {0: "n", 2: "t"}, t=(16000, 24000, 12800))
