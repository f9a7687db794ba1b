import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import ROUNDINGS, assert_same_outputs

NAME = "embedding_bag_to_embedding"
MODES = ("sum", "mean", "max")
TABLE = torch.linspace(-3, 5, 45).sin().reshape(9, 5)
ROUNDING = ROUNDINGS * torch.finfo(torch.float32).eps
RUNS = torch.tensor([4, 1, 1, 8, 0, 3, 1, 2]), torch.tensor([0, 3, 3, 4])
OTHER_RUNS = torch.tensor([1, 1, 7]), torch.tensor([0, 2])


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


def test_matches(exporter):
    square = torch.tensor([[1, 8, 0], [1, 1, 1]])
    sample = (torch.tensor([[5, 1, 2]]), *OTHER_RUNS)
    given_only = Verify(ROUNDING, ROUNDING, random=False, sizes={"batch": (), "total": (), "bags": ()})
    result = assert_same_outputs(
        Bags(),
        (square, *RUNS),
        exporter,
        dynamic={"square": {0: "batch"}, "indices": {0: "total"}, "offsets": {0: "bags"}},
        samples=[sample],
        uses=(NAME,),
        verify=given_only,
    )
    assert not {"Loop", "SequenceInsert", "ConcatFromSequence"} & set(result.nodes)


def test_takes_two_nodes(exporter):
    result = assert_same_outputs(nn.EmbeddingBag.from_pretrained(TABLE), RUNS[0].reshape(2, 4), exporter, uses=(NAME,))
    assert {k for k in result.nodes if k != "Constant"} == {"Gather", "ReduceMean"}


@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=5),
    mode=st.sampled_from(MODES),
    padding=st.sampled_from((None, 0, -1)),
    is_weighted=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=150, deadline=None)
def test_equals_eager(sizes, mode, padding, is_weighted, seed):
    generator = torch.Generator().manual_seed(seed)
    indices = torch.randint(0, 9, (sum(sizes),), generator=generator)
    offsets = torch.tensor([0, *sizes]).cumsum(0)[:-1]
    weights = torch.randn(indices.shape, generator=generator) if is_weighted and mode == "sum" else None
    options = {"mode": mode, "padding_idx": padding, "per_sample_weights": weights}
    got = catalogue()[NAME].body(indices, TABLE, offsets, **options)
    torch.testing.assert_close(got, F.embedding_bag(indices, TABLE, offsets, **options))


def test_declines_max_norm():
    with pytest.raises(Declined, match=r"max_norm must be None, got 1\.0"):
        catalogue()[NAME].body(RUNS[0], TABLE, RUNS[1], max_norm=1.0)


def test_embedding_is_left_alone(exporter):
    result = assert_same_outputs(nn.Embedding.from_pretrained(TABLE), RUNS[0], exporter)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(F.embedding_bag, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, weight, *args, **kwargs):
        return F.embedding(input, weight).sum(1)

    with pytest.raises(VerificationError):
        assert_same_outputs(nn.EmbeddingBag.from_pretrained(TABLE), RUNS[0].reshape(2, 4), exporter, rewrites=[broken])


def test_still_needed_for_torchscript():
    bag = nn.EmbeddingBag.from_pretrained(TABLE, padding_idx=1)
    with pytest.raises(CompatError, match="embedding_bag with padding_idx"):
        assert_same_outputs(bag, RUNS[0].reshape(2, 4), "torchscript", exclude=[NAME])


def test_still_needed_for_dynamo():
    bag = nn.EmbeddingBag.from_pretrained(TABLE)
    assert assert_same_outputs(bag, RUNS[0].reshape(2, 4), "dynamo", exclude=[NAME]).nodes.get("Loop")
