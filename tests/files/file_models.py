"""Small files of many kinds, made from text or by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser


def write(path: Path, text: str, **weights: Any) -> Path:
    """Writes a model given in ONNX's text form, with weights beside it."""
    model = parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items())
    path.write_bytes(model.SerializeToString())
    return path


def net(path: Path, opset: int = 17, batch: Any = "n") -> Path:
    """A small picture network, its batch axis dynamic or fixed."""
    random = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["image", "kernel", "bias"], ["conv"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("GlobalAveragePool", ["relu"], ["pool"]),
        helper.make_node("Reshape", ["pool", "shape"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weight", "offset"], ["logits"], transB=1),
    ]
    shape = [-1, 4] if isinstance(batch, str) else [batch, 4]
    weights = {
        "kernel": random.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "bias": random.standard_normal(4).astype(np.float32),
        "shape": np.array(shape, np.int64),
        "weight": random.standard_normal((5, 4)).astype(np.float32),
        "offset": np.zeros(5, np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 5])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, path)
    return path
