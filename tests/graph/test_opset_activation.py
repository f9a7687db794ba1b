"""Lowering rules of activations and softmaxes: the same numbers, and the forms that onnxruntime fuses again."""

import numpy as np
import pytest

CASES = [
    {"id": "Swish", "opset": 24, "graph": "(float[2,30] x) => (float[2,30] y) {y = Swish(x)}", "eps": 4},
    {
        "id": "Swish, alpha",
        "opset": 24,
        "graph": "(float[2,30] x) => (float[2,30] y) {y = Swish<alpha = 1.5>(x)}",
        "eps": 4,
    },
    {"id": "Gelu", "opset": 20, "graph": "(float[2,30] x) => (float[2,30] y) {y = Gelu(x)}", "eps": 4},
    {
        "id": "Gelu, tanh",
        "opset": 20,
        "graph": '(float[2,30] x) => (float[2,30] y) {y = Gelu<approximate = "tanh">(x)}',
        "eps": 4,
    },
    {"id": "Mish", "opset": 18, "graph": "(float[2,30] x) => (float[2,30] y) {y = Mish(x)}", "eps": 4},
    {"id": "HardSwish", "opset": 14, "graph": "(float[2,30] x) => (float[2,30] y) {y = HardSwish(x)}", "eps": 4},
    {"id": "Celu", "opset": 20, "graph": "(float[2,30] x) => (float[2,30] y) {y = Celu<alpha = 2.0>(x)}", "eps": 4},
    {"id": "Relu, float", "opset": 18, "graph": "(float[2,5] x) => (float[2,5] y) {y = Relu(x)}"},
    {"id": "Relu, int32", "opset": 18, "graph": "(int32[2,5] x) => (int32[2,5] y) {y = Relu(x)}"},
    {"id": "Softmax, last axis", "opset": 20, "graph": "(float[2,N,5] x) => (float[2,N,5] y) {y = Softmax(x)}"},
    {"id": "LogSoftmax, last axis", "opset": 20, "graph": "(float[2,N,5] x) => (float[2,N,5] y) {y = LogSoftmax(x)}"},
    {
        "id": "Softmax, axis 1",
        "opset": 20,
        "graph": "(float[2,N,5] x) => (float[2,N,5] y) {y = Softmax<axis = 1>(x)}",
        "eps": 2,
    },
    {
        "id": "Softmax, axis -3",
        "opset": 20,
        "graph": "(float[2,N,5] x) => (float[2,N,5] y) {y = Softmax<axis = -3>(x)}",
        "eps": 2,
    },
    {
        "id": "LogSoftmax, axis 0",
        "opset": 20,
        "graph": "(float[2,N,5] x) => (float[2,N,5] y) {y = LogSoftmax<axis = 0>(x)}",
        "eps": 2,
    },
    {
        "id": "Hardmax, axis 1",
        "opset": 20,
        "graph": "(float[2,N,5] x) => (float[2,N,5] y) {y = Hardmax<axis = 1>(x)}",
    },
    {"id": "Dropout", "opset": 20, "graph": "(float[2,5] x) => (float[2,5] y) {z = Dropout(x) y = Neg(z)}"},
]


def test_same_numbers(oracle, case, opset):
    oracle.assert_same_numbers(oracle.parse(case["opset"], case["graph"]), opset, eps=case.get("eps", 0))


def test_hard_swish_at_the_kinks(oracle):
    proto = oracle.parse(14, "(float[6] x) => (float[6] y) {y = HardSwish(x)}")
    oracle.assert_same_numbers(proto, 11, eps=1, feeds={"x": np.array([-4, -3, 0, 3, 4, -0.0], np.float32)})


@pytest.mark.parametrize("opset", [19, 17, 13, 11])
def test_onnxruntime_fuses_gelu(oracle, opset, tmp_path):
    lowered = oracle.converted(oracle.parse(20, "(float[2,3] x) => (float[2,3] y) {y = Gelu(x)}"), opset)
    assert oracle.optimized(lowered, tmp_path) == ["Gelu"]
