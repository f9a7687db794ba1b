"""What shadows find: nodes that lose much by themselves, in bodies of loops too, and how islands end that."""

import io

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import TensorProto, helper

from torch_onnx_compat import Bfloat16, CompatError, Float16, export_compat
from torch_onnx_compat.graph.rendering import render
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.graph.stream import write_model
from torch_onnx_compat.precision.instrument import Island
from torch_onnx_compat.precision.layout import Layout
from torch_onnx_compat.precision.measure import measure_islands, measure_nodes
from torch_onnx_compat.precision.plan import ISLAND, make_plan
from torch_onnx_compat.session import open_session


def model_of(nodes, inputs=("x",), outputs=("y",), opset=17):
    """A graph of float32 vectors."""
    values = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None]) for n in names] for names in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "graph", *values)
    model = ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8))
    infer_model(model)
    return model


def constant(name, number):
    return helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.FLOAT, [], [number]))


def numbers(low=0.0, high=1.0, count=64):
    return {"x": torch.linspace(low, high, count).numpy()}


def losses(model, feeds, half=None):
    found = measure_nodes(model, half or Float16(), [feeds])
    nodes = Layout.of(model).nodes
    return {node.op_type: (found.of("loss", n), found.of("made", n)) for n, node in enumerate(nodes)}


def test_a_sine_of_large_angles_loses_everything_and_a_sum_nothing():
    nodes = [constant("c", 1.0), helper.make_node("Add", ["x", "c"], ["s"]), helper.make_node("Sin", ["s"], ["y"])]
    found = losses(model_of(nodes), numbers(0, 4000))
    assert found["Sin"][0] > 0.5
    assert found["Add"][0] < 2 * Float16().unit


def test_bfloat16_loses_at_smaller_angles():
    model = model_of([helper.make_node("Sin", ["x"], ["y"])])
    assert losses(model, numbers(0, 20))["Sin"][0] < 0.02
    assert losses(model, numbers(0, 20), Bfloat16())["Sin"][0] > 0.02


def test_an_overflow_is_seen_where_it_happens():
    nodes = [helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Sqrt", ["s"], ["y"])]
    found = losses(model_of(nodes), numbers(0, 1000))
    assert found["Mul"][1] > 65504
    assert found["Sqrt"][0] > 0.1  # on what the format makes of its input


def test_a_mask_of_the_most_negative_number_is_no_loss():
    nodes = [
        constant("c", -3e38),
        helper.make_node("Add", ["x", "c"], ["s"]),
        helper.make_node("Max", ["s", "x"], ["y"]),
    ]
    found = losses(model_of(nodes), numbers())
    assert found["Add"][0] == 0.0
    assert found["Max"][0] < 2 * Float16().unit


@pytest.mark.parametrize("rounds", [0, 3])
def test_the_body_of_a_loop_is_measured(rounds):
    body = helper.make_graph(
        [
            helper.make_node("Sin", ["v"], ["w"]),
            constant("c", 1000.0),
            helper.make_node("Mul", ["w", "c"], ["u"]),
            helper.make_node("Identity", ["k"], ["l"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("k", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [None]),
        ],
        [
            helper.make_tensor_value_info("l", TensorProto.BOOL, []),
            helper.make_tensor_value_info("u", TensorProto.FLOAT, [None]),
        ],
    )
    count = helper.make_node("Constant", [], ["n"], value=helper.make_tensor("n", TensorProto.INT64, [], [rounds]))
    yes = helper.make_node("Constant", [], ["t"], value=helper.make_tensor("t", TensorProto.BOOL, [], [True]))
    model = model_of([count, yes, helper.make_node("Loop", ["n", "t", "x"], ["y"], body=body)])
    loss = losses(model, numbers())["Sin"][0]
    assert loss > 0.1 if rounds else loss == 0.0


def test_an_island_reaches_up_to_what_is_exact():
    nodes = [constant("c", 1.7), helper.make_node("Mul", ["x", "c"], ["s"]), helper.make_node("Sin", ["s"], ["y"])]
    model = model_of(nodes)
    whole = {"x": torch.arange(0, 2000, 7).float().numpy()}  # exact in float16
    alone, both = (Island(frozenset(members), frozenset([2])) for members in ([2], [1, 2]))
    losses = measure_islands(model, Float16(), [whole], [alone, both])
    assert losses[0] > 0.1
    assert losses[1] == 0.0


def test_the_plan_keeps_the_island_and_nothing_else():
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        constant("c", 300.0),
        helper.make_node("Mul", ["x", "c"], ["s"]),
        helper.make_node("Sin", ["s"], ["y"]),
        helper.make_node("Relu", ["e"], ["r"]),
        helper.make_node("Tanh", ["r"], ["z"]),
    ]
    model = model_of(nodes, outputs=("y", "z"))
    feeds = [numbers()]
    layout = Layout.of(model)
    plan = make_plan(
        layout,
        Float16(),
        measure_nodes(model, Float16(), feeds),
        0.01,
        lambda i: measure_islands(model, Float16(), feeds, i),
    )
    kept = {layout.nodes[n].op_type: reason.text for n, reason in plan.kept.items()}
    assert "by itself" in kept["Sin"]
    assert kept["Mul"] == ISLAND
    assert not kept.keys() & {"Exp", "Relu", "Tanh"}
    onnx.checker.check_model(ir.to_proto(model))  # measuring changes nothing


class SumOverTime(torch.nn.Module):
    def forward(self, x):
        y = x.relu().sum(1) * 20
        return y / (y.square().mean(-1, keepdim=True) + 1e-3).sqrt()


class SumOverPixels(torch.nn.Module):
    def forward(self, x):
        return x.relu().sum((2, 3)) / (x.shape[2] * x.shape[3])


@pytest.mark.one_exporter
@pytest.mark.parametrize(
    ("model", "example", "axes", "sizes"),
    [
        (SumOverTime, (2, 6, 8), {1: ("time", 1, 6000)}, [(2, 6000, 8), (2, 60, 8), (2, 1, 8)]),
        (SumOverPixels, (1, 2, 4, 6), {2: ("height", 1, 700), 3: ("width", 1, 600)}, [(1, 2, 700, 600), (1, 2, 4, 6)]),
    ],
)
def test_what_grows_with_an_axis_is_reckoned_up_to_its_declared_bound(model, example, axes, sizes, exporter):
    torch.manual_seed(0)
    result = export_compat(model(), torch.randn(example), dynamic={"x": axes}, exporter=exporter, precision="float16")
    assert any(row.why.startswith(("values up to", "adds up to")) for row in result.precision.kept)
    buffer = io.BytesIO()
    write_model(render(ir.from_proto(result.model_proto)), buffer)
    for session in (result.session(), open_session(buffer.getvalue())):
        for size in sizes:
            x = torch.randn(size)
            found = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
            np.testing.assert_allclose(found, model()(x).numpy(), 2e-2, 2e-3)


def test_an_opset_without_the_operators_that_measure_is_refused():
    model = model_of([helper.make_node("Sqrt", ["x"], ["y"])], opset=9)
    with pytest.raises(CompatError, match="measured from opset 11 on, and the file has opset 9; convert it"):
        measure_nodes(model, Float16(), [{"x": np.ones(2, np.float32)}])
