"""The twin of a parsed network: right readings agree with torch, planted misreadings do not; the unknown is named."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat.engines.tensorrt import (
    Layer,
    Network,
    NetworkFault,
    NotKnown,
    Value,
    read_network,
    run_network,
    unknown_kinds,
)

TYPES = {torch.float64: "FLOAT", torch.int64: "INT64", torch.bool: "BOOL", torch.int8: "INT8", torch.int32: "INT32"}


def value(name, tensor, shape=None):
    return Value(name, TYPES[tensor.dtype], shape)


def network(kind, attributes, inputs, outputs):
    """A network of one layer; sizes are left open, so that only values tell of a misreading."""
    given = tuple(None if t is None else value(f"x{i}", t) for i, t in enumerate(inputs))
    made = tuple(value(f"y{i}", t) for i, t in enumerate(outputs))
    layer = Layer("node", kind, given, made, attributes)
    return Network(tuple(v for v in given if v), tuple(v.name for v in made), (layer,))


def numbers(*shape):
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.rand(shape, generator=generator, dtype=torch.float64) * 4 - 2


def places(*shape, below):
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(7))


def agrees(kind, attributes, inputs, wanted):
    """Whether a layer computes what torch does; a network that cannot be computed does not."""
    feeds = {f"x{i}": t.numpy() for i, t in enumerate(inputs) if t is not None}
    try:
        found = run_network(network(kind, attributes, inputs, wanted), feeds)
    except NetworkFault:
        return False
    pairs = zip(found, wanted, strict=True)
    return all(a.shape == tuple(b.shape) and np.allclose(a, b.numpy(), 1e-9, 1e-9) for a, b in pairs)


IMAGE, GRID = numbers(1, 2, 5, 7), numbers(1, 4, 3, 2)
KERNEL, SQUARE, CUBE = numbers(4, 2, 3, 3), numbers(3, 3), numbers(2, 3, 4)
SAMPLE = {"interpolation_mode": "LINEAR", "align_corners": False, "sample_mode": "FILL"}
RESIZE = {
    "shape": [1, 2, 8, 4],
    "resize_mode": "LINEAR",
    "coordinate_transformation": "HALF_PIXEL",
    "selector_for_single_pixel": "FORMULA",
    "nearest_rounding": "FLOOR",
    "exclude_outside": False,
    "cubic_coeff": -0.75,
}
WINDOW = {"padding_mode": "EXPLICIT_ROUND_DOWN", "pre_padding": [1, 0], "post_padding": [0, 2], "stride_nd": [2, 1]}
CONVOLUTION = {**WINDOW, "num_output_maps": 4, "kernel_size_nd": [3, 3], "num_groups": 1, "dilation_nd": [1, 1]}
POOLING = {
    **WINDOW,
    "pre_padding": [1, 1],
    "post_padding": [1, 1],
    "stride_nd": [2, 2],
    "window_size_nd": [3, 3],
    "type": "AVERAGE",
    "average_count_excludes_padding": True,
}
SLICE = {"start": [0, 1], "shape": [2, 4], "stride": [1, 1], "mode": "FILL", "axes": None}
SHUFFLE = {
    "first_transpose": [1, 0, 2, 3, 4, 5, 6, 7],
    "reshape_dims": [3, -1],
    "second_transpose": [1, 0, 2, 3, 4, 5, 6, 7],
    "zero_is_placeholder": True,
}
NORMALIZATION = {"axes": 4, "epsilon": 1e-5, "num_groups": 1}
TURNED = numbers(2, 4, 3, 3)
INDEX = places(3, 3, below=3)

READINGS = [
    # kind, attributes, inputs, what torch computes, misreadings: attributes that are read otherwise
    (
        "GRID_SAMPLE",
        SAMPLE,
        [IMAGE, GRID],
        [F.grid_sample(IMAGE, GRID, align_corners=False)],
        [
            {"interpolation_mode": "NEAREST"},  # NVIDIA/TensorRT#4646
            {"interpolation_mode": "CUBIC"},
            {"align_corners": True},
            {"sample_mode": "CLAMP"},
            {"sample_mode": "REFLECT"},
        ],
    ),
    (
        "RESIZE",
        RESIZE,
        [IMAGE],
        [F.interpolate(IMAGE, (8, 4), mode="bilinear")],
        [
            {"resize_mode": "NEAREST"},
            {"resize_mode": "CUBIC"},
            {"coordinate_transformation": "ASYMMETRIC"},
            {"coordinate_transformation": "ALIGN_CORNERS"},
            {"shape": [1, 2, 4, 8]},
        ],
    ),
    (
        "RESIZE",
        {**RESIZE, "shape": [1, 2, 1, 7]},
        [IMAGE],
        [F.interpolate(IMAGE, (1, 7), mode="bilinear")],
        [{"selector_for_single_pixel": "UPPER"}],
    ),
    (
        "RESIZE",
        {**RESIZE, "resize_mode": "NEAREST", "coordinate_transformation": "ASYMMETRIC"},
        [IMAGE],
        [F.interpolate(IMAGE, (8, 4), mode="nearest")],
        [{"nearest_rounding": "CEIL"}, {"nearest_rounding": "HALF_DOWN"}, {"coordinate_transformation": "HALF_PIXEL"}],
    ),
    (
        "RESIZE",
        {**RESIZE, "resize_mode": "CUBIC"},
        [IMAGE],
        [F.interpolate(IMAGE, (8, 4), mode="bicubic")],
        [{"cubic_coeff": -0.5}, {"exclude_outside": True}],
    ),
    (
        "CONVOLUTION",
        CONVOLUTION,
        [IMAGE, KERNEL],
        [F.conv2d(F.pad(IMAGE, (0, 2, 1, 0)), KERNEL, stride=(2, 1))],
        [
            {"pre_padding": [0, 2], "post_padding": [1, 0]},
            {"padding_mode": "SAME_UPPER"},
            {"stride_nd": [1, 2]},
            {"dilation_nd": [2, 1]},
            {"num_groups": 2},
        ],
    ),
    (
        "DECONVOLUTION",
        {**CONVOLUTION, "num_output_maps": 2, "stride_nd": [2, 2]},
        [numbers(1, 4, 3, 3), KERNEL],
        [F.conv_transpose2d(numbers(1, 4, 3, 3), KERNEL, stride=2)[:, :, 1:, :-2]],
        [{"pre_padding": [0, 2], "post_padding": [1, 0]}, {"stride_nd": [1, 2]}],
    ),
    (
        "POOLING",
        POOLING,
        [IMAGE],
        [F.avg_pool2d(IMAGE, 3, 2, 1, count_include_pad=False)],
        [
            {"average_count_excludes_padding": False},
            {"type": "MAX"},
            {"padding_mode": "EXPLICIT_ROUND_UP", "pre_padding": [0, 0]},
        ],
    ),
    ("POOLING", {**POOLING, "type": "MAX"}, [IMAGE], [F.max_pool2d(IMAGE, 3, 2, 1)], [{"stride_nd": [2, 1]}]),
    ("SOFTMAX", {"axes": 2}, [SQUARE], [SQUARE.softmax(1)], [{"axes": 1}]),
    (
        "REDUCE",
        {"op": "SUM", "axes": 2, "keep_dims": False},
        [SQUARE],
        [SQUARE.sum(1)],
        [{"axes": 1}, {"op": "AVG"}, {"op": "MAX"}, {"keep_dims": True}],
    ),
    ("TOPK", {"op": "MAX", "k": 2, "axes": 2}, [SQUARE], list(SQUARE.topk(2, 1)), [{"op": "MIN"}, {"axes": 1}]),
    (
        "GATHER",
        {"axis": 1, "mode": "ELEMENT", "num_elementwise_dims": 0},
        [SQUARE, INDEX],
        [SQUARE.gather(1, INDEX)],
        [{"axis": 0}, {"mode": "DEFAULT"}],
    ),
    (
        "SCATTER",
        {"axis": 1, "mode": "ELEMENT"},
        [SQUARE, INDEX[:, :1], numbers(3, 1)],
        [SQUARE.scatter(1, INDEX[:, :1], numbers(3, 1))],
        [{"axis": 0}],
    ),
    (
        "SLICE",
        SLICE,
        [SQUARE],
        [F.pad(SQUARE[:2, 1:], (0, 2))],
        [{"mode": "CLAMP"}, {"mode": "REFLECT"}, {"mode": "WRAP"}, {"start": [1, 1]}, {"stride": [1, 2]}],
    ),
    (
        "SHUFFLE",
        SHUFFLE,
        [CUBE],
        [CUBE.transpose(0, 1).reshape(3, 8).T],
        [{"first_transpose": list(range(8))}, {"second_transpose": list(range(8))}, {"reshape_dims": [-1, 3]}],
    ),
    ("ELEMENTWISE", {"op": "SUB"}, [SQUARE, SQUARE.T], [SQUARE - SQUARE.T], [{"op": "SUM"}, {"op": "DIV"}]),
    (
        "MATRIX_MULTIPLY",
        {"op0": "NONE", "op1": "TRANSPOSE"},
        [SQUARE, INDEX.double()],
        [SQUARE @ INDEX.double().T],
        [{"op1": "NONE"}, {"op0": "TRANSPOSE"}],
    ),
    (
        "ACTIVATION",
        {"type": "GELU_ERF", "alpha": 0.0, "beta": 0.0},
        [SQUARE],
        [F.gelu(SQUARE)],
        [{"type": "GELU_TANH"}],
    ),
    (
        "ACTIVATION",
        {"type": "LEAKY_RELU", "alpha": 0.1, "beta": 0.0},
        [SQUARE],
        [F.leaky_relu(SQUARE, 0.1)],
        [{"alpha": 0.01}],
    ),
    ("UNARY", {"op": "ROUND"}, [SQUARE], [SQUARE.round()], [{"op": "FLOOR"}, {"op": "CEIL"}]),
    (
        "CUMULATIVE",
        {"op": "SUM", "exclusive": False, "reverse": False},
        [SQUARE, torch.tensor(1)],
        [SQUARE.cumsum(1)],
        [{"exclusive": True}, {"reverse": True}],
    ),
    (
        "NORMALIZATION",
        NORMALIZATION,
        [numbers(3, 3, 3), torch.ones(1, 1, 3).double(), torch.zeros(1, 1, 3).double()],
        [F.layer_norm(numbers(3, 3, 3), (3,))],
        [{"axes": 6}, {"epsilon": 1e-2}],
    ),
    (
        "NORMALIZATION",
        {**NORMALIZATION, "axes": 12, "num_groups": 2},
        [TURNED, torch.ones(1, 4, 1, 1).double(), torch.zeros(1, 4, 1, 1).double()],
        [F.group_norm(TURNED, 2)],
        [{"num_groups": 1}, {"num_groups": 4}],
    ),
    ("CONCATENATION", {"axis": 1}, [SQUARE, SQUARE], [torch.cat([SQUARE, SQUARE], 1)], [{"axis": 0}]),
    (
        "EINSUM",
        {"equation": "ij,jk->ik"},
        [SQUARE, INDEX.double()],
        [SQUARE @ INDEX.double()],
        [{"equation": "ij,kj->ik"}],
    ),
    (
        "ONE_HOT",
        {"axis": 1},
        [INDEX, torch.tensor([0.0, 1.0]).double(), torch.tensor(3)],
        [F.one_hot(INDEX, 3).double().movedim(-1, 1)],
        [{"axis": 0}, {"axis": 2}],
    ),
    ("CAST", {"to_type": "INT64"}, [SQUARE], [SQUARE.long()], []),
    (
        "DEQUANTIZE",
        {"axis": 0, "block_shape": {"unreadable": "Could not get block_shape."}},
        [places(3, 3, below=99).to(torch.int8), torch.tensor([0.1, 0.2, 0.3]).double()],
        [places(3, 3, below=99).double() * torch.tensor([[0.1], [0.2], [0.3]]).double()],
        [{"axis": 1}],
    ),
    (
        "DEQUANTIZE",
        {"axis": 1, "block_shape": {"unreadable": "Could not get block_shape."}},
        [places(2, 4, below=99).to(torch.int8), torch.tensor([[0.1, 0.2], [0.3, 0.4]]).double()],
        [places(2, 4, below=99) * torch.tensor([[0.1, 0.1, 0.2, 0.2], [0.3, 0.3, 0.4, 0.4]]).double()],
        [],
    ),
    (
        "QUANTIZE",
        {"axis": 1, "block_shape": {"unreadable": "Could not get block_shape."}},
        [SQUARE, torch.tensor([0.1, 0.2, 0.3]).double()],
        [(SQUARE / torch.tensor([0.1, 0.2, 0.3]).double()).round().to(torch.int8)],
        [{"axis": 0}],
    ),
]
MISREADINGS = [
    pytest.param(kind, attributes, inputs, wanted, planted, id=f"{kind} {planted}")
    for kind, attributes, inputs, wanted, others in READINGS
    for planted in others
]


@pytest.mark.parametrize(
    ("kind", "attributes", "inputs", "wanted"), [pytest.param(*r[:4], id=f"{i} {r[0]}") for i, r in enumerate(READINGS)]
)
def test_a_right_reading_agrees(kind, attributes, inputs, wanted):
    assert agrees(kind, attributes, inputs, wanted)


@pytest.mark.parametrize(("kind", "attributes", "inputs", "wanted", "planted"), MISREADINGS)
def test_a_misreading_is_found(kind, attributes, inputs, wanted, planted):
    assert not agrees(kind, {**attributes, **planted}, inputs, wanted)


def test_at_least_forty_misreadings_are_planted():
    assert len(MISREADINGS) >= 40


def test_a_broadcast_that_tensorrt_does_not_have_is_found():
    """TensorRT adds no axes: (3) beside (3, 3) is a fault, and (3, 1) for (1, 3) another result."""
    row = numbers(3)
    assert not agrees("ELEMENTWISE", {"op": "SUM"}, [SQUARE, row], [SQUARE + row])
    assert agrees("ELEMENTWISE", {"op": "SUM"}, [SQUARE, row[None]], [SQUARE + row])
    assert not agrees("ELEMENTWISE", {"op": "SUM"}, [SQUARE, row[:, None]], [SQUARE + row])


def test_an_input_without_axes_keeps_none():
    scalar = torch.tensor(2.0, dtype=torch.float64)
    assert agrees("ELEMENTWISE", {"op": "PROD"}, [scalar, scalar], [scalar * 2])


def test_scales_that_do_not_fit_are_found():
    scales = torch.tensor([[0.1, 0.2]]).double()
    assert not agrees("DEQUANTIZE", {"axis": 1}, [places(3, 3, below=99).to(torch.int8), scales], [SQUARE])


def test_a_matrix_without_rows_is_multiplied():
    """An expert to which no token goes."""
    ways = {"op0": "NONE", "op1": "NONE"}
    empty, weights = torch.zeros(0, 4, dtype=torch.float64), numbers(4, 3)
    assert agrees("MATRIX_MULTIPLY", ways, [empty, weights], [empty @ weights])
    two, three = empty.reshape(2, 0, 4), numbers(3, 4, 3)
    assert not agrees("MATRIX_MULTIPLY", ways, [two, three], [torch.zeros(2, 0, 3, dtype=torch.float64)])


def test_an_unknown_layer_is_named():
    strange = network("MOE", {}, [SQUARE], [SQUARE])
    assert unknown_kinds(strange) == {"MOE": 1}
    with pytest.raises(NotKnown, match="layer 'node' of kind MOE: what it computes is not known here"):
        run_network(strange, {"x0": SQUARE.numpy()})


@pytest.mark.parametrize(
    ("kind", "attributes", "text"),
    [
        ("ACTIVATION", {"type": "NEW", "alpha": 0.0, "beta": 0.0}, "activation NEW"),
        ("REDUCE", {"op": "NONE", "axes": 1, "keep_dims": True}, "operation NONE"),
        ("RESIZE", {**RESIZE, "shape": None, "scales": [1.0, 0.7]}, "whether size 3 times 0.7"),
        ("CONSTANT", {"shape": [2], "weights": {"unreadable": "bfloat16"}}, "its weights cannot be read"),
        ("FILL", {"operation": "RANDOM_NORMAL"}, "draws numbers"),
    ],
)
def test_what_is_left_open_is_said(kind, attributes, text):
    with pytest.raises(NotKnown, match=text):
        run_network(network(kind, attributes, [SQUARE], [SQUARE]), {"x0": SQUARE.numpy()})


def test_sizes_that_tensorrt_derived_are_compared():
    right = network("UNARY", {"op": "NEG"}, [SQUARE], [SQUARE])
    layer = right.layers[0]
    said = Layer("node", "UNARY", layer.inputs, (Value("y0", "FLOAT", (-1, 4)),), layer.attributes)
    with pytest.raises(NotKnown, match=r"shape \(3, 3\) here, \(-1, 4\) in TensorRT"):
        run_network(Network(right.inputs, right.outputs, (said,)), {"x0": SQUARE.numpy()})


def chain(*layers, inputs, outputs):
    return Network(tuple(inputs), tuple(outputs), tuple(layers))


def number(name, kind="FLOAT"):
    return Value(name, kind, None)


def test_layers_stand_in_any_order_and_two_of_one_name_are_refused():
    x, h, y = number("x"), number("h"), number("y")
    last, first = Layer("b", "UNARY", (h,), (y,), {"op": "EXP"}), Layer("a", "UNARY", (x,), (h,), {"op": "NEG"})
    (found,) = run_network(chain(last, first, inputs=[x], outputs=["y"]), {"x": SQUARE.numpy()})
    assert np.allclose(found, np.exp(-SQUARE.numpy()))
    with pytest.raises(NotKnown, match="two layers make a tensor 'h'"):
        run_network(chain(first, first, inputs=[x], outputs=["h"]), {"x": SQUARE.numpy()})


@pytest.mark.parametrize("flag", [True, False])
def test_a_conditional_takes_one_branch(flag):
    """The other branch, which cannot be computed here, is not touched."""
    x, c, a, b, y = number("x"), number("c", "BOOL"), number("a"), number("b"), number("y")
    bad = Layer("bad", "SHUFFLE", (x,), (b,), {**SHUFFLE, "reshape_dims": [7, 7]})
    layers = (
        Layer("if", "CONDITION", (c,), (), {"conditional": "one"}),
        Layer("good", "UNARY", (x,), (a,), {"op": "NEG"}),
        bad,
        Layer("out", "CONDITIONAL_OUTPUT", (a, b), (y,), {"conditional": "one"}),
    )
    net = chain(*layers, inputs=[x, c], outputs=["y"])
    feeds = {"x": CUBE.numpy(), "c": np.array(flag)}
    if flag:
        assert np.allclose(run_network(net, feeds)[0], -CUBE.numpy())
    else:
        with pytest.raises(NetworkFault, match="'bad'"):
            run_network(net, feeds)


def test_a_loop_runs_round_by_round():
    """The running sum of the rows, and the last of them; a reversed iterator sums from the end."""
    x, n, zero = number("x"), number("n", "INT64"), number("zero")
    for turned in (False, True):
        loop = {"loop": "l"}
        layers = (
            Layer("limit", "TRIP_LIMIT", (n,), (), {**loop, "kind": "COUNT"}),
            Layer("it", "ITERATOR", (x,), (number("row"),), {**loop, "axis": 0, "reverse": turned}),
            Layer("state", "RECURRENCE", (zero, number("next")), (number("sum"),), loop),
            Layer("add", "ELEMENTWISE", (number("sum"), number("row")), (number("next"),), {"op": "SUM"}),
            Layer(
                "all", "LOOP_OUTPUT", (number("next"), n), (number("sums"),), {**loop, "kind": "CONCATENATE", "axis": 0}
            ),
            Layer("end", "LOOP_OUTPUT", (number("sum"),), (number("last"),), {**loop, "kind": "LAST_VALUE", "axis": 0}),
        )
        net = chain(*layers, inputs=[x, n, zero], outputs=["sums", "last"])
        sums, last = run_network(net, {"x": SQUARE.numpy(), "n": np.array(3), "zero": np.zeros(3)})
        wanted = (SQUARE.flip(0) if turned else SQUARE).cumsum(0).numpy()
        assert np.allclose(sums, wanted)
        assert np.allclose(last, wanted[-1])


def test_a_network_is_read_from_its_file(tmp_path):
    tensor = {"name": "y", "type": "FLOAT", "shape": [2]}
    layer = {"name": "c", "kind": "CONSTANT", "inputs": [], "outputs": [tensor]}
    layer["attributes"] = {"shape": [2], "weights": {"array": "w0"}}
    text = json.dumps({"inputs": [], "outputs": ["y"], "layers": [layer]})
    np.savez(tmp_path / "n.npz", network=np.array(text), w0=np.array([1.0, 2.0], np.float32))
    (found,) = run_network(read_network(tmp_path / "n.npz"), {})
    assert found.tolist() == [1.0, 2.0]
