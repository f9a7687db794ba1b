import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "attention_to_matmul"
sdpa = F.scaled_dot_product_attention
Q, K, V = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 3)
OPEN = torch.rand(2, 1, 5, 6) > 0.4
OPEN[:, :, 1] = False
BATCH = {name: {0: "batch"} for name in ("q", "k", "v", "is_open")}


def many(q, k, v, is_open):
    added = torch.zeros(is_open.shape).masked_fill(~is_open, float("-inf"))
    k4, v4 = torch.cat((k, k), 1), torch.cat((v, v), 1)
    return (
        *(sdpa(q, k4, v4, is_open), sdpa(q, k4, v4, added), sdpa(q, k4, v4, scale=-0.4)),
        *(sdpa(q, k, v, enable_gqa=True), sdpa(q, k, v, is_causal=True, enable_gqa=True)),
        *(sdpa(q, k, v, added, enable_gqa=True), sdpa(q.double(), k4.double(), v4.double())),
        *(sdpa(q[:, 0], k[:, 0], v[:, 0]), sdpa(q.unsqueeze(1), k4.unsqueeze(1), v4.unsqueeze(1))),
    )


def test_matches(exporter):
    assert_same_outputs(many, (Q, K, V, OPEN), exporter, opset=18, dynamic=BATCH, uses=(NAME,))


def test_matches_dynamic_lengths(exporter):
    axes = {"q": {0: "batch", 2: "length"}, "k": {0: "batch", 2: "keys"}, "v": {0: "batch", 2: "keys"}}
    assert_same_outputs(
        lambda q, k, v: sdpa(q, k, v, is_causal=True, enable_gqa=True),
        (Q, K, V),
        exporter,
        opset=18,
        dynamic=axes,
        uses=(NAME,),
    )


def test_takes_five_nodes(exporter):
    result = assert_same_outputs(lambda q: sdpa(q, q, q, scale=-0.4), Q, exporter, opset=18, uses=(NAME,))
    assert {k: n for k, n in result.nodes.items() if k != "Constant"} == {
        **{"Mul": 1, "Transpose": 1, "MatMul": 2, "Softmax": 1}
    }


@given(
    length=st.integers(1, 4),
    keys=st.integers(1, 4),
    times=st.integers(1, 3),
    mask=st.sampled_from((None, "bool", "float", "causal")),
    seed=st.integers(0, 99),
)
@settings(max_examples=100, deadline=None)
def test_equals_eager(length, keys, times, mask, seed):
    torch.manual_seed(seed)
    q, k, v = torch.randn(1, 2 * times, length, 4), torch.randn(1, 2, keys, 4), torch.randn(1, 2, keys, 3)
    options = {"enable_gqa": True, "is_causal": mask == "causal"}
    if mask in ("bool", "float"):
        options["attn_mask"] = torch.rand(length, keys) > 0.5
    if mask == "float":
        options["attn_mask"] = torch.randn(length, keys).masked_fill(options["attn_mask"], float("-inf"))
    torch.testing.assert_close(catalogue()[NAME].body(q, k, v, **options), sdpa(q, k, v, **options))


def test_plain_attention_is_left_alone(exporter):
    result = assert_same_outputs(lambda q: sdpa(q, q, q, is_causal=True), Q, exporter, opset=18)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_declines_dropout():
    with pytest.raises(Declined, match=r"dropout_p must be 0, .* got 0\.1"):
        catalogue()[NAME].body(Q, Q, Q, torch.zeros(5, 5), 0.1)


def test_sentinel(exporter):
    @rewrite(sdpa, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(query, key, value, attn_mask=None, **options):
        return torch.softmax(query @ key.transpose(-2, -1), -1) @ value

    with pytest.raises(VerificationError):
        assert_same_outputs(lambda q: sdpa(q, q, q, scale=-0.4), Q, exporter, opset=18, rewrites=[broken])


def test_still_needed(exporter):
    with pytest.raises(VerificationError):
        assert_same_outputs(lambda q: sdpa(q, q, q, scale=-0.4), Q, exporter, opset=18, exclude=[NAME])


def test_still_needed_for_grouped_queries():
    with pytest.raises(CompatError, match="enable_gqa"):
        assert_same_outputs(
            lambda q, k, v: sdpa(q, k, v, enable_gqa=True), (Q, K, V), "torchscript", opset=18, exclude=[NAME]
        )
