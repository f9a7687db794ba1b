"""Forecasts: darts and gluonts."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import N, Part, add, load

# darts


def _darts(module: str, cls: str, *inputs: str, **options: Any) -> nn.Module:
    common = {"input_chunk_length": 12, "output_chunk_length": 4, "nr_params": 1}
    shape = {"past_target": (12, 2), "past_covariates": None, "future_target": (4, 2), "static_covariates": None}
    made = getattr(load(f"darts.models.forecasting.{module}"), cls)
    model = made(**common, **options, train_sample_shape=shape)

    def call(model: Any, *args: Tensor) -> Any:
        package = load("darts.utils.data.torch_datasets.utils")
        found = model(package.PLModuleInput(**dict(zip(("past_target", *inputs), args, strict=True))))
        return found.prediction, found.state

    return Part(model, call)


def _series(*widths: tuple[int, int]) -> Any:
    return lambda n: tuple(torch.randn(n, *size) for size in ((12, 2), *widths))


DEEP = {"num_stacks": 2, "num_blocks": 1, "num_layers": 2, "layer_widths": [8, 8], "dropout": 0.0, "activation": "ReLU"}
DARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "_TCNModule": (
        "tcn_model",
        {"input_size": 2, "kernel_size": 3, "num_filters": 4, "num_layers": None, "dilation_base": 2}
        | {"weight_norm": True, "target_size": 2, "target_length": 4, "dropout": 0.0},
    ),
    "_NBEATSModule": (
        "nbeats",
        {"input_dim": 2, "output_dim": 2, "generic_architecture": False, "expansion_coefficient_dim": 3}
        | {"trend_polynomial_degree": 2, "batch_norm": False, **DEEP},
    ),
    "_NHiTSModule": (
        "nhits",
        {"input_dim": 2, "output_dim": 2, "pooling_kernel_sizes": ((2,), (1,)), "n_freq_downsample": ((2,), (1,))}
        | {"batch_norm": False, "MaxPool1d": True, **DEEP},
    ),
    "_TransformerModule": (
        "transformer_model",
        {"input_size": 2, "output_size": 2, "d_model": 8, "nhead": 2, "num_encoder_layers": 1}
        | {"num_decoder_layers": 1, "dim_feedforward": 8, "dropout": 0.0, "activation": "relu"},
    ),
    "_NLinearModule": (
        "nlinear",
        {"input_dim": 2, "output_dim": 2, "future_cov_dim": 0, "static_cov_dim": 0, "shared_weights": False}
        | {"const_init": False, "normalize": True},
    ),
    "_RNNModule": (
        "rnn_model",
        {"name": "GRU", "input_size": 2, "hidden_dim": 8, "num_layers": 1, "target_size": 2, "dropout": 0.0},
    ),
    "_BlockRNNModule": (
        "block_rnn_model",
        {"name": "LSTM", "input_size": 2, "hidden_dim": 8, "num_layers": 1, "target_size": 2}
        | {"future_cov_dim": 0, "dropout": 0.0, "num_layers_out_fc": [8]},
    ),
}
for each, (module, options) in DARTS.items():
    make = functools.partial(_darts, module, each, **options)
    add("darts", f"darts {each.strip('_').removesuffix('Module')}", make, _series())
TIDE: dict[str, Any] = {"input_dim": 7, "output_dim": 2, "future_cov_dim": 3, "static_cov_dim": 0}
TIDE |= {"num_encoder_layers": 1, "num_decoder_layers": 1, "decoder_output_dim": 4, "hidden_size": 8}
TIDE |= {"temporal_decoder_hidden": 8, "temporal_width_past": 2, "temporal_width_future": 2}
TIDE |= {"use_layer_norm": True, "dropout": 0.0, "temporal_hidden_size_past": 8, "temporal_hidden_size_future": 8}
COVARIATES = ("past_covariates", "historic_future_covariates", "future_covariates")
add(
    "darts",
    "darts Tide",
    lambda: _darts("tide_model", "_TideModule", *COVARIATES, **TIDE),
    _series((12, 2), (12, 3), (4, 3)),
    *(N,) * 4,
)
MIXER: dict[str, Any] = {"input_dim": 2, "output_dim": 2, "past_cov_dim": 2, "future_cov_dim": 3, "static_cov_dim": 0}
MIXER |= {"hidden_size": 8, "ff_size": 8, "num_blocks": 1, "activation": "ReLU", "dropout": 0.0}
MIXER |= {"norm_type": "LayerNorm", "normalize_before": False}
add(
    "darts",
    "darts TSMixer",
    lambda: _darts("tsmixer_model", "_TSMixerModule", *COVARIATES, **MIXER),
    _series((12, 2), (12, 3), (4, 3)),
    *(N,) * 4,
)


# gluonts


def _gluonts(where: str, cls: str, **options: Any) -> nn.Module:
    made: nn.Module = getattr(load(f"gluonts.torch.model.{where}.module"), cls)(
        prediction_length=4, context_length=12, **options
    )
    return made


def _past(n: int) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 12) + 2, (torch.rand(n, 12) > 0.2).float()


ATTENTION: dict[str, Any] = {"d_model": 8, "nhead": 2, "dim_feedforward": 8, "dropout": 0.0, "activation": "relu"}
ATTENTION |= {"norm_first": False, "num_encoder_layers": 1, "scaling": "std"}
STUDENT = "gluonts.torch.distributions"
PATCHES = {"patch_len": 4, "stride": 2, "padding_patch": "end", "num_feat_dynamic_real": 0, **ATTENTION}
LAGS = {"freq": "D", "lags_seq": [1, 2, 7], **ATTENTION}


def _student() -> Any:
    return load(STUDENT).StudentTOutput()


add(
    "gluonts",
    "gluonts PatchTST",
    lambda: _gluonts("patch_tst", "PatchTSTModel", distr_output=_student(), **PATCHES),
    _past,
    N,
    N,
)
add(
    "gluonts",
    "gluonts DLinear",
    lambda: _gluonts("d_linear", "DLinearModel", hidden_dimension=8, kernel_size=5),
    _past,
    N,
    N,
)
add(
    "gluonts",
    "gluonts LagTST",
    lambda: _gluonts("lag_tst", "LagTSTModel", distr_output=_student(), **LAGS),
    lambda n: (torch.randn(n, 19) + 2, torch.ones(n, 19)),
    N,
    N,
)
add(
    "gluonts",
    "gluonts SimpleFeedForward",
    lambda: _gluonts("simple_feedforward", "SimpleFeedForwardModel", hidden_dimensions=[8, 8]),
    lambda n: torch.randn(n, 12),
)
add(
    "gluonts",
    "gluonts iTransformer",
    lambda: _gluonts("i_transformer", "ITransformerModel", **ATTENTION),
    lambda n, c=3: (torch.randn(n, 12, c) + 2, (torch.rand(n, 12, c) > 0.2).float()),
    {0: "n", 2: "c"},
    {0: "n", 2: "c"},
    c=(3, 2, 5),
)


def _tft_inputs(n: int) -> Any:
    past, seen = _past(n)
    return past, seen, torch.randn(n, 1), torch.zeros(n, 1).long(), torch.randn(n, 16, 1)


add(
    "gluonts",
    "gluonts TFT",
    lambda: _gluonts("tft", "TemporalFusionTransformerModel", num_heads=2, d_hidden=8, d_var=8, dropout_rate=0.0),
    _tft_inputs,
    *(N,) * 5,
)


def _deepar_inputs(n: int) -> Any:
    static = (torch.randint(3, (n, 1)), torch.randn(n, 1), torch.randn(n, 19, 1))
    return *static, torch.randn(n, 19) + 2, torch.ones(n, 19), torch.randn(n, 4, 1), torch.randn(n, 4) + 2


DEEPAR = {"freq": "D", "hidden_size": 8, "lags_seq": [1, 2, 7], "dropout_rate": 0.0, "cardinality": [3]}
for each in ("unroll_lagged_rnn", "log_prob"):
    make = functools.partial(
        lambda name: Part(_gluonts("deepar", "DeepARModel", **DEEPAR), lambda m, *args: getattr(m, name)(*args)), each
    )
    add("gluonts", f"gluonts DeepAR, {each}", make, _deepar_inputs, *(N,) * 7)
