"""Whisper."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, T12, N, Part, add, load, waves


def _whisper() -> Any:
    package = load("whisper.model")
    sizes = package.ModelDimensions(
        n_mels=80,
        n_audio_ctx=20,
        n_audio_state=16,
        n_audio_head=2,
        n_audio_layer=1,
        n_vocab=40,
        n_text_ctx=24,
        n_text_state=16,
        n_text_head=2,
        n_text_layer=2,
    )
    model = package.Whisper(sizes)
    nn.init.normal_(model.decoder.positional_embedding, std=0.1)
    return model


def _listen(_: nn.Module, x: Tensor) -> Any:
    return load("whisper.audio").log_mel_spectrogram(x)


def _greedy(model: Any, x: Tensor, sound: Tensor) -> Any:
    cache, hooks = model.install_kv_cache_hooks()
    heard, said, last = model.encoder(sound), x, x
    for _ in range(4):
        last = model.decoder(last, heard, kv_cache=cache)[:, -1].argmax(-1, keepdim=True)
        said = torch.cat([said, last], 1)
    for hook in hooks:
        hook.remove()
    return said


def _sentence(n: int, t: int = 12) -> tuple[Tensor, Tensor]:
    return torch.randint(0, 40, (n, t)), torch.randn(n, 80, 40)


add("openai-whisper", "whisper log-mel", lambda: Part(nn.Identity(), _listen), waves(), NT, t=(1600, 2000, 1000))
add("openai-whisper", "whisper", lambda: Part(_whisper(), lambda m, x, y: m(y, x)), _sentence, NT, N, t=T12)
add("openai-whisper", "whisper encoder", lambda: _whisper().encoder, lambda n: torch.randn(n, 80, 40))
add("openai-whisper", "whisper, greedy with cache", lambda: Part(_whisper(), _greedy), _sentence, NT, N, t=T12)
