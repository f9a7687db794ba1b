"""Lowering rules of operators that lower opsets define for fewer element types: the same numbers."""

import numpy as np

SPECIAL = {
    "x": np.array([np.nan, 1, np.inf, -np.inf, 0, -0.0], np.float32),
    "z": np.array([1, np.nan, np.inf, np.inf, -0.0, 1e-30], np.float32),
}

CASES = [
    {
        "id": "Cast, defaults",
        "opset": 24,
        "graph": '(float[9] x) => (int32[9] y) {y = Cast<to = 6, saturate = 1, round_mode = "up">(x)}',
    },
    {"id": "CastLike", "opset": 24, "graph": "(float[9] x, int64[1] z) => (int64[9] y) {y = CastLike(x, z)}"},
    {
        "id": "IsInf, half",
        "opset": 20,
        "graph": "(float16[6] x) => (bool[6] y) {y = IsInf<detect_negative = 0>(x)}",
        "feeds": {"x": SPECIAL["x"].astype(np.float16)},
    },
    {
        "id": "IsInf, float",
        "opset": 20,
        "graph": "(float[6] x) => (bool[6] y) {y = IsInf(x)}",
        "feeds": {"x": SPECIAL["x"]},
    },
    {"id": "BitwiseNot, int32", "opset": 18, "graph": "(int32[9] x) => (int32[9] y) {y = BitwiseNot(x)}"},
    {"id": "BitwiseNot, int64", "opset": 18, "graph": "(int64[9] x) => (int64[9] y) {y = BitwiseNot(x)}"},
    {"id": "BitwiseNot, uint32", "opset": 18, "graph": "(uint32[9] x) => (uint32[9] y) {y = BitwiseNot(x)}"},
    {
        "id": "QuantizeLinear and DequantizeLinear per tensor",
        "opset": 20,
        "graph": """(float[2,9] x, float s, uint8 z) => (float[2,9] y) {
            q = QuantizeLinear<axis = 1, saturate = 1>(x, s, z)
            y = DequantizeLinear<axis = 1>(q, s, z)}""",
        "feeds": {"s": np.array(0.1, np.float32)},
    },
    {
        "id": "GreaterOrEqual",
        "opset": 20,
        "graph": "(float[6] x, float[6] z) => (bool[6] y) {y = GreaterOrEqual(x, z)}",
        "feeds": SPECIAL,
    },
    {
        "id": "LessOrEqual",
        "opset": 20,
        "graph": "(float[6] x, float[6] z) => (bool[6] y) {y = LessOrEqual(x, z)}",
        "feeds": SPECIAL,
    },
    {
        "id": "Max, int64",
        "opset": 20,
        "graph": "(int64[9] x, int64[1] z, int64[2,1] w) => (int64[2,9] y) {y = Max(x, z, w)}",
    },
    {"id": "Min, int32", "opset": 20, "graph": "(int32[9] x, int32[9] z) => (int32[9] y) {y = Min(x, z)}"},
    {"id": "Min, one input", "opset": 20, "graph": "(int32[9] x) => (int32[9] y) {y = Min(x)}"},
    {"id": "Max, float", "opset": 20, "graph": "(float[9] x, float[9] z) => (float[9] y) {y = Max(x, z)}"},
    {
        "id": "Clip, int64",
        "opset": 20,
        "graph": """(int64[9] x) => (int64[9] y, int64[9] z, int64[9] w, int64[9] v)
            <int64 low = {-2}, int64 high = {3}> {
            y = Clip(x, low, high) z = Clip(x, , high) w = Clip(x, low) v = Clip(x)}""",
    },
    {
        "id": "Clip, int64, low above high",
        "opset": 20,
        "graph": "(int64[9] x) => (int64[9] y) <int64 low = {3}, int64 high = {-2}> {y = Clip(x, low, high)}",
    },
    {
        "id": "Pow, float to an integer",
        "opset": 20,
        "graph": "(float[9] x) => (float[9] y) <int64 two = {2}> {y = Pow(x, two)}",
    },
    {
        "id": "Pow, float to integers given at run time",
        "opset": 20,
        "graph": "(float[9] x, int64[9] n) => (float[9] y) {y = Pow(x, n)}",
        "eps": 2,
    },
    {
        "id": "Pow, integer to a constant",
        "opset": 20,
        "graph": "(int64[9] x) => (int64[9] y) <float three = {3.0}> {y = Pow(x, three)}",
    },
    {
        "id": "Constant of numbers",
        "opset": 20,
        "graph": """(float[2] x, int64[3] n) => (float[2] y, int64[3] m) {
            a = Constant<value_float = 1.5>() b = Constant<value_floats = [2.5, 3.5]>()
            c = Constant<value_int = 4>() d = Constant<value_ints = [5, 6, 7]>()
            ab = Add(a, b) y = Add(x, ab) cd = Add(c, d) m = Add(n, cd)}""",
    },
]


def test_same_numbers(oracle, case, opset):
    proto = oracle.parse(case["opset"], case["graph"])
    oracle.assert_same_numbers(proto, opset, eps=case.get("eps", 0), feeds=case.get("feeds", {}))


def test_casts_to_old_types_drop_what_only_float8_heeds(oracle):
    graph = """(float[9] x, int64[1] l) => (int32[9] y, int64[9] z) {
        y = Cast<to = 6, saturate = 0, round_mode = "down">(x) z = CastLike<saturate = 0>(x, l)}"""
    lowered = oracle.converted(oracle.parse(24, graph), 17)
    oracle.assert_written_for(lowered, 17)
    assert [[a.name for a in node.attribute] for node in lowered.graph.node] == [["to"], []]


def test_string_constants_become_tensors(oracle):
    proto = oracle.parse(20, '() => (string[2] y) {c = Constant<value_strings = ["a", "b"]>() y = Identity(c)}')
    lowered = oracle.assert_same_numbers(proto, 11)
    assert lowered.graph.node[0].attribute[0].name == "value"
