"""TensorFlow Lite's adapter: onnx2tf turns images, and the outputs come in ONNX's order all the same."""

import numpy as np
import onnx
import pytest

from torch_onnx_compat.engines import ENGINES, EngineProcess
from torch_onnx_compat.engines.compare import judge, reference

TWO_IMAGES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 4, 6] x, float[1, 4, 4, 6] same) => (float[1, 4, 4, 6] z, float[1, 4, 2, 3] p, float[1, 24] f)
<int64[2] s = {1, 24}, float[4, 2, 1, 1] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}>
{ c = Conv(x, w)  p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(c)  z = Add(c, same)  f = Reshape(p, s) }"""
TOKENS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 5, 6] x, float[6, 6] w) => (float[n, 6, 5] y)
{ m = MatMul(x, w)  y = Transpose<perm = [0, 2, 1]>(m) }"""


@pytest.mark.slow
@pytest.mark.skipif(ENGINES["tflite"].interpreter() is None, reason="tflite is not installed")
@pytest.mark.parametrize(
    ("text", "shapes", "outputs"),
    [
        (TWO_IMAGES, {"x": (1, 2, 4, 6), "same": (1, 4, 4, 6)}, ["z", "p", "f"]),
        (TOKENS, {"x": (2, 5, 6), "w": (6, 6)}, ["y"]),
    ],
)
def test_outputs_are_in_the_order_of_onnx(text, shapes, outputs):
    model, random = onnx.parser.parse_model(text).SerializeToString(), np.random.default_rng(0)
    feeds = {name: random.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    with EngineProcess(ENGINES["tflite"], limit=100.0) as process:
        outcome = process.run(model, feeds, outputs)
    assert judge(outcome, reference(model, feeds), ENGINES["tflite"].tolerance) == ("works", "")
