"""Lowering rules of normalizations: the same numbers, and the forms that onnxruntime fuses again."""

import numpy as np
import pytest

CASES = [
    {
        "id": "LayerNormalization",
        "opset": 20,
        "graph": """(float[2,3,4] x, float[4] s, float[4] b) => (float[2,3,4] y) {
            y = LayerNormalization<axis = -1, epsilon = 1e-3>(x, s, b)}""",
        "eps": 8,
    },
    {
        "id": "LayerNormalization, positive axis, no bias",
        "opset": 20,
        "graph": "(float[2,N,4] x, float[4,4] s) => (float[2,N,4] y) {y = LayerNormalization<axis = 1>(x, s)}",
        "eps": 8,
    },
    {
        "id": "LayerNormalization, three outputs",
        "opset": 20,
        "graph": """(float[2,3,4] x, float[4] s, float[4] b) => (float[2,3,4] y, float[2,3,1] m, float[2,3,1] d) {
            y, m, d = LayerNormalization(x, s, b)}""",
        "eps": 8,
    },
    {
        "id": "LayerNormalization, first and third output",
        "opset": 20,
        "graph": """(float[2,3,4] x, float[4] s) => (float[2,3,4] y, float[2,3,1] d) {
            y, , d = LayerNormalization(x, s)}""",
        "eps": 8,
    },
    {
        "id": "LayerNormalization, half",
        "opset": 20,
        "graph": """(float16[2,3,4] x, float16[4] s, float16[4] b) => (float16[2,3,4] y) {
            y = LayerNormalization(x, s, b)}""",
        "eps": 4,
    },
    {
        "id": "LayerNormalization, double",
        "opset": 20,
        "graph": "(double[2,3,4] x, double[4] s) => (double[2,3,4] y) {y = LayerNormalization(x, s)}",
        "eps": 8,
    },
    {
        "id": "RMSNormalization",
        "opset": 23,
        "graph": "(float[2,N,4] x, float[4] s) => (float[2,N,4] y) {y = RMSNormalization(x, s)}",
        "eps": 8,
    },
    {
        "id": "RMSNormalization, two axes",
        "opset": 23,
        "graph": "(float[2,3,4] x, float[3,4] s) => (float[2,3,4] y) {y = RMSNormalization<axis = 1>(x, s)}",
        "eps": 8,
    },
    {
        "id": "GroupNormalization per channel",
        "opset": 21,
        "graph": """(float[N,6,3,5] x, float[6] s, float[6] b) => (float[N,6,3,5] y) {
            y = GroupNormalization<num_groups = 2, epsilon = 1e-3>(x, s, b)}""",
        "eps": 16,
    },
    {
        "id": "GroupNormalization per channel, no spatial axis",
        "opset": 21,
        "graph": """(float[N,6] x, float[6] s, float[6] b) => (float[N,6] y) {
            y = GroupNormalization<num_groups = 2>(x, s, b)}""",
        "eps": 16,
    },
    {
        "id": "GroupNormalization per channel, half",
        "opset": 21,
        "graph": """(float16[N,6,8] x, float16[6] s, float16[6] b) => (float16[N,6,8] y) {
            y = GroupNormalization<num_groups = 3>(x, s, b)}""",
        "eps": 8,
    },
]


def test_same_numbers(oracle, case, opset):
    oracle.assert_same_numbers(oracle.parse(case["opset"], case["graph"]), opset, eps=case["eps"])


def test_group_normalization_per_group_is_written_out(oracle):
    graph = """(float[N,6,5] x, float[2] s, float[2] b) => (float[N,6,5] y) {
        y = GroupNormalization<num_groups = 2>(x, s, b)}"""
    proto = oracle.parse(20, graph)
    feeds = oracle.feeds(proto)
    lowered = oracle.converted(proto, 19)
    oracle.assert_written_for(lowered, 19)
    groups = feeds["x"].reshape(4, 2, -1).astype(np.float64)
    normal = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    expected = (normal * feeds["s"][:, None] + feeds["b"][:, None]).reshape(4, 6, 5).astype(np.float32)
    oracle.assert_close(oracle.run(lowered, feeds), [expected], eps=16)


@pytest.mark.parametrize("opset", [17, 15, 13, 11])
@pytest.mark.parametrize(
    ("op_type", "inputs", "fused"),
    [
        ("LayerNormalization", "x, s, b", "LayerNormalization"),
        ("RMSNormalization", "x, s", "SimplifiedLayerNormalization"),
    ],
)
def test_onnxruntime_fuses_the_expansion(oracle, op_type, inputs, fused, opset, tmp_path):
    graph = f"""(float[2,3,4] x) => (float[2,3,4] y)
        <float[4] s = {{1.0, 2.0, 3.0, 4.0}}, float[4] b = {{4.0, 3.0, 2.0, 1.0}}> {{
        y = {op_type}<epsilon = 1e-3>({inputs})}}"""
    assert fused in oracle.optimized(oracle.converted(oracle.parse(24, graph), opset), tmp_path)
