"""Small files as other tools than torch write them: their opsets, IR versions, layouts and habits, with random weights.

Each is made from ONNX's text form. What is typical of a tool: tf2onnx and keras2onnx transpose around each convolution
and compute shapes in the graph; Paddle2ONNX writes HardSwish and Resize in opset 11; MXNet's exporter lists every
weight among the inputs, in opset 8 and 9; skl2onnx uses the domain ai.onnx.ml; converters of Darknet write Upsample.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

FILES = {
    # name: (IR version, opsets, inputs, outputs, weights by shape, nodes)
    "tf2onnx convolution": (
        7,
        "13",
        "float[1,17,17,3] x",
        "float[1,5] y",
        {"k": (8, 3, 3, 3), "b": (8,), "m": (8,), "v": (8,), "w": (8, 5), "o": (5,)},
        """a = Transpose<perm = [0, 3, 1, 2]>(x)  pads = Constant<value_ints = [0, 0, 0, 0, 0, 0, 1, 1]>()
        p = Pad(a, pads)  c = Conv<strides = [2, 2]>(p, k)  t = Transpose<perm = [0, 2, 3, 1]>(c)
        d = Add(t, b)  e = Mul(d, m)  f = Sub(e, v)  low = Constant<value_float = 0.0>()
        high = Constant<value_float = 6.0>()  r = Clip(f, low, high)
        g = ReduceMean<axes = [1, 2], keepdims = 0>(r)  h = MatMul(g, w)  i = Add(h, o)  y = Softmax<axis = 1>(i)""",
    ),
    "tf2onnx resize": (
        6,
        "11",
        "float[1,8,8,3] x",
        "float[1,16,16,4] y",
        {"k": (4, 3, 1, 1)},
        """a = Transpose<perm = [0, 3, 1, 2]>(x)  s = Shape(a)
        zero = Constant<value = int64[1] {0}>()  two = Constant<value = int64[1] {2}>()
        head = Slice(s, zero, two)  hw = Constant<value = int64[2] {16, 16}>()  sizes = Concat<axis = 0>(head, hw)
        roi = Constant<value = float[0] {}>()  no = Constant<value = float[0] {}>()
        r = Resize<coordinate_transformation_mode = "half_pixel", mode = "linear">(a, roi, no, sizes)
        c = Conv(r, k)  y = Transpose<perm = [0, 2, 3, 1]>(c)""",
    ),
    "tf2onnx depthwise": (
        7,
        "12",
        "float[1,16,16,4] x",
        "float[1,16,8,8] y",
        {"k": (4, 1, 3, 3), "b": (4,)},
        """a = Transpose<perm = [0, 3, 1, 2]>(x)
        c = Conv<group = 4, auto_pad = "SAME_UPPER", kernel_shape = [3, 3]>(a, k, b)
        s = Sigmoid(c)  m = Mul(c, s)  y = SpaceToDepth<blocksize = 2>(m)""",
    ),
    "tf2onnx attention": (
        8,
        "15",
        "float[1,6,8] x",
        "float[1,6,8] y",
        {"q": (8, 8), "k": (8, 8), "v": (8, 8), "g": (8,), "b": (8,)},
        """m = ReduceMean<axes = [2]>(x)  d = Sub(x, m)  dd = Mul(d, d)  var = ReduceMean<axes = [2]>(dd)
        eps = Constant<value_float = 0.001>()  ve = Add(var, eps)  sq = Sqrt(ve)  inv = Reciprocal(sq)
        ig = Mul(inv, g)  n1 = Mul(d, ig)  n = Add(n1, b)  qs = MatMul(n, q)  ks = MatMul(n, k)  vs = MatMul(n, v)
        s = Shape(qs)  z = Constant<value = int64[1] {0}>()  e = Constant<value = int64[1] {2}>()
        bt = Slice(s, z, e)  hd = Constant<value = int64[2] {2, 4}>()  shape = Concat<axis = 0>(bt, hd)
        q4 = Reshape(qs, shape)  k4 = Reshape(ks, shape)  v4 = Reshape(vs, shape)
        qt = Transpose<perm = [0, 2, 1, 3]>(q4)  kt = Transpose<perm = [0, 2, 3, 1]>(k4)
        vt = Transpose<perm = [0, 2, 1, 3]>(v4)  a = MatMul(qt, kt)  half = Constant<value_float = 0.5>()
        a2 = Mul(a, half)  p = Softmax<axis = -1>(a2)  o = MatMul(p, vt)  ot = Transpose<perm = [0, 2, 1, 3]>(o)
        y1 = Reshape(ot, s)  y = Add(y1, x)""",
    ),
    "tf2onnx slices": (
        7,
        "13",
        "float[2,9,4] x",
        "float[2,10,4] y",
        {},
        """st = Constant<value_ints = [0]>()  en = Constant<value_ints = [9]>()  ax = Constant<value_ints = [1]>()
        step = Constant<value_ints = [2]>()  a = Slice(x, st, en, ax, step)  b = Neg(a)
        y = Concat<axis = 1>(a, b)""",
    ),
    "keras2onnx LSTM": (
        6,
        "11",
        "float[1,7,3] x",
        "float[1,2] y",
        {"w": (1, 16, 3), "r": (1, 16, 4), "b": (1, 32), "d": (4, 2), "o": (2,)},
        """t = Transpose<perm = [1, 0, 2]>(x)  a, h, c = LSTM<hidden_size = 4>(t, w, r, b)
        s = Squeeze<axes = [0]>(h)  m = MatMul(s, d)  n = Add(m, o)  y = Sigmoid(n)""",
    ),
    "keras2onnx dense": (
        5,
        "10",
        "float[4,6] x",
        "float[4,3] y",
        {"w": (6, 8), "b": (8,), "v": (8, 3), "c": (3,)},
        """m = MatMul(x, w)  a = Add(m, b)  l = LeakyRelu<alpha = 0.3>(a)  i = Identity(l)
        n = MatMul(i, v)  d = Add(n, c)  y = Softmax<axis = 1>(d)""",
    ),
    "keras2onnx separable": (
        5,
        "10",
        "float[1,12,12,3] x",
        "float[1,6] y",
        {"k": (3, 1, 3, 3), "p": (6, 3, 1, 1), "g": (6,), "b": (6,), "m": (6,), "+v": (6,)},
        """t = Transpose<perm = [0, 3, 1, 2]>(x)  d = Conv<group = 3, pads = [1, 1, 1, 1]>(t, k)  c = Conv(d, p)
        n = BatchNormalization<epsilon = 0.001>(c, g, b, m, v)  e = Elu<alpha = 1.0>(n)  q = GlobalMaxPool(e)
        y = Squeeze<axes = [2, 3]>(q)""",
    ),
    "keras2onnx texts": (
        7,
        "12",
        "int32[1,10] x",
        "float[1,5] y",
        {"table": (20, 6), "k": (5, 6, 3)},
        """i = Cast<to = 7>(x)  e = Gather(table, i)  t = Transpose<perm = [0, 2, 1]>(e)
        c = Conv(t, k)  r = Relu(c)  y = ReduceMax<axes = [2], keepdims = 0>(r)""",
    ),
    "Paddle2ONNX mobilenet": (
        7,
        "11",
        "float[1,3,16,16] x",
        "float[1,8] y",
        {"k": (8, 3, 3, 3), "g": (8,), "b": (8,), "m": (8,), "+v": (8,), "s": (2, 8, 1, 1), "u": (8, 2, 1, 1)},
        """c = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, k)  n = BatchNormalization(c, g, b, m, v)
        three = Constant<value = float {3.0}>()  z = Constant<value = float {0.0}>()
        six = Constant<value = float {6.0}>()  a = Add(n, three)  r = Clip(a, z, six)  h = Mul(n, r)  w = Div(h, six)
        p = GlobalAveragePool(w)  e1 = Conv(p, s)  e2 = Relu(e1)  e3 = Conv(e2, u)
        e = HardSigmoid<alpha = 0.2, beta = 0.5>(e3)  o = Mul(w, e)  q = GlobalAveragePool(o)
        sh = Constant<value = int64[2] {0, -1}>()  y = Reshape(q, sh)""",
    ),
    "Paddle2ONNX pyramid": (
        7,
        "11",
        "float[1,3,16,16] x",
        "float[1,6,16,16] y",
        {"k": (4, 3, 3, 3), "l": (2, 3, 1, 1), "d": (4, 4, 2, 2)},
        """c = Conv<strides = [4, 4], pads = [1, 1, 1, 1]>(x, k)  t = ConvTranspose<strides = [2, 2]>(c, d)
        roi = Constant<value = float[0] {}>()  s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>()
        r = Resize<coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor">(t, roi, s)
        q = Conv(x, l)  y = Concat<axis = 1>(r, q)""",
    ),
    "Paddle2ONNX fc": (
        4,
        "9",
        "float[2,3,4] x",
        "float[2,5] y",
        {"w": (12, 5), "b": (5,)},
        """s = Shape(x)  f = Slice<axes = [0], starts = [0], ends = [1]>(s)  r = Constant<value = int64[1] {-1}>()
        sh = Concat<axis = 0>(f, r)  a = Reshape(x, sh)  m = MatMul(a, w)  n = Add(m, b)
        k = Constant<value = float[1] {0.5}>()  y = Mul(n, k)""",
    ),
    "Paddle2ONNX text lines": (
        7,
        "11",
        "float[1,3,8,20] x",
        "float[1,10,6] y",
        {"k": (4, 3, 3, 3), "w": (2, 9, 4), "r": (2, 9, 3), "b": (2, 18)},
        """c = Conv<pads = [1, 1, 1, 1], strides = [1, 2]>(x, k)  p = AveragePool<kernel_shape = [8, 1]>(c)
        q = Squeeze<axes = [2]>(p)  t = Transpose<perm = [2, 0, 1]>(q)
        a = GRU<hidden_size = 3, direction = "bidirectional", linear_before_reset = 1>(t, w, r, b)
        u = Transpose<perm = [2, 0, 1, 3]>(a)  sh = Constant<value = int64[3] {0, 0, -1}>()  y = Reshape(u, sh)""",
    ),
    "MXNet residual": (
        3,
        "8",
        "float[1,3,16,16] x",
        "float[1,4] y",
        {"g": (3,), "b": (3,), "m": (3,), "+v": (3,), "k": (6, 3, 3, 3), "l": (6, 6, 3, 3), "w": (4, 6), "o": (4,)},
        """n = BatchNormalization<epsilon = 0.00002>(x, g, b, m, v)  c = Conv<pads = [1, 1, 1, 1]>(n, k)
        r = Relu(c)  p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)  d = Conv<pads = [1, 1, 1, 1]>(p, l)
        s = Add(d, p)  a = GlobalAveragePool(s)  f = Flatten(a)  h = Gemm<transB = 1>(f, w, o)  y = Softmax(h)""",
    ),
    "MXNet pad": (
        3,
        "9",
        "float[1,4,9,9] x",
        "float[1,4,18,18] y",
        {"k": (4, 4, 3, 3), "a": (4, 1, 1)},
        """p = Pad<mode = "reflect", pads = [0, 0, 1, 1, 0, 0, 1, 1]>(x)  l = LRN<size = 3>(p)  c = Conv(l, k)
        r = PRelu(c, a)  s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>()  y = Upsample(r, s)""",
    ),
    "MXNet detector": (
        3,
        "9",
        "float[1,3,8,8] x",
        "float[1,192,2] y",
        {"k": (4, 3, 3, 3), "l": (2, 3, 3, 3)},
        """c = Conv<pads = [1, 1, 1, 1]>(x, k)  d = Conv<pads = [1, 1, 1, 1]>(x, l)
        t = Transpose<perm = [0, 2, 3, 1]>(c)  u = Transpose<perm = [0, 2, 3, 1]>(d)
        f = Flatten(t)  g = Flatten(u)  j = Concat<axis = 1>(f, g)  sh = Constant<value = int64[3] {0, -1, 2}>()
        r = Reshape(j, sh)  y = Softmax<axis = 2>(r)""",
    ),
    "skl2onnx network": (
        8,
        "15",
        "float[4,6] x",
        "float[4,3] y",
        {"m": (6,), "+v": (6,), "w": (6, 8), "b": (8,), "u": (8, 3), "c": (3,)},
        """a = Sub(x, m)  s = Div(a, v)  h = MatMul(s, w)  i = Add(h, b)  r = Relu(i)  o = MatMul(r, u)
        p = Add(o, c)  y = Softmax<axis = 1>(p)""",
    ),
    "skl2onnx clusters": (
        8,
        "13",
        "float[4,3] x",
        "float[4,5] y",
        {"c": (5, 3)},
        """e = ReduceSumSquare<axes = [1]>(x)  g = Gemm<alpha = -2.0, transB = 1>(x, c)  a = Add(e, g)
        f = ReduceSumSquare<axes = [1], keepdims = 0>(c)  d = Add(a, f)  z = Abs(d)  y = Sqrt(z)""",
    ),
    "skl2onnx linear": (
        8,
        '15, "ai.onnx.ml": 1',
        "float[4,3] x",
        "float[4,1] y",
        {},
        """s = ai.onnx.ml.Scaler<offset = [0.5, 0.1, 0.2], scale = [2.0, 1.0, 0.5]>(x)
        y = ai.onnx.ml.LinearRegressor<coefficients = [0.3, -1.0, 2.0], intercepts = [0.25]>(s)""",
    ),
    "Darknet detector": (
        4,
        "9",
        "float[1,3,16,16] x",
        "float[1,6,8,8] y",
        {"k": (4, 3, 3, 3), "g": (4,), "b": (4,), "m": (4,), "+v": (4,), "l": (4, 4, 3, 3), "o": (6, 8, 1, 1)},
        """c = Conv<auto_pad = "SAME_LOWER", kernel_shape = [3, 3], strides = [2, 2]>(x, k)
        n = BatchNormalization(c, g, b, m, v)  r = LeakyRelu<alpha = 0.1>(n)
        d = Conv<auto_pad = "SAME_LOWER", kernel_shape = [3, 3], strides = [2, 2]>(r, l)
        s = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>()  u = Upsample<mode = "nearest">(d, s)
        j = Concat<axis = 1>(u, r)  y = Conv(j, o)""",
    ),
}


def write(name: str, path: Path) -> None:
    """Writes the file of this name; a weight whose name begins with + has positive numbers."""
    version, opset, inputs, outputs, shapes, nodes = FILES[name]
    text = f'<ir_version: {version}, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{ {nodes} }}'
    model = parser.parse_model(text)
    random = np.random.default_rng(zlib.crc32(name.encode()))
    for key, shape in shapes.items():
        array = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)
        array = np.abs(array) + 0.5 if key.startswith("+") else array
        tensor = numpy_helper.from_array(array.astype(np.float32), key.removeprefix("+"))
        model.graph.initializer.append(tensor)
        if version < 4:
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, shape))
    onnx.checker.check_model(model)
    onnx.save(model, path)
