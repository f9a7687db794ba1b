"""Embedding, bags of embeddings, one-hot."""

import torch
from torch import nn
from torch.nn import functional as F

from operator_cases.case import Case
from torch_onnx_compat.check.options import Verify

TABLE = torch.linspace(-3, 5, 45).sin().reshape(9, 5)
MODES = ("sum", "mean", "max")
GIVEN = {"verify": Verify(random=False, sizes={"b2": (), "b3": (), "b4": ()})}
"""Offsets that are drawn at random are none."""


class Table(nn.Module):
    """A function of indices and a table that is a parameter."""

    def __init__(self, call):
        super().__init__()
        self.table = nn.Parameter(TABLE.clone())
        self.call = call

    def forward(self, *inputs):
        return self.call(self.table, *inputs)


def indices(*size, top=9):
    return lambda n: (torch.randint(0, top, (n, *size)),)


def ragged(n):
    """1-D indices and the offsets of bags, an empty one and one of a single index among them."""
    sizes = torch.tensor([4, 0, 1, 3, 2][:n])
    return torch.randint(0, 9, (int(sizes.sum()),)), torch.cat([torch.zeros(1).long(), sizes.cumsum(0)[:-1]])


def with_end(n):
    flat, offsets = ragged(n)
    return flat, torch.cat([offsets, torch.tensor([len(flat)])])


def weighted(make):
    def inputs(n):
        given = make(n)
        return *given, torch.randn(given[0].shape)

    return inputs


def bags():
    for mode in MODES:
        yield Case("embedding_bag", f"{mode}, 2-D", nn.EmbeddingBag.from_pretrained(TABLE, mode=mode), indices(4))
        yield Case(
            "embedding_bag",
            f"{mode}, offsets",
            nn.EmbeddingBag.from_pretrained(TABLE, mode=mode),
            ragged,
            options=GIVEN,
        )
        yield Case(
            "embedding_bag",
            f"{mode}, padding_idx, 2-D",
            nn.EmbeddingBag.from_pretrained(TABLE, mode=mode, padding_idx=1),
            indices(4, top=3),
        )
        yield Case(
            "embedding_bag",
            f"{mode}, padding_idx, offsets",
            Table(lambda t, i, o, mode=mode: F.embedding_bag(i % 3, t, o, mode=mode, padding_idx=-8)),
            ragged,
            options=GIVEN,
        )
        yield Case(
            "embedding_bag",
            f"{mode}, include_last_offset",
            nn.EmbeddingBag.from_pretrained(TABLE, mode=mode, include_last_offset=True),
            with_end,
            options=GIVEN,
        )


CASES = [
    *bags(),
    Case(
        "embedding_bag",
        "per_sample_weights, 2-D",
        Table(lambda t, i, w: F.embedding_bag(i, t, mode="sum", per_sample_weights=w)),
        weighted(indices(4)),
    ),
    Case(
        "embedding_bag",
        "per_sample_weights, offsets",
        Table(lambda t, i, o, w: F.embedding_bag(i, t, o, mode="sum", per_sample_weights=w)),
        weighted(ragged),
        options=GIVEN,
    ),
    Case(
        "embedding_bag",
        "per_sample_weights, padding_idx",
        Table(lambda t, i, w: F.embedding_bag(i % 3, t, mode="sum", per_sample_weights=w, padding_idx=2)),
        weighted(indices(4)),
    ),
    Case(
        "embedding_bag",
        "int32 indices",
        Table(lambda t, i, o: F.embedding_bag(i.int(), t, o.int(), mode="mean")),
        ragged,
        options=GIVEN,
    ),
    Case("Embedding", "", nn.Embedding(9, 5), indices(4)),
    Case("Embedding", "padding_idx", nn.Embedding(9, 5, padding_idx=2), indices(4)),
    Case("Embedding", "max_norm", nn.Embedding(9, 5, max_norm=1.0), indices(4)),
    Case("Embedding", "max_norm, norm_type 1", nn.Embedding(9, 5, max_norm=1.0, norm_type=1.0), indices(4)),
    Case("Embedding", "int32 indices", nn.Embedding(9, 5), lambda n: (torch.randint(0, 9, (n, 4)).int(),)),
    Case(
        "Embedding",
        "functional, dynamic length",
        Table(lambda t, i: F.embedding(i, t)),
        lambda n: (torch.randint(0, 9, (n, n + 1)),),
    ),
    Case("one_hot", "num_classes", lambda i: F.one_hot(i, 9), indices(4)),
    Case("one_hot", "as floats", lambda i: F.one_hot(i, 9).float() @ TABLE, indices(4)),
    Case("one_hot", "one axis", lambda i: F.one_hot(i[:, 0], num_classes=12), indices(4)),
    Case(
        "one_hot",
        "classes by the largest index",
        lambda i: F.one_hot(i, -1),
        lambda n: (torch.randint(0, 5, (n, 3)).index_fill(1, torch.tensor([0]), n + 4),),
    ),
]
