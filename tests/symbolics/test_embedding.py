"""Embedding tables and bags, in rows; against eager torch at many bags; what is declined."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch_onnx_compat.symbolics.embedding import embedding_bag_to_embedding, embedding_max_norm_to_mul

from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.testing import ROUNDINGS, Example, assert_same_outputs

MODES = ("sum", "mean", "max")
TABLE = torch.linspace(-3, 5, 45).sin().reshape(9, 5)
STEEP_TABLE = TABLE * torch.linspace(0, 2, 9)[:, None]
X, OTHER_X = torch.tensor([[0, 3, 1], [2, 2, 0]]), torch.tensor([[8, 7, 4], [1, 5, 6], [0, 3, 3]])
SQUARE = torch.tensor([[1, 8, 0], [1, 1, 1]])
RUNS = (torch.tensor([4, 1, 1, 8, 0, 3, 1, 2]), torch.tensor([0, 3, 3, 4]))
ROUNDING = ROUNDINGS * torch.finfo(torch.float32).eps
ANY_BAGS = {"square": {0: "batch"}, "indices": {0: "total"}, "offsets": {0: "bags"}}
GIVEN_ONLY = Verify(ROUNDING, ROUNDING, random=False, sizes={"batch": (), "total": (), "bags": ()})
"""Random offsets and sizes would make no bags."""


class Bags(nn.Module):
    """2-D indices and runs, with weights, padding and an offset for the end."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(TABLE.clone())

    def forward(self, square, indices, offsets):
        weights = square.float() - 3.5
        total = torch.full((1,), indices.shape[0])
        results = [
            F.embedding_bag(square, self.table, mode="sum", per_sample_weights=weights),
            F.embedding_bag(indices, self.table, torch.cat((offsets, total)), mode="max", include_last_offset=True),
            F.embedding_bag(indices, self.table, offsets, mode="sum", per_sample_weights=indices.float()),
            F.embedding_bag(indices.int(), self.table, offsets.int(), mode="mean"),
        ]
        for mode in MODES:
            results.append(F.embedding_bag(square, self.table, mode=mode))
            results.append(F.embedding_bag(square, self.table, mode=mode, padding_idx=1))
            results.append(F.embedding_bag(indices, self.table, offsets, mode=mode, padding_idx=-8))
        return tuple(results)


class CutBags(nn.Module):
    """Bags that end at the last offset, which may lie before the end of the indices."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(TABLE.clone())

    def forward(self, indices, offsets):
        results = [
            F.embedding_bag(indices, self.table, offsets, include_last_offset=True, mode="sum", per_sample_weights=w)
            for w in (indices.float() - 2.5, None)
        ]
        for mode in MODES:
            for table in (self.table, self.table.double()):
                for padding in (None, 1):
                    options = {"mode": mode, "padding_idx": padding, "include_last_offset": True}
                    results.append(F.embedding_bag(indices, table, offsets, **options))
        return tuple(results)


class Tables(nn.Module):
    """Tables whose rows are shortened, by two norms."""

    def __init__(self):
        super().__init__()
        self.long = nn.Embedding.from_pretrained(STEEP_TABLE.clone(), max_norm=1.5, padding_idx=2)
        self.short = nn.Embedding.from_pretrained(STEEP_TABLE.clone(), max_norm=0.5, norm_type=1.0)

    def forward(self, x):
        return self.long(x), self.short(x)


EXAMPLES = [
    Example(
        "embedding_bag_to_embedding",
        Bags(),
        (SQUARE, *RUNS),
        broken=lambda *args, padding_idx=None, **options: embedding_bag_to_embedding(*args, **options),
        dynamic=ANY_BAGS,
        samples=[(torch.tensor([[5, 1, 2]]), torch.tensor([1, 1, 7]), torch.tensor([0, 2]))],
        leaves=lambda square, indices, offsets: F.embedding(indices, TABLE),
        options={"verify": GIVEN_ONLY},
    ),
    Example(
        "embedding_max_norm_to_mul",
        # Copies, because eager torch shortens the rows of the table itself.
        lambda x: (
            F.embedding(x, STEEP_TABLE.clone(), 2, 1.5),
            F.embedding(x, STEEP_TABLE.clone(), max_norm=0.5, norm_type=1.0),
        ),
        (X,),
        broken=lambda input, weight, *_, **__: F.embedding(input, weight),
        samples=[(OTHER_X,)],
        leaves=nn.Embedding(9, 5, padding_idx=2),
    ),
]


# Bags


def test_bags_take_no_loop(exporter):
    result = assert_same_outputs(
        Bags(), (SQUARE, *RUNS), exporter, dynamic=ANY_BAGS, verify=GIVEN_ONLY, uses=("embedding_bag_to_embedding",)
    )
    assert not {"Loop", "SequenceInsert", "ConcatFromSequence"} & set(result.nodes)


def test_bags_of_equal_length_take_two_nodes(exporter):
    bag = nn.EmbeddingBag.from_pretrained(TABLE)
    result = assert_same_outputs(bag, RUNS[0].reshape(2, 4), exporter, uses=("embedding_bag_to_embedding",))
    assert set(result.nodes) - {"Constant"} == {"Gather", "ReduceMean"}


def test_bags_end_at_the_last_offset(exporter):
    indices, _ = RUNS
    samples = [(indices, torch.tensor(offsets)) for offsets in ([0, 2, 2, 5, 8], [0, 0, 7], [0, 8, 8], [0, 0, 0])]
    assert_same_outputs(
        CutBags(),
        (indices, torch.tensor([0, 2, 2, 5, 6])),
        exporter,
        dynamic={"indices": {0: "total"}, "offsets": {0: "bags"}},
        samples=samples,
        verify=GIVEN_ONLY,
        uses=("embedding_bag_to_embedding",),
    )


@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=5),
    mode=st.sampled_from(MODES),
    padding=st.sampled_from((None, 0, -1)),
    is_weighted=st.booleans(),
    ends=st.booleans(),
    rest=st.integers(0, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=150, deadline=None)
def test_bags_equal_eager(sizes, mode, padding, is_weighted, ends, rest, seed):
    generator = torch.Generator().manual_seed(seed)
    indices = torch.randint(0, 9, (sum(sizes) + rest,), generator=generator)
    offsets = torch.tensor([0, *sizes]).cumsum(0)
    offsets = offsets if ends else offsets[:-1]
    weights = torch.randn(indices.shape, generator=generator) if is_weighted and mode == "sum" else None
    options = {"mode": mode, "padding_idx": padding, "per_sample_weights": weights, "include_last_offset": ends}
    got = embedding_bag_to_embedding(indices, TABLE, offsets, **options)
    torch.testing.assert_close(got, F.embedding_bag(indices, TABLE, offsets, **options))


def test_bags_decline_max_norm():
    with pytest.raises(Declined, match=r"max_norm must be None, got 1\.0"):
        embedding_bag_to_embedding(RUNS[0], TABLE, RUNS[1], max_norm=1.0)


# Rows


@pytest.mark.parametrize("max_norm", [0.1, 0.7, 3.0])
@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
def test_max_norm_equals_eager(max_norm, norm_type):
    found = embedding_max_norm_to_mul(X, STEEP_TABLE, None, max_norm, norm_type)
    torch.testing.assert_close(found, F.embedding(X, STEEP_TABLE.clone(), None, max_norm, norm_type))


def test_max_norm_of_modules(exporter):
    uses = ("embedding_max_norm_to_mul",) if exporter == "torchscript" else ()
    assert_same_outputs(Tables(), X, exporter, dynamic="batch", samples=[(OTHER_X,)], uses=uses)


def test_max_norm_writes_nothing_to_the_table():
    model = Tables()
    result = assert_same_outputs(model, X, "torchscript", dynamic="batch", uses=("embedding_max_norm_to_mul",))
    assert torch.equal(model.long.weight, STEEP_TABLE)
    assert result.nodes["Where"] == 2
