"""Sentences and entities."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, T12, N, Part, add, add_class, load

# sentence-transformers


def _sentence(n: int, t: int = 12) -> tuple[Tensor, Tensor]:
    """Embeddings, and a mask of sentences that start at different tokens."""
    lengths = torch.arange(n) % 4
    mask = (torch.arange(t) < t - lengths[:, None]).long()
    return torch.randn(n, t, 8), mask


def _left(n: int, t: int = 12) -> tuple[Tensor, Tensor]:
    x, mask = _sentence(n, t)
    return x, mask.flip(1)


def _pool(model: Any, x: Tensor, mask: Tensor) -> Any:
    return model({"token_embeddings": x, "attention_mask": mask})["sentence_embedding"]


def _pool_prompted(model: Any, x: Tensor, mask: Tensor) -> Any:
    return model({"token_embeddings": x, "attention_mask": mask, "prompt_length": 2})["sentence_embedding"]


MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def _pooling(*modes: str, **options: Any) -> Any:
    return load("sentence_transformers.sentence_transformer.modules").Pooling(8, modes, **options)


for mode in MODES:
    make = functools.partial(lambda mode: Part(_pooling(mode), _pool), mode)
    add("sentence-transformers", f"Pooling {mode}", make, _left if mode == "cls" else _sentence, NT, NT, t=T12)
add(
    "sentence-transformers",
    "Pooling in all ways, without the prompt",
    lambda: Part(_pooling(*MODES, include_prompt=False), _pool_prompted),
    _left,
    NT,
    NT,
    t=T12,
)


def _bert() -> nn.Module:
    transformers = load("transformers")
    options = {"hidden_size": 8, "num_hidden_layers": 5, "num_attention_heads": 2, "intermediate_size": 16}
    model: nn.Module = transformers.BertModel(transformers.BertConfig(vocab_size=30, **options))
    return model


class Sentence(nn.Module):
    """A small BERT and modules that turn its tokens into a sentence's embedding."""

    def __init__(self, *names: tuple[str, tuple[Any, ...]]) -> None:
        super().__init__()
        package = load("sentence_transformers.sentence_transformer.modules")
        base = load("sentence_transformers.base.modules")
        self.bert = _bert()
        self.parts = nn.ModuleList(
            getattr(package if hasattr(package, name) else base, name)(*args) for name, args in names
        )

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Each sentence's embedding."""
        found = self.bert(tokens, mask, output_hidden_states=True)
        state: dict[str, Any] = {
            "input_ids": tokens,
            "attention_mask": mask,
            "token_embeddings": found.last_hidden_state,
            "all_layer_embeddings": found.hidden_states,
            "sentence_lengths": mask.sum(1),
        }
        for part in self.parts:
            state = part(state)
        result: Tensor = state["sentence_embedding"]
        return result


def _words(n: int, t: int = 12) -> tuple[Tensor, Tensor]:
    return torch.randint(30, (n, t)), _sentence(n, t)[1]


SENTENCES: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "mean, dense, normalised": (("Pooling", (8,)), ("Dense", (8, 6)), ("Normalize", ())),
    "weighted layers": (("WeightedLayerPooling", (8, 5, 2)), ("Pooling", (8,))),
    "word weights": (("WordWeights", ([str(i) for i in range(30)], {"3": 0.5})), ("Pooling", (8,))),
    "LSTM of packed sentences": (("LSTM", (8, 6)), ("Pooling", (12, "max"))),
    "CNN": (("CNN", (8, 6, (1, 3, 5))), ("Pooling", (18, "weightedmean"))),
    "last token": (("Pooling", (8, "lasttoken")), ("LayerNorm", (8,))),
}
for each, parts in SENTENCES.items():
    call = functools.partial(Sentence, *parts)
    add("sentence-transformers", f"sentences: {each}", call, _words, NT, NT, t=T12)


# gliner


def _spans(n: int, t: int = 8, width: int = 3) -> Tensor:
    starts = torch.arange(t)[:, None].expand(t, width)
    spans = torch.stack([starts, (starts + torch.arange(width)).clamp(max=t - 1)], -1).reshape(-1, 2)
    return spans.expand(n, -1, -1).contiguous()


for each in ("markerV0", "marker", "query", "mlp", "cat", "conv_conv", "conv_max", "conv_share", "conv_mean"):
    make = functools.partial(lambda mode: load("gliner.modeling.span_rep").SpanRepLayer(8, 3, mode, dropout=0.0), each)
    add(
        "gliner",
        f"SpanRepLayer {each}",
        make,
        lambda n, t=8: (torch.randn(n, t, 8), _spans(n, t)),
        NT,
        {0: "n", 1: "s"},
        t=(8, 5, 12) if "conv" not in each else (8, 6, 12),
    )


UTILITIES = "gliner.modeling.utils"


def _pieces(n: int, t: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, their mask, and the number of each one's word, 0 for none."""
    x, mask = _sentence(n, t)
    words = torch.cat([torch.zeros(n, 1), (torch.rand(n, t - 1) > 0.4).cumsum(1)], 1).long()
    return x, mask, words * mask


def _extract(how: str) -> Callable[..., Any]:
    def call(_: nn.Module, x: Tensor, mask: Tensor, words: Tensor) -> Any:
        lengths = words.max(1, keepdim=True).values
        extract = load(UTILITIES).extract_word_embeddings
        return extract(x, words, mask, x.shape[0], lengths.max(), x.shape[2], lengths, how)

    return call


for each in ("first", "last", "mean", "max"):
    make = functools.partial(Part, nn.Identity(), _extract(each))
    add("gliner", f"word embeddings: {each}", make, _pieces, NT, NT, NT, t=T12)


def _prompted(n: int, t: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    x, mask = _sentence(n, t)
    return x, torch.randint(3, (n, t)), mask


def _prompts(_: nn.Module, x: Tensor, numbers: Tensor, mask: Tensor) -> Any:
    return load(UTILITIES).extract_prompt_features(1, x, numbers, mask, x.shape[0], x.shape[2])


add("gliner", "prompt features", lambda: Part(nn.Identity(), _prompts), _prompted, NT, NT, NT, t=T12)


def _utility(name: str) -> Callable[[], nn.Module]:
    return lambda: Part(nn.Identity(), lambda _, *args: getattr(load(UTILITIES), name)(*args))


SQUARE = {0: "n", 1: "t", 2: "t"}
add(
    "gliner",
    "entity pairs above a threshold",
    _utility("build_entity_pairs"),
    lambda n, t=6: (torch.rand(n, t, t), torch.randn(n, t, 8)),
    SQUARE,
    NT,
    t=(6, 4, 9),
)
add("gliner", "all entity pairs", _utility("build_all_entity_pairs"), _sentence, NT, NT, t=(8, 5, 11))
add(
    "gliner",
    "spans of token scores",
    _utility("extract_spans_from_tokens"),
    lambda n, t=12: torch.randn(n, t, 4, 3) + 1,
    NT,
    t=T12,
)


def _gliner_lstm() -> nn.Module:
    made: nn.Module = load("gliner.modeling.layers").LstmSeq2SeqEncoder(load("gliner.config").RNNEncoderConfig(8))
    return made


add("gliner", "LstmSeq2SeqEncoder", _gliner_lstm, _sentence, NT, NT, t=T12)
add(
    "gliner",
    "LayersFuser",
    lambda: Part(load("gliner.modeling.layers").LayersFuser(4, 8), lambda m, x: m(list(x))),
    lambda n, t=12: torch.randn(5, n, t, 8),
    {1: "n", 2: "t"},
    t=T12,
)
add_class(
    "gliner",
    "Scorer",
    {"hidden_size": 8},
    lambda n, t=12: (torch.randn(n, t, 8), torch.randn(n, 5, 8)),
    NT,
    N,
    module="gliner.modeling.scorers",
    t=T12,
)
add_class(
    "gliner",
    "CrossFuser",
    {"d_model": 8, "query_dim": 8, "num_heads": 2, "num_layers": 2, "dropout": 0.0},
    lambda n, t=12: (torch.randn(n, 5, 8), torch.randn(n, t, 8)),
    N,
    NT,
    module="gliner.modeling.layers",
    t=T12,
)
