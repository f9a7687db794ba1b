"""Forecasts: pretrained kinds of models, pytorch-forecasting, and tsai."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, N, Part, add, load

# chronos, timesfm, moment


def _bolt() -> nn.Module:
    quantiles = [0.1, 0.5, 0.9]
    own = {"context_length": 64, "prediction_length": 4, "input_patch_size": 4, "input_patch_stride": 4}
    config = load("transformers").T5Config(
        d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, dropout_rate=0.0, decoder_start_token_id=0
    )
    config.chronos_config = {**own, "quantiles": quantiles, "use_reg_token": True}
    made: nn.Module = load("chronos.chronos_bolt").ChronosBoltModelForForecasting(config)
    return made


def _with_gaps(n: int, t: int = 16) -> Tensor:
    return torch.randn(n, t).masked_fill(torch.rand(n, t) < 0.2, torch.nan)


BOLT = functools.partial(lambda: Part(_bolt(), lambda m, x: m(x).quantile_preds))
add("chronos-forecasting", "Chronos-Bolt", BOLT, _with_gaps, NT, t=(16, 13, 24, 80))


def _chronos2() -> nn.Module:
    package = load("chronos.chronos2")
    own = {"context_length": 64, "output_patch_size": 4, "input_patch_size": 4, "input_patch_stride": 4}
    own |= {"quantiles": [0.1, 0.5, 0.9], "use_reg_token": True, "use_arcsinh": True, "max_output_patches": 4}
    options = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.0}
    config = load("chronos.chronos2.config").Chronos2CoreConfig(**options, attn_implementation="eager")
    config.chronos_config = own
    made: nn.Module = package.Chronos2Model(config)
    return made


add(
    "chronos-forecasting",
    "Chronos 2",
    lambda: Part(_chronos2(), lambda m, x: m(x, num_output_patches=2).quantile_preds),
    _with_gaps,
    NT,
    t=(16, 13, 24, 80),
)


def _timesfm() -> Any:
    package = load("timesfm.timesfm_2p5.timesfm_2p5_torch")
    old = package.TimesFM_2p5_200M_torch_module.config
    blocks = old.stacked_transformers
    small = dataclasses.replace(
        old,
        input_patch_len=4,
        output_patch_len=8,
        output_quantile_len=8,
        tokenizer=dataclasses.replace(old.tokenizer, input_dims=8, hidden_dims=16, output_dims=16),
        stacked_transformers=dataclasses.replace(
            blocks,
            num_layers=1,
            transformer=dataclasses.replace(blocks.transformer, model_dims=16, hidden_dims=16, num_heads=2),
        ),
        output_projection_point=dataclasses.replace(
            old.output_projection_point, input_dims=16, hidden_dims=16, output_dims=80
        ),
        output_projection_quantiles=dataclasses.replace(
            old.output_projection_quantiles, input_dims=16, hidden_dims=16, output_dims=80
        ),
    )
    return type("Small", (package.TimesFM_2p5_200M_torch_module,), {"config": small})()


def _observed(n: int, t: int = 16) -> tuple[Tensor, Tensor]:
    return torch.randn(n, t), torch.arange(t).expand(n, t) < torch.arange(n)[:, None]


for horizon in (8, 20):
    make = functools.partial(lambda horizon: Part(_timesfm(), lambda m, x, mask: m.decode(horizon, x, mask)), horizon)
    add("timesfm", f"TimesFM, {horizon} steps", make, _observed, NT, NT, t=(16, 12, 24))


def _moment(task: str) -> Any:
    t5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.0, "vocab_size": 8}
    config = argparse.Namespace(
        task_name=task,
        seq_len=32,
        patch_len=8,
        patch_stride_len=8,
        d_model=16,
        transformer_backbone="google/flan-t5-small",
        transformer_type="encoder_only",
        t5_config=t5,
        forecast_horizon=4,
        n_channels=2,
        num_class=3,
    )
    return load("momentfm.models.moment").MOMENT(config)


for each, field in (("forecasting", "forecast"), ("classification", "logits"), ("embedding", "embeddings")):
    make = functools.partial(
        lambda task, field: Part(_moment(task), lambda m, x, mask: getattr(m(x_enc=x, input_mask=mask), field)),
        each,
        field,
    )
    add(
        "momentfm",
        f"MOMENT, {each}",
        make,
        lambda n: (torch.randn(n, 2, 32), (torch.arange(32).expand(n, 32) >= 8 * torch.arange(n)[:, None]).float()),
        N,
        N,
    )


# pytorch-forecasting


def _tft() -> Any:
    reals = ["a", "b"]
    return load("pytorch_forecasting").TemporalFusionTransformer(
        hidden_size=8,
        attention_head_size=2,
        dropout=0.0,
        max_encoder_length=8,
        time_varying_reals_encoder=reals,
        time_varying_reals_decoder=["b"],
        time_varying_categoricals_encoder=["c"],
        time_varying_categoricals_decoder=["c"],
        x_reals=reals,
        x_categoricals=["c"],
        embedding_sizes={"c": (5, 4)},
        hidden_continuous_size=4,
        output_transformer=nn.Identity(),
    )


def _batch(n: int, t: int = 8) -> tuple[Tensor, ...]:
    lengths = t - torch.arange(n) % 3
    return torch.randn(n, t, 2), torch.randint(5, (n, t, 1)), lengths, torch.randn(n, 4, 2), torch.randint(5, (n, 4, 1))


def _batched(*args: Tensor) -> dict[str, Any]:
    names = ("encoder_cont", "encoder_cat", "encoder_lengths", "decoder_cont", "decoder_cat")
    n = args[0].shape[0]
    more = {"decoder_lengths": torch.full((n,), 4), "target_scale": torch.ones(n, 2)}
    return dict(zip(names, args, strict=True)) | more


def _call_tft(model: Any, *args: Tensor) -> Any:
    model.transform_output = lambda output, target_scale: output
    found = model(_batched(*args))
    return found.prediction, found.encoder_attention, found.encoder_variables


add(
    "pytorch-forecasting",
    "pytorch-forecasting TFT",
    lambda: Part(_tft(), _call_tft),
    _batch,
    NT,
    NT,
    N,
    N,
    N,
    t=(8, 6, 11),
)


def _encode(model: Any, x: Tensor, lengths: Tensor) -> Any:
    state = model.init_hidden_state(x)
    output, hidden = model(x, state, lengths=lengths, enforce_sorted=False)
    return output, hidden


for each in ("LSTM", "GRU"):
    make = functools.partial(
        lambda name: Part(getattr(load("pytorch_forecasting.models.nn.rnn"), name)(3, 6, batch_first=True), _encode),
        each,
    )
    add(
        "pytorch-forecasting",
        f"pytorch-forecasting {each}, some of length 0",
        make,
        lambda n, t=8: (torch.randn(n, t, 3), torch.tensor([t, 0, t - 2])[:n]),
        NT,
        N,
        t=(8, 6, 11),
    )
SUBMODULES = "pytorch_forecasting.models.temporal_fusion_transformer.sub_modules"


def _nhits() -> nn.Module:
    options: dict[str, Any] = {"output_size": [1], "static_size": 0, "encoder_covariate_size": 1, "naive_level": True}
    options |= {"decoder_covariate_size": 1, "static_hidden_size": 1, "n_blocks": [1, 1], "n_layers": [1, 1]}
    options |= {"hidden_size": [[8], [8]], "pooling_sizes": [2, 1], "downsample_frequencies": [2, 1]}
    options |= {"pooling_mode": "max", "interpolation_mode": "linear", "batch_normalization": False}
    options |= {"dropout": 0.0, "activation": "ReLU", "initialization": "lecun_normal", "shared_weights": False}
    made: nn.Module = load("pytorch_forecasting.models.nhits.sub_modules").NHiTS(8, 4, **options)
    return made


def _call_nhits(model: Any, y: Tensor, mask: Tensor, x: Tensor, future: Tensor) -> Any:
    return model(y, mask, x, future, torch.zeros(y.shape[0], 0))


add(
    "pytorch-forecasting",
    "pytorch-forecasting NHiTS",
    lambda: Part(_nhits(), _call_nhits),
    lambda n: (torch.randn(n, 8, 1), torch.ones(n, 8), torch.randn(n, 8, 1), torch.randn(n, 4, 1)),
    *(N,) * 4,
)


# tsai


def _tsai(module: str, cls: str, *args: Any, **options: Any) -> nn.Module:
    made: nn.Module = getattr(load(f"tsai.models.{module}"), cls)(*args, **options)
    return made


def _signals(n: int, t: int = 32) -> Tensor:
    return torch.randn(n, 3, t)


LONG = {0: "n", 2: "t"}
TSAI: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "InceptionTime": ("InceptionTime", (3, 4), {"nf": 4}),
    "XceptionTime": ("XceptionTime", (3, 4), {"nf": 4, "adaptive_size": 10}),
    "TransformerModel": ("TransformerModel", (3, 4), {"d_model": 8, "d_ffn": 8}),
    "OmniScaleCNN": ("OmniScaleCNN", (3, 4, 32), {"layers": [64, 256]}),
    "LSTM_FCN": ("RNN_FCN", (3, 4), {"hidden_size": 8, "conv_layers": [4, 8, 4], "shuffle": False}),
    "TCN": ("TCN", (3, 4), {"layers": [4, 4], "ks": 3}),
}
for each, (module, args, options) in TSAI.items():
    make = functools.partial(_tsai, module, each, *args, **options)
    add("tsai", f"tsai {each}", make, _signals, LONG, t=(32, 24, 50))
FIXED: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "TST": ("TST", (3, 4, 32), {"n_layers": 1, "d_model": 8, "n_heads": 2, "d_ff": 8}),
    "TSTPlus": ("TSTPlus", (3, 4, 32), {"n_layers": 1, "d_model": 8, "n_heads": 2, "d_ff": 8}),
    "XCM": ("XCM", (3, 4, 32), {"nf": 4}),
    "TSiTPlus": ("TSiTPlus", (3, 4, 32), {"depth": 1, "d_model": 8, "n_heads": 2, "use_token": True}),
    "PatchTST": ("PatchTST", (3, 3, 32, 4), {"n_layers": 1, "d_model": 8, "n_heads": 2, "d_ff": 8, "patch_len": 8}),
    "TSSequencerPlus": ("TSSequencerPlus", (3, 4, 32), {"depth": 1, "d_model": 8}),
    "mWDN": ("mWDN", (3, 4, 32), {"levels": 2, "nf": 4}),
    "HydraPlus": ("HydraPlus", (3, 4, 32), {"k": 2, "g": 4}),
    "MiniRocket": ("MINIROCKET_Pytorch", (3, 4, 32), {"num_features": 168}),
    "MultiRocketPlus": ("MultiRocketPlus", (3, 4, 32), {"num_features": 1000}),
    "TSPerceiver": ("TSPerceiver", (3, 4, 32), {"n_latents": 8, "d_latent": 8, "n_layers": 1}),
    "ROCKET": ("ROCKET_Pytorch", (3, 32), {"n_kernels": 20}),
    "ConvTranPlus": ("ConvTranPlus", (3, 4, 32), {"d_model": 16, "n_heads": 8, "dim_ff": 8}),
    "GRUAttention": ("RNNAttention", (3, 4, 32), {"hidden_size": 8, "n_heads": 2, "d_ff": 8}),
}
for each, (module, args, options) in FIXED.items():
    make = functools.partial(_tsai, module, each, *args, **options)
    add("tsai", f"tsai {each}", make, _signals)
