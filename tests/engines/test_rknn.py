"""RKNN's adapter: what the toolkit computes with torch, which its environment does not have."""

import numpy as np
import onnx
import pytest

from torch_onnx_compat.engines import ENGINES, EngineProcess
from torch_onnx_compat.engines.compare import judge, reference

AROUND_SPLIT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 256, 192] x) => (float[4, 4, 256, 16] y)
<int64[5] s = {4, 256, 3, 4, 16}, int64[3] ones = {1, 1, 1}, int64[1] zero = {0}, float scale = {0.25}>
{ r = Reshape(x, s)  t = Transpose<perm = [2, 0, 3, 1, 4]>(r)  a, b, c = Split<axis = 0>(t, ones)
  q = Squeeze(a, zero)  k = Squeeze(b, zero)  v = Squeeze(c, zero)  n = Mul(q, scale)
  l = Transpose<perm = [0, 1, 3, 2]>(k)  m = MatMul(n, l)  p = Softmax<axis = -1>(m)  y = MatMul(p, v) }"""


@pytest.mark.slow
@pytest.mark.skipif(ENGINES["rknn"].interpreter() is None, reason="rknn is not installed")
def test_split_between_reshapes_is_simplified():
    model = onnx.parser.parse_model(AROUND_SPLIT).SerializeToString()
    feeds = {"x": np.random.default_rng(0).uniform(-1, 1, (4, 256, 192)).astype(np.float32)}
    with EngineProcess(ENGINES["rknn"], limit=100.0) as process:
        outcome = process.run(model, feeds, ["y"])
    assert judge(outcome, reference(model, feeds), ENGINES["rknn"].tolerance) == ("works", "")
