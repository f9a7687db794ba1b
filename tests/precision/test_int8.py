"""precision=Int8(...): what is quantized, judged, kept and refused, and what the result tells."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from int8_models import Net, images
from torch import nn

from torch_onnx_compat import CompatError, Int8, export_compat
from torch_onnx_compat.errors import ArgumentError


class Poisoned(nn.Module):
    """The layer `wild` reads a tensor in which one channel is a thousand times the others, and undoes it."""

    def __init__(self):
        super().__init__()
        self.first, self.wild, self.last = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 4)
        with torch.no_grad():
            self.first.weight[0] *= 1e4
            self.wild.weight[:, 0] *= 1e-4

    def forward(self, x):
        return self.last(self.wild(self.first(x)).tanh())


class Flow(nn.Module):
    """A layer before, one in and one after a loop of the file."""

    def __init__(self):
        super().__init__()
        self.before, self.inside, self.after = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.before(x).relu()
        y = x
        for _ in range(int(x.shape[0])):
            y = torch.tanh(self.inside(y)) + x
        return self.after(y)


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().eval()


def vectors(count=8, width=16):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(8, width, generator=generator) for _ in range(count)]


def kinds(result):
    return {node.op_type for node in result.model_proto.graph.node}


def weights(result):
    """By name, the types of the weights."""
    return {t.name: t.data_type for t in result.model_proto.graph.initializer if len(t.dims) > 1}


def test_a_network_of_convolutions(net, exporter):
    result = export_compat(net, images()[0], dynamic="batch", exporter=exporter, precision=Int8(images()))
    told = result.precision
    assert told.is_proven
    assert told.final.worst <= told.limit == 0.1
    assert not told.kept
    assert {"Conv", "Add", "Gemm"} <= {layer.op_type for layer in told.layers}
    assert {"QuantizeLinear", "DequantizeLinear"} <= kinds(result)
    assert set(weights(result).values()) == {onnx.TensorProto.INT8}
    onnx.checker.check_model(result.model_proto, full_check=True)


def test_the_file_computes_what_is_told(net):
    """The distance is measured again on the inputs that were held out, and differs from float32's."""
    data = images()
    told = export_compat(net, data[0], dynamic="batch", precision=Int8(data)).precision
    result = export_compat(net, data[0], dynamic="batch", precision=Int8(data))
    held_out = data[1::2]
    with torch.no_grad():
        wanted = torch.cat([net(x) for x in held_out])
    found = torch.cat([result(x)[0] for x in held_out])
    distance = ((found - wanted).square().sum() / wanted.square().sum()).sqrt().item()
    assert told.distance == pytest.approx(distance, rel=1e-2)
    assert told.distance > 100 * told.float32_loss
    assert told.judged_on == 4


def test_another_batch_and_other_sizes_run(net):
    result = export_compat(
        net, images()[0], dynamic={"image": {0: "batch", 2: "height", 3: "width"}}, precision=Int8(images())
    )
    image = torch.rand(3, 3, 17, 9)
    assert (result(image)[0] - net(image)).norm() / net(image).norm() < 0.15


def test_weights_have_a_scale_for_each_channel(net):
    proto = export_compat(net, images()[0], precision=Int8(images())).model_proto
    shapes = {t.name: list(t.dims) for t in proto.graph.initializer}
    of_weights = [n for n in proto.graph.node if n.op_type == "DequantizeLinear" and n.input[0] in shapes]
    assert sorted(shapes[n.input[1]] for n in of_weights if len(shapes[n.input[0]]) > 1) == [[5], [8], [8], [8]]


def test_the_layer_that_loses_stays_in_float32(exporter):
    torch.manual_seed(0)
    model, data = Poisoned().eval(), vectors()
    told = export_compat(model, data[0], dynamic="batch", exporter=exporter, precision=Int8(data, limit=0.05)).precision
    assert ["wild" in layer.place for layer in told.kept] == [True]
    assert told.layers[0] == told.kept[0]
    assert told.layers[0].effect > 10 * told.layers[1].effect
    first = max(told.trials, key=lambda trial: -trial.kept)
    assert first.kept == 0
    assert first.worst > told.limit >= told.final.worst


def test_a_limit_that_nothing_holds_leaves_float32(net):
    result = export_compat(net, images()[0], precision=Int8(images(), limit=1e-5))
    assert "QuantizeLinear" not in kinds(result)
    assert "nothing is in int8" in result.precision.notes[0]
    assert str(result.precision).startswith("int8: no layer; the file is in float32\n")
    assert result.precision.final.worst <= 1e-5


@pytest.mark.parametrize("keep", ["head", "Gemm"])
def test_what_the_caller_keeps(net, exporter, keep):
    told = export_compat(net, images()[0], exporter=exporter, precision=Int8(images(), keep=[keep])).precision
    assert [(layer.op_type, layer.why) for layer in told.kept] == [("Gemm", "keep")]


def test_one_input_proves_nothing(net):
    told = export_compat(net, images()[0], precision="int8").precision
    assert not told.is_proven
    assert "not proven" in str(told)
    told = export_compat(net, images()[0], precision=Int8(), samples=images(3, seed=1)).precision
    assert told.is_proven
    assert (told.calibrated_on, told.judged_on) == (2, 2)


class Attend(nn.Module):
    """Scores (N, T, T) that a softmax spreads: at one length they are small, at another they are not."""

    def __init__(self):
        super().__init__()
        self.query, self.value = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return (self.query(x) @ x.transpose(1, 2)).softmax(-1) @ self.value(x)


def rows(*lengths):
    """Twenty calibration inputs, of which each length is held out as well."""
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(2, lengths[n // 2 % len(lengths)], 8, generator=generator) for n in range(20)]


def test_other_sizes_are_judged_too():
    torch.manual_seed(0)
    model, axes = Attend().eval(), {"x": {0: "b", 1: "t"}}
    told = export_compat(model, rows(8)[:1], dynamic=axes, precision=Int8(calibration=rows(8))).precision
    assert told.verdict.endswith("not calibrated with, of b=2, t=8")
    assert {(found.axis, found.size) for found in told.elsewhere if found.is_over} >= {("t", 1), ("t", 2)}
    assert sum("over the limit at other sizes" in note and "at t=2" in note for note in told.notes) == 1
    assert [row["size"] for row in told.to_dict()["elsewhere"] if row["axis"] == "t"] == [1, 2, 4, 16]


def test_calibration_inputs_of_several_sizes_fit_them():
    torch.manual_seed(0)
    data = rows(1, 2, 4, 8, 16)
    told = export_compat(
        Attend().eval(), data[-1:], dynamic={"x": {1: "t"}}, precision=Int8(calibration=data)
    ).precision
    assert told.verdict.endswith("of t=1, 2, 4, 8 or 16")
    assert not any(found.is_over for found in told.elsewhere)
    assert not any("other sizes" in note for note in told.notes)


def test_sizes_that_the_original_refuses_are_left_out():
    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(8, 4)

        def forward(self, x):
            if x.shape[0] < 3:
                raise ValueError("too few")
            return self.head(x)

    data = [torch.rand(6, 8) for _ in range(4)]
    told = export_compat(Halves().eval(), data[:1], dynamic="batch", precision=Int8(calibration=data)).precision
    assert [found.size for found in told.elsewhere] == [3, 12]


def test_inputs_come_in_every_form(net):
    given = images()
    forms = [
        iter(given),
        [(x,) for x in given],
        [{"image": x} for x in given],
        torch.utils.data.DataLoader(torch.cat(given), batch_size=4),
    ]
    losses = [export_compat(net, given[0], precision=Int8(form)).precision.final for form in forms]
    assert len(set(losses)) == 1


def test_a_loader_is_read_up_to_a_number(net):
    told = export_compat(net, images()[0], precision=Int8((x for x in images(40)), at_most=6)).precision
    assert told.calibrated_on + told.judged_on == 6


def test_a_metric_of_the_callers(net):
    calls = []

    def metric(outputs, wanted):
        calls.append((type(outputs), outputs[0].dtype, outputs[0].shape == wanted[0].shape))
        return (outputs[0] - wanted[0]).abs().max()

    told = export_compat(net, images()[0], precision=Int8(images(), metric=metric, limit=0.2)).precision
    assert set(calls) == {(tuple, torch.float32, True)}
    assert 0 < told.final.loss <= 0.2
    assert told.metric == "the caller's metric"


def test_top1(net):
    told = export_compat(net, images()[0], precision=Int8(images(), metric="top1", limit=0.1)).precision
    assert told.final.loss == pytest.approx(1 - told.agreement)
    assert told.metric == "top-1 disagreement"


@pytest.mark.dynamo_from("2.9", "scan is not exported")
def test_a_loop_stays_in_float32(exporter):
    torch.manual_seed(0)
    model, data = Flow().eval(), vectors(width=8)
    result = export_compat(model, data[0], dynamic="batch", exporter=exporter, precision=Int8(data))
    assert {"Loop", "Scan"} & kinds(result)
    assert len(result.precision.layers) == 2
    assert any("in branches, loops and functions stay in float32" in note for note in result.precision.notes)
    for x in (data[1], torch.randn(3, 8)):
        assert (result(x)[0] - model(x)).norm() / model(x).norm() < 0.1


def test_weights_that_two_layers_share():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(16, 16)

        def forward(self, x):
            return self.layer(self.layer(x).relu())

    torch.manual_seed(0)
    result = export_compat(Tied().eval(), vectors()[0], precision=Int8(vectors()))
    assert list(weights(result).values()).count(onnx.TensorProto.INT8) == 1
    assert len(result.precision.layers) == 2


def test_a_recurrent_layer_has_no_static_form():
    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 3)

        def forward(self, x):
            return self.head(self.rnn(x)[0][:, -1])

    torch.manual_seed(0)
    data = [torch.randn(4, 5, 8) for _ in range(4)]
    told = export_compat(Sequence().eval(), data[0], precision=Int8(data)).precision
    assert any("1 GRU have no static form" in note for note in told.notes)


@pytest.mark.parametrize("target", ["tensorrt-10", "tensorrt-rtx"])
def test_the_placement_is_the_targets(net, target):
    """TensorRT: zero points of 0, int8, biases and results in float32."""
    proto = export_compat(net, images()[0], target=target, precision=Int8(images())).model_proto
    tensors = {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer}
    zero_points = [tensors[n.input[2]] for n in proto.graph.node if n.op_type == "QuantizeLinear"]
    assert zero_points
    assert all(z.dtype == np.int8 and not z.any() for z in zero_points)
    assert not any(array.dtype == np.int32 for array in tensors.values())
    made_by = {name: n.op_type for n in proto.graph.node for name in n.output}
    assert not {made_by.get(n.input[0]) for n in proto.graph.node if n.op_type == "QuantizeLinear"} & {"Conv", "Gemm"}


def test_a_target_without_a_placement_is_refused(net):
    with pytest.raises(ArgumentError, match=r"'ncnn' has no table \[quantization\]"):
        export_compat(net, images()[0], target="ncnn", precision=Int8(images()))


def test_an_opset_without_an_axis_is_refused(net):
    with pytest.raises(CompatError, match="needs opset 13 or later, not 12"):
        export_compat(net, images()[0], opset_version=12, precision=Int8(images()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"calibration": torch.rand(4, 3, 12, 12)}, r"pass x\.split"),
        ({"calibration": 3}, "wanted a list or another iterable"),
        ({"metric": "top5"}, "wanted 'top1'"),
        ({"limit": 0}, "wanted a number above 0"),
        ({"limit": True}, "wanted a number above 0"),
        ({"keep": "head"}, "wanted a list"),
        ({"at_most": 0}, "wanted a whole number"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(CompatError, match=message):
        Int8(**arguments)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "is empty"),
        ([(torch.rand(4, 3, 12, 12), torch.zeros(4))] * 2, "of a loader that yields labels"),
        ([torch.rand(5, 3, 12, 12)] * 2, "input 0: image is float32 \\(5, 3, 12, 12\\)"),
        ([torch.rand(4, 3, 12, 12).double()] * 2, "image is float64"),
    ],
)
def test_calibration_inputs_that_do_not_fit(net, data, message):
    with pytest.raises(CompatError, match=message):
        export_compat(net, images()[0], precision=Int8(data))


def test_a_metric_that_fails(net):
    with pytest.raises(CompatError, match="fails on held-out input 0: KeyError"):
        export_compat(net, images()[0], precision=Int8(images(), metric=lambda outputs, wanted: {}["loss"]))


def test_nothing_of_the_callers_changes(net, tmp_path):
    import logging

    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    data = images()
    copies, handlers = [x.clone() for x in data], list(logging.getLogger().handlers)
    path = tmp_path / "net.onnx"
    path.write_bytes(b"old")
    with pytest.raises(CompatError):
        export_compat(net, data[0], str(path), precision=Int8(data, metric=lambda outputs, wanted: None))
    assert path.read_bytes() == b"old"
    export_compat(net, data[0], str(path), precision=Int8(data))
    assert all(torch.equal(a, b) for a, b in zip(data, copies, strict=True))
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert logging.getLogger().handlers == handlers
    assert [p.name for p in tmp_path.iterdir()] == ["net.onnx"]


def test_the_result_is_plain_data(net, tmp_path, capsys):
    result = export_compat(net, images()[0], precision=Int8(images()))
    assert capsys.readouterr().out == ""
    told = json.loads(json.dumps(result.to_dict()))["precision"]
    assert told["format"] == "int8"
    assert len(told["layers"]) == len(result.precision.layers)
    assert "layers" in str(result)
    page = result.report(tmp_path / "report.md").read_text()
    assert "## Layers in eight bits" in page
    assert "## Loss in eight bits" in page


def test_stages_that_were_cut_off(net):
    class Prepared(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, image):
            return self.net((image - 0.5) / 0.25).softmax(-1)

    data = images()
    result = export_compat(Prepared(net).eval(), data[0], postprocess="strip", precision=Int8(data))
    assert result.postprocess is not None
    assert result.precision.is_proven


def test_external_data(net, tmp_path):
    path = tmp_path / "net.onnx"
    export_compat(net, images()[0], str(path), precision=Int8(images()), external_data=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert session.run(None, {"image": images()[0].numpy()})[0].shape == (4, 5)


class Heads(nn.Module):
    """Products of tensors whose ranks onnx does not find once the quantiser has written the file."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x, padding):
        return self.attention(x, x, x, key_padding_mask=padding)[0]


def test_a_target_that_asks_for_ranks_finds_them_in_a_quantized_file():
    torch.manual_seed(0)
    padding = torch.zeros(2, 6).bool()
    batches = [(torch.randn(2, 6, 16), padding) for _ in range(6)]
    axes = {"x": {0: "n", 1: "s"}, "padding": {0: "n", 1: "s"}}
    asked = Int8(calibration=batches, limit=0.5)
    result = export_compat(Heads().eval(), batches[0], dynamic=axes, target="opencv", precision=asked)
    assert result.nodes["QuantizeLinear"] > 0
