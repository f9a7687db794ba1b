"""Forecasts of time series."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unseen_models.table import Part, add, load

INPUT, HORIZON, SERIES = 24, 6, 3

ONE_SERIES: dict[str, dict[str, Any]] = {
    "Autoformer": {"hidden_size": 16, "n_head": 2, "conv_hidden_size": 8},
    "BiTCN": {"hidden_size": 8},
    "DeepNPTS": {"hidden_size": 8},
    "DilatedRNN": {"cell_type": "LSTM", "encoder_hidden_size": 8, "decoder_hidden_size": 8},
    "DLinear": {},
    "FEDformer": {"hidden_size": 16, "n_head": 8, "conv_hidden_size": 8, "modes": 8},
    "GRU": {"encoder_hidden_size": 8, "decoder_hidden_size": 8},
    "Informer": {"hidden_size": 16, "n_head": 2, "conv_hidden_size": 8},
    "KAN": {"hidden_size": 8},
    "LSTM": {"encoder_hidden_size": 8, "decoder_hidden_size": 8},
    "MLP": {"hidden_size": 16},
    "NBEATS": {"mlp_units": [[16, 16]] * 3},
    "NHITS": {"mlp_units": [[16, 16]] * 3},
    "NLinear": {},
    "PatchTST": {"hidden_size": 16, "n_heads": 2, "patch_len": 8, "stride": 4, "encoder_layers": 1},
    "RNN": {"encoder_hidden_size": 8, "decoder_hidden_size": 8},
    "TCN": {"encoder_hidden_size": 8, "decoder_hidden_size": 8},
    "TFT": {"hidden_size": 8, "n_head": 2},
    "TiDE": {"hidden_size": 8, "decoder_output_dim": 4},
    "TimesNet": {"hidden_size": 8, "conv_hidden_size": 8, "encoder_layers": 1, "top_k": 2},
    "VanillaTransformer": {"hidden_size": 16, "n_head": 2, "conv_hidden_size": 8},
}
SEVERAL_SERIES: dict[str, dict[str, Any]] = {
    "iTransformer": {"hidden_size": 16, "n_heads": 2, "e_layers": 1, "d_ff": 16},
    "MLPMultivariate": {"hidden_size": 16},
    "RMoK": {},
    "SOFTS": {"hidden_size": 16, "d_core": 8, "e_layers": 1, "d_ff": 16},
    "StemGNN": {},
    "TimeMixer": {"d_model": 8, "d_ff": 8, "e_layers": 1},
    "TimeXer": {"hidden_size": 16, "n_heads": 2, "e_layers": 1, "d_ff": 16, "patch_len": 8},
    "TSMixer": {"ff_dim": 8, "n_block": 1},
}


def _forecast(module: Any, series: Tensor) -> Any:
    batch = {"insample_y": series, "insample_mask": torch.ones_like(series)}
    batch |= dict.fromkeys(("hist_exog", "futr_exog", "stat_exog"))
    return module(batch)


def _make(name: str, options: dict[str, Any]) -> Part:
    kind = getattr(load("neuralforecast.models"), name)
    return Part(kind(h=HORIZON, input_size=INPUT, max_steps=1, **options), _forecast)


for _name, _options in ONE_SERIES.items():
    add(
        "neuralforecast",
        f"{_name} of forecasts",
        lambda name=_name, options=_options: _make(name, options),
        lambda n: torch.randn(n, INPUT, 1).cumsum(1),
    )
for _name, _options in SEVERAL_SERIES.items():
    add(
        "neuralforecast",
        f"{_name} of forecasts",
        lambda name=_name, options=_options: _make(name, options | {"n_series": SERIES}),
        lambda n: torch.randn(n, INPUT, SERIES).cumsum(1),
    )
