"""Recurrences that run in parallel: state spaces, linear recurrences, retention, hyper-connections."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NHW, NT, T12, N, Part, add, add_class, features, image, load, tokens

# mambapy


def _mamba(pscan: bool) -> nn.Module:
    package = load("mambapy.mamba")
    made: nn.Module = package.Mamba(package.MambaConfig(8, 2, d_state=4, pscan=pscan))
    made.train(pscan)  # the parallel scan is for training alone
    return made


def _mamba_step() -> nn.Module:
    def step(model: Any, x: Tensor, state: Tensor, inputs: Tensor) -> Any:
        return model.step(x, [(state[0], inputs[0]), (state[1], inputs[1])])

    return Part(_mamba(False), step)


def _vision_mamba() -> nn.Module:
    package = load("mambapy.vim")
    made: nn.Module = package.VMamba(package.MambaConfig(8, 1, d_state=4, pscan=False, bidirectional=True))
    return made


def _jamba() -> nn.Module:
    package = load("mambapy.jamba")
    options = {"num_attention_heads": 2, "num_key_value_heads": 1, "num_experts": 4, "attn_layer_offset": 1}
    config = package.JambaLMConfig(8, 2, 16, d_state=4, attn_layer_period=2, vocab_size=20, pscan=False, **options)
    made: nn.Module = package.JambaLM(config)
    return made


STATE = {1: "n"}
add("mambapy", "mambapy Mamba", lambda: _mamba(False), features(8), NT, t=T12)
add("mambapy", "mambapy Mamba, parallel scan", lambda: _mamba(True), features(8), NT, t=T12)
add(
    "mambapy",
    "mambapy Mamba, step",
    _mamba_step,
    lambda n: (torch.randn(n, 8), torch.randn(2, n, 16, 4), torch.randn(2, n, 16, 3)),
    N,
    STATE,
    STATE,
)
add("mambapy", "mambapy VMamba", _vision_mamba, features(8), NT, t=T12)
add("mambapy", "mambapy Jamba", _jamba, tokens(20), NT, t=T12)


# rwkv


def _rwkv() -> nn.Module:
    """The seventh version, whose weights only come from a file."""
    os.environ["RWKV_V7_ON"] = "1"
    width, layers, words = 16, 2, 20
    weights = {"emb.weight": torch.randn(words, width), "head.weight": torch.randn(words, width)}
    norms = ["ln_out", "blocks.0.ln0"]
    for layer in range(layers):
        block = f"blocks.{layer}."
        norms += [block + "ln1", block + "ln2", block + "att.ln_x"]
        for name in ("x_r", "x_w", "x_k", "x_v", "x_a", "x_g", "w0", "a0", "v0", "k_k", "k_a"):
            weights[f"{block}att.{name}"] = torch.rand(width)
        for name in "wavg":
            weights[f"{block}att.{name}1"] = torch.randn(width, 4) * 0.3
            weights[f"{block}att.{name}2"] = torch.randn(4, width) * 0.3
        for name in ("receptance", "key", "value", "output"):
            weights[f"{block}att.{name}.weight"] = torch.randn(width, width) * 0.3
        weights[block + "att.r_k"] = torch.randn(2, 8)
        weights[block + "ffn.x_k"] = torch.rand(width)
        weights[block + "ffn.key.weight"] = torch.randn(32, width) * 0.3
        weights[block + "ffn.value.weight"] = torch.randn(width, 32) * 0.3
    for name in norms:
        weights |= {name + ".weight": torch.rand(width) + 0.5, name + ".bias": torch.randn(width) * 0.1}
    with tempfile.TemporaryDirectory() as folder:
        torch.save(weights, Path(folder, "tiny.pth"))
        made: nn.Module = load("rwkv.model").RWKV_x070(str(Path(folder, "tiny")), "cpu fp32")
    return made


def _mix_times(model: Any, x: Tensor, previous: Tensor, state: Tensor) -> Any:
    z, att = model.z, "blocks.0.att."
    names = [
        "x_r",
        "x_w",
        "x_k",
        "x_v",
        "x_a",
        "x_g",
        "w0",
        "w1",
        "w2",
        "a0",
        "a1",
        "a2",
        "v0",
        "v1",
        "v2",
        "g1",
        "g2",
        "k_k",
        "k_a",
        "r_k",
    ]
    names += ["receptance.weight", "key.weight", "value.weight", "output.weight", "ln_x.weight", "ln_x.bias"]
    mix = load("rwkv.model").RWKV_x070_TMix_seq
    return mix(0, model.n_head, model.head_size, x, previous, torch.empty_like(x), state, *(z[att + k] for k in names))


add(
    "rwkv",
    "RWKV 7, times mixed",
    lambda: Part(_rwkv(), _mix_times),
    lambda n, t=12: (torch.randn(t, 16), torch.randn(16), torch.randn(2, 8, 8)),
    {0: "t"},
    {},
    {},
    t=T12,
)


# xlstm


def _xlstm(slstm: bool) -> nn.Module:
    package = load("xlstm")
    layer = package.sLSTMLayerConfig(backend="vanilla", num_heads=2, conv1d_kernel_size=3)
    config = package.xLSTMBlockStackConfig(
        mlstm_block=package.mLSTMBlockConfig(mlstm=package.mLSTMLayerConfig(num_heads=2, conv1d_kernel_size=3)),
        slstm_block=package.sLSTMBlockConfig(
            slstm=layer, feedforward=package.FeedForwardConfig(proj_factor=1.3, act_fn="gelu")
        ),
        context_length=24,
        num_blocks=2,
        embedding_dim=16,
        slstm_at=[1] if slstm else [],
    )
    made: nn.Module = package.xLSTMBlockStack(config)
    return made


def _xlstm_steps(model: Any, x: Tensor) -> Tensor:
    """Three steps, each from the last one's states."""
    state, results = None, []
    for time in range(3):
        y, state = model.step(x[:, time : time + 1], state)
        results.append(y)
    return torch.cat(results, 1)


add("xlstm", "mLSTM blocks", lambda: _xlstm(False), features(16), NT, t=T12)
add("xlstm", "mLSTM and sLSTM blocks", lambda: _xlstm(True), features(16), NT, t=T12)
add("xlstm", "xLSTM, three steps", lambda: Part(_xlstm(True), _xlstm_steps), features(16, 3))


# yet-another-retnet


def _retnet(call: Any) -> nn.Module:
    return Part(load("yet_another_retnet.retnet").RetNet(20, 16, 2, 2, dim_feedforward=16, dropout=0.0), call)


def _recur(model: Any, x: Tensor) -> Tensor:
    states: Any = ()
    results = []
    for position in range(x.shape[1]):
        y, states = model.forward_recurrent(x[:, position], position, states)
        results.append(y)
    return torch.stack(results, 1)


def _chunks(model: Any, x: Tensor) -> Tensor:
    states: Any = ()
    results = []
    for start in range(0, x.shape[1], 4):
        y, states = model.forward_chunkwise(x[:, start : start + 4], start, states)
        results.append(y)
    return torch.cat(results, 1)


PARALLEL = functools.partial(_retnet, lambda m, x: m.forward_parallel(x))
add("yet-another-retnet", "RetNet, parallel", PARALLEL, tokens(20), NT, t=T12)
add("yet-another-retnet", "RetNet, recurrent", lambda: _retnet(_recur), tokens(20, 6), NT, t=(6, 4, 9))
add("yet-another-retnet", "RetNet, in chunks", lambda: _retnet(_chunks), tokens(20), NT, t=T12)
add(
    "yet-another-retnet",
    "RetNet, one chunk with states",
    lambda: _retnet(lambda m, x, *s: m.forward_chunkwise(x, 5, s)),
    lambda n, t=4: (torch.randint(20, (n, t)), torch.randn(n, 2, 8, 8), torch.randn(n, 2, 8, 8)),
    NT,
    N,
    N,
    t=(4, 7, 2),
)


# assoc-scan, hyper-connections, colt5-attention


def _gates(n: int, t: int = 12) -> tuple[Tensor, Tensor]:
    return torch.rand(n, t), torch.randn(n, t, 4)


def _scan(model: Any, gates: Tensor, x: Tensor) -> Tensor:
    result: Tensor = model(gates[..., None].expand_as(x), x)
    return result


def _scan_on(model: Any, gates: Tensor, x: Tensor, last: Tensor) -> Tensor:
    result: Tensor = model(gates[..., None].expand_as(x), x, prev=last)
    return result


add("assoc-scan", "AssocScan", lambda: Part(load("assoc_scan").AssocScan(), _scan), _gates, NT, NT, t=T12)
add(
    "assoc-scan",
    "AssocScan, from a state",
    lambda: Part(load("assoc_scan").AssocScan(reverse=True), _scan_on),
    lambda n, t=12: (*_gates(n, t), torch.randn(n, 4)),
    NT,
    NT,
    N,
    t=T12,
)


def _hyper(module: str, cls: str, **options: Any) -> nn.Module:
    made = getattr(load(module), cls)
    package = load(module)
    _, expand, contract = package.get_init_and_expand_reduce_stream_functions(2)[:3]
    branches = [made(2, dim=8, branch=nn.Linear(8, 8), layer_index=i, **options) for i in range(2)]
    return nn.Sequential(expand, *branches, contract)


HYPER = "hyper_connections.hyper_connections"
add("hyper-connections", "HyperConnections", lambda: _hyper(HYPER, "HyperConnections"), features(8), NT, t=T12)
add(
    "hyper-connections",
    "ManifoldConstrainedHyperConnections",
    lambda: _hyper("hyper_connections.mHCv2", "ManifoldConstrainedHyperConnections"),
    features(8),
    NT,
    t=T12,
)
ROUTED = {"num_heavy_tokens_q": 4, "num_heavy_tokens_kv": 4, "light_dim_head": 4, "light_heads": 2}
ROUTED |= {"light_window_size": 8, "heavy_dim_head": 4, "heavy_heads": 2}
COLT: dict[str, dict[str, Any]] = {
    "ConditionalRoutedFeedForward": {"dim": 8, "num_heavy_tokens": 4},
    "ConditionalRoutedAttention": {"dim": 8, **ROUTED},
    "ConditionalRoutedAutoregressiveAttention": {"dim": 8, **ROUTED},
}
for each, options in COLT.items():
    call = functools.partial(lambda name, options: getattr(load("colt5_attention"), name)(**options), each, options)
    add("CoLT5-attention", each, call, features(8, 16), NT, t=(16, 24, 12))
add_class(
    "CoLT5-attention",
    "ConditionalRoutedImageAttention",
    {"dim": 8, **ROUTED, "channel_first": True},
    image(8, 8),
    NHW,
    module="colt5_attention",
    h=(8, 16),
    w=(8, 24),
)
