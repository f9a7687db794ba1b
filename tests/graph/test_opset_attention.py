"""The lowering rule of Attention: the same numbers, and what it refuses."""

import numpy as np
import pytest

from torch_onnx_compat.errors import UnsupportedError

QKV = "float[2,4,5,8] q, float[2,4,6,8] k, float[2,4,6,3] v"
GROUPED = "float[2,5,16] q, float[2,N,8] k, float[2,N,12] v"

CASES = [
    {
        "id": "plain",
        "opset": 24,
        "graph": f"({QKV}) => (float[2,4,5,3] y) {{y = Attention(q, k, v)}}",
        "eps": 16,
    },
    {
        "id": "scale",
        "opset": 23,
        "graph": f"({QKV}) => (float[2,4,5,3] y) {{y = Attention<scale = 0.7>(q, k, v)}}",
        "eps": 16,
    },
    {
        "id": "float mask",
        "opset": 23,
        "graph": f"({QKV}, float[1,4,5,6] m) => (float[2,4,5,3] y) {{y = Attention(q, k, v, m)}}",
        "eps": 16,
    },
    {
        "id": "bool mask and causal",
        "opset": 23,
        "graph": f"({QKV}, bool[5,6] m) => (float[2,4,5,3] y) {{y = Attention<is_causal = 1>(q, k, v, m)}}",
        "eps": 16,
        "feeds": {"m": np.tri(5, 6, 1, bool)},
    },
    {
        "id": "three axes, grouped heads, causal",
        "opset": 23,
        "graph": f"""({GROUPED}) => (float[2,5,24] y) {{
            y = Attention<q_num_heads = 4, kv_num_heads = 2, is_causal = 1>(q, k, v)}}""",
        "eps": 16,
    },
    {
        "id": "softcap before the mask",
        "opset": 23,
        "graph": f"({QKV}, bool[5,6] m) => (float[2,4,5,3] y) {{y = Attention<softcap = 2.0>(q, k, v, m)}}",
        "eps": 16,
        "feeds": {"m": np.tri(5, 6, 1, bool)},
    },
    {
        "id": "cached keys and values, causal",
        "opset": 23,
        "graph": """(float[2,4,5,8] q, float[2,2,5,8] k, float[2,2,P,8] p, float[2,2,P,8] r) =>
            (float[2,4,5,8] y, float[2,2,T,8] a, float[2,2,T,8] b) {
            y, a, b = Attention<is_causal = 1>(q, k, k, , p, r)}""",
        "eps": 16,
    },
    {
        "id": "half, softmax in float",
        "opset": 23,
        "graph": f"""({QKV.replace("float", "float16")}) => (float16[2,4,5,3] y) {{
            y = Attention<softmax_precision = 1>(q, k, v)}}""",
        "eps": 4,
    },
]


def test_same_numbers(oracle, case, opset):
    proto = oracle.parse(case["opset"], case["graph"])
    oracle.assert_same_numbers(proto, opset, eps=case["eps"], feeds=case.get("feeds", {}))


def test_fully_masked_rows_are_zero(oracle):
    proto = oracle.parse(23, f"({QKV}, bool[5,6] m) => (float[2,4,5,3] y) {{y = Attention(q, k, v, m)}}")
    feeds = {**oracle.feeds(proto), "m": np.arange(5)[:, None] + np.zeros(6) > 1}
    (y,) = oracle.run(oracle.converted(proto, 17), feeds)
    assert not y[:, :, :2].any()
    assert np.isfinite(y).all()
    assert y[:, :, 2:].all()


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (f"({QKV}, float[5,4] m) => (float[2,4,5,3] y) {{y = Attention(q, k, v, m)}}", "a mask of 4 of 6 keys"),
        (f"({QKV}) => (float[2,4,5,3] y, float[2,4,5,6] w) {{y, , , w = Attention(q, k, v)}}", "its output 'w'"),
        (
            "(float[2,H,5,8] q, float[2,4,6,8] k) => (float[2,H,5,8] y) {y = Attention(q, k, k)}",
            "the size of axis 1 of 'q' is unknown",
        ),
    ],
)
def test_refusals(oracle, graph, reason):
    with pytest.raises(
        UnsupportedError, match=f"Attention, 1 node, e.g. at 'y': {reason}; ask for opset_version >= 23"
    ):
        oracle.converted(oracle.parse(23, graph), 22)


def test_inputs_and_attributes_of_later_opsets_are_not_lost(oracle):
    graph = "(float[2,4,5,8] q, int64[2] n) => (float[2,4,5,8] y) {y = Attention(q, q, q, , , , n)}"
    with pytest.raises(UnsupportedError, match=r"7 inputs are more than the 6 .* ask for opset_version >= 24"):
        oracle.converted(oracle.parse(24, graph), 20)
    graph = "(float[2,4,5,8] q) => (float[2,4,5,8] y) {y = Attention<left_window_size = 2>(q, q, q)}"
    with pytest.raises(UnsupportedError, match=r"left_window_size=2 is newer .* ask for opset_version >= 25"):
        oracle.converted(oracle.parse(25, graph), 20)
