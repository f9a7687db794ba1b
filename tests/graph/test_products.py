"""Products behind a Transpose: onnxruntime opens the file, and computes what it said."""

import itertools
import platform
import subprocess
import sys

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.graph.tidy.products import turn_products
from torch_onnx_compat.session import open_session

SIZES = (2, 3, 5, 4)
MOVED = [(1, 0, 2), (1, 2, 0), (1, 2, 0, 3), (1, 2, 3, 0)]
STAYS = [(0, 2, 1), (2, 0, 1), (0, 2, 1, 3)]


def product(perm, *, is_left=True, cast=False, inside=False):
    """x, turned, by a constant matrix; perhaps cast to float32 between, perhaps in a branch."""
    shape = SIZES[-len(perm) :]
    turned = [shape[axis] for axis in perm]
    kind, array = (TensorProto.FLOAT, np.float32) if cast else (TensorProto.FLOAT16, np.float16)
    size = (turned[-1], 6) if is_left else (6, turned[-2])
    weight = numpy_helper.from_array(np.random.default_rng(0).standard_normal(size).astype(array), "w")
    factors = ["c" if cast else "t", "w"]
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=perm)]
    nodes += [helper.make_node("Cast", ["t"], ["c"], to=TensorProto.FLOAT)] if cast else []
    nodes += [helper.make_node("MatMul", factors if is_left else factors[::-1], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT16, shape)
    y = helper.make_tensor_value_info("y", kind, None)
    if inside:
        flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
        bodies = [helper.make_graph(nodes, f"body{number}", [], [y]) for number in range(2)]
        branch = helper.make_node("If", ["flag"], ["z"], then_branch=bodies[0], else_branch=bodies[1])
        graph = helper.make_graph([branch], "g", [x, flag], [helper.make_tensor_value_info("z", kind, None)], [weight])
    else:
        graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(proto, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    feeds = {"x": np.random.default_rng(1).standard_normal(SIZES).astype(np.float16)}
    names = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim] for value in proto.graph.input}
    feeds["x"] = feeds["x"].reshape(-1)[: int(np.prod(names["x"]))].reshape(names["x"])
    if "flag" in names:
        feeds["flag"] = np.array(True)
    return open_session(proto.SerializeToString(), sess_options=options).run(None, feeds)[0]


ALL, OFF = (
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
)


@pytest.mark.parametrize("perm", MOVED)
@pytest.mark.parametrize(("is_left", "cast", "inside"), list(itertools.product([True, False], repeat=3)))
def test_what_ends_the_process_is_written_otherwise(perm, is_left, cast, inside):
    proto = product(perm, is_left=is_left, cast=cast, inside=inside)
    model = ir.from_proto(proto)
    assert turn_products(model) == (2 if inside else 1)
    turned = ir.to_proto(model)
    onnx.checker.check_model(turned)
    found, wanted = run(turned, ALL), run(proto, OFF)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("perm", STAYS)
def test_other_products_stay(perm):
    proto = product(perm)
    model = ir.from_proto(proto)
    assert turn_products(model) == 0
    np.testing.assert_array_equal(run(ir.to_proto(model), ALL), run(proto, ALL))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="onnxruntime has this optimiser on x86 only")
def test_it_is_still_needed(tmp_path):
    """Fails where onnxruntime opens such a file: then `turn_products` can go."""
    path = tmp_path / "a.onnx"
    onnx.save(product((1, 0, 2)), path)
    program = f"import onnxruntime; onnxruntime.InferenceSession({str(path)!r})"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode < 0


def turned_times_vector(shape, perm, *, cast=False, kind=TensorProto.FLOAT, is_dynamic=True):
    """A matrix that is turned over, or several, times a vector."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"], **({"perm": perm} if perm else {}))]
    nodes += [helper.make_node("Cast", ["t"], ["c"], to=TensorProto.FLOAT)] if cast else []
    nodes += [helper.make_node("MatMul", ["c" if cast else "t", "v"], ["y"])]
    sizes = [f"s{axis}" for axis in range(len(shape))] if is_dynamic else shape
    inner = TensorProto.FLOAT if cast else kind
    x = helper.make_tensor_value_info("x", kind, sizes)
    v = helper.make_tensor_value_info("v", inner, ["n"] if is_dynamic else [shape[-2]])
    graph = helper.make_graph(nodes, "g", [x, v], [helper.make_tensor_value_info("y", inner, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


TURNED = [((3, 4), [1, 0]), ((3, 4), None), ((2, 3, 4), [0, 2, 1]), ((2, 5, 3, 4), [0, 1, 3, 2])]
KINDS = {TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64, TensorProto.FLOAT16: np.float16}


def open_plainly(proto):
    """As users open a file."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(("shape", "perm"), TURNED)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("cast", "is_dynamic"), list(itertools.product([True, False], repeat=2)))
def test_a_vector_comes_before_the_matrix_that_is_turned_over(shape, perm, kind, cast, is_dynamic):
    proto = turned_times_vector(shape, perm, cast=cast, kind=kind, is_dynamic=is_dynamic)
    model = ir.from_proto(proto)
    assert turn_products(model) == 1
    x = np.random.default_rng(0).standard_normal(shape).astype(KINDS[kind])
    v = np.random.default_rng(1).standard_normal(shape[-2]).astype(np.float32 if cast else KINDS[kind])
    found = open_plainly(ir.to_proto(model)).run(None, {"x": x, "v": v})[0]
    wanted = np.swapaxes(x, -1, -2).astype(v.dtype) @ v
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-2 if kind == TensorProto.FLOAT16 else 1e-5, atol=1e-2)


@pytest.mark.parametrize(("shape", "perm"), [((3, 4, 3), [2, 1, 0]), ((2, 3, 4), [2, 0, 1]), ((3, 2, 4), [1, 0, 2])])
def test_other_matrices_times_a_vector_stay(shape, perm):
    proto = turned_times_vector(shape, perm)
    assert turn_products(ir.from_proto(proto)) == 0


def test_the_vector_still_has_to_come_first():
    """Fails where onnxruntime computes such a product: then that part of `turn_products` can go."""
    x, v = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([1, 2, 3], np.float32)
    found = open_plainly(turned_times_vector((3, 4), [1, 0])).run(None, {"x": x, "v": v})[0]
    assert not np.allclose(found, x.T @ v)


class TurnedTimesVector(nn.Module):
    def forward(self, x, v):
        return x.t() @ v, x.t().mv(v)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_turned_matrix_times_a_vector_is_exported(exporter):
    x, v = torch.randn(3, 4), torch.randn(3)
    dynamic = {"x": {0: "n", 1: "m"}, "v": {0: "n"}}
    result = export_compat(TurnedTimesVector(), (x, v), dynamic=dynamic, exporter=exporter)
    x, v = torch.randn(7, 5), torch.randn(7)
    for found in open_session(result.model_bytes).run(None, {"x": x.numpy(), "v": v.numpy()}):
        np.testing.assert_allclose(found, x.t() @ v, atol=1e-5)


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer, self.head = layer(8, 16, num_layers=2, batch_first=True), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.layer(x)[0])


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN])
def test_recurrent_layers_in_float16(layer):
    model = Recurrent(layer).eval()
    result = export_compat(model, torch.randn(2, 5, 8), dynamic={"x": {0: "n", 1: "s"}}, precision="float16")
    x = torch.randn(3, 9, 8)
    found = open_session(result.model_bytes).run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(found, model(x).detach().numpy(), atol=5e-3)
