"""The parts of precision=Int8: the model of pairs, ranges, which nodes are chosen, losses, calibration inputs."""

from contextlib import ExitStack

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from int8_models import Net, images

from torch_onnx_compat import CompatError, Int8, export_compat
from torch_onnx_compat.precision.int8.layers import Quantizable
from torch_onnx_compat.precision.int8.loss import disagreement, loss_of, relative_distance
from torch_onnx_compat.precision.int8.pair_model import PairModel
from torch_onnx_compat.precision.int8.writer import ENTROPY, METHODS, MIN_MAX, RangeCollector, Writer
from torch_onnx_compat.session import open_session
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.targets.placement import Placement


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    proto = export_compat(Net().eval(), images()[0]).model_proto
    return ir.from_proto(proto)


def ranges_of(graph, feed):
    """Min-max ranges on one input."""
    proto = ir.to_proto(graph.model)
    names = [v.name for v in graph.tensors() if not v.is_graph_input()]
    there = {v.name for v in proto.graph.output}
    values = {v.name: v for v in proto.graph.value_info}
    proto.graph.output.extend(values[n] for n in names if n not in there)
    session = open_session(proto.SerializeToString())
    found = dict(zip(names, session.run(names, feed), strict=True)) | feed
    return {name: (float(a.min()), float(a.max())) for name, a in found.items()}


@pytest.mark.parametrize("target", ["onnxruntime", "tensorrt-11"])
def test_the_model_of_pairs_is_the_file(network, target, tmp_path):
    """With all switches on it computes what the file computes literally, with none what float32 computes."""
    graph = Quantizable.of(network, load_target(target).placement)
    feed = {"image": images()[1].numpy()}
    ranges, nodes = ranges_of(graph, feed), [node.name for node in graph.chosen()]
    writer = Writer(graph.proto, graph.placement)
    with ExitStack() as stack:
        model = PairModel.open(stack, writer, ranges, nodes)
        all_on, none_on = model.run_all(feed)[0], model.run(feed, ())[0]
        one_on = model.run(feed, model.of_node[nodes[0]])[0]
    literally = onnxruntime.SessionOptions()
    literally.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    file = ir.to_proto(writer.write(ranges, nodes)).SerializeToString()
    found = open_session(file, sess_options=literally).run(None, feed)[0]
    plain = open_session(graph.proto.SerializeToString(), sess_options=literally).run(None, feed)[0]
    np.testing.assert_allclose(all_on, found, rtol=1e-4, atol=1e-4)  # the file's biases are in int32
    np.testing.assert_array_equal(none_on, plain)
    assert 1e-4 < np.abs(one_on - plain).max() <= 1.5 * np.abs(all_on - plain).max()


def test_other_ranges_change_the_model_of_pairs(network):
    graph = Quantizable.of(network, Placement())
    feed = {"image": images()[1].numpy()}
    ranges, nodes = ranges_of(graph, feed), [node.name for node in graph.chosen()]
    with ExitStack() as stack:
        model = PairModel.open(stack, Writer(graph.proto, graph.placement), ranges, nodes)
        before = model.errors(feed)
        model.use({name: (8 * low, 8 * high) for name, (low, high) in ranges.items()})
        after = model.errors(feed)
    noise, signal = before["image"]
    assert 0 < noise < 1e-3 * signal
    assert after["image"][0] == pytest.approx(64 * noise, rel=0.5)


def test_light_nodes_are_chosen_only_between_values_in_eight_bits(network):
    graph = Quantizable.of(network, Placement())
    chosen = {node.op_type for node in graph.chosen()}
    assert {"Conv", "Relu", "Add"} <= chosen
    convs = {node.name for node in network.graph if node.op_type == "Conv"}
    assert {node.op_type for node in graph.chosen(convs)} == {"Gemm"}
    without = Quantizable.of(network, Placement(float_results=("Conv",)))
    assert {node.op_type for node in without.chosen()} == {"Conv", "Gemm"}
    assert not Quantizable.of(network, Placement(), keep=["Conv", "Gemm"]).chosen()


def test_the_network_stays_as_it_is(network):
    before = ir.to_proto(network).SerializeToString()
    graph = Quantizable.of(network, Placement())
    Writer(graph.proto, graph.placement).write({}, [])
    assert ir.to_proto(network).SerializeToString() == before


def test_each_method_has_its_range(capsys):
    generator = np.random.default_rng(0)
    values = generator.normal(size=(2, 20000)).astype(np.float32)
    values[1, 0] = 100.0
    collector = RangeCollector()
    for row in values:
        collector.add({"x": row})
    found = {method: limits["x"] for method, limits in collector.ranges().items()}
    assert set(found) == set(METHODS)
    assert found[MIN_MAX] == (values.min(), 100.0)
    assert found["99 %"][1] == pytest.approx(2.6, abs=0.3)
    assert found["99 %"][1] < found["99.9 %"][1] < found[MIN_MAX][1]
    assert found[ENTROPY][1] < 100.0
    assert capsys.readouterr().out == ""


def test_losses():
    wanted = [[np.array([[3.0, 4.0]], np.float32)], [np.array([[0.0, 5.0]], np.float32)]]
    found = [[np.array([[3.0, 4.0]], np.float32)], [np.array([[5.0, 0.0]], np.float32)]]
    assert relative_distance(found, wanted) == pytest.approx(1.0)
    assert disagreement(found, wanted) == 0.5
    assert relative_distance([[np.array([1, 2])]], [[np.array([1, 3])]]) == 0.5
    assert relative_distance([[np.ones(2, np.float32)]], [[np.ones(3, np.float32)]]) == float("inf")
    assert relative_distance([[np.array([np.nan], np.float32)]], [[np.ones(1, np.float32)]]) == float("inf")
    assert relative_distance([[np.array([1.0], np.float32)]], [[np.array([np.inf], np.float32)]]) == 0
    with pytest.raises(CompatError, match="wanted scores of classes"):
        loss_of(Int8(metric="top1"))([[np.ones(3, np.float32)]], [[np.ones(3, np.float32)]])
    assert loss_of(Int8(metric=lambda outputs, wanted: torch.tensor(float("nan"))))(found, wanted) == float("inf")


def test_a_profile_keeps_its_placement(tmp_path):
    from torch_onnx_compat.targets.profile import to_toml

    for name in ("onnxruntime", "tensorrt-11", "ncnn"):
        path = tmp_path / f"{name}.toml"
        path.write_text(to_toml(load_target(name)))
        assert load_target(path).placement == load_target(name).placement
    assert load_target("onnxruntime").placement.float_results == ("Gemm", "MatMul")


@pytest.mark.parametrize(
    "line", ['colour = "red"', "kernels = 3", 'activations = "int4"', "weight_bits = 4", "symmetric = 1"]
)
def test_a_wrong_placement_is_refused(tmp_path, line):
    path = tmp_path / "board.toml"
    path.write_text(f'name = "board"\nopset = 13\nopsets = [11, 17]\n\n[quantization]\n{line}\n')
    with pytest.raises(CompatError, match="quantization"):
        load_target(path)
