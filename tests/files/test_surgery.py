"""Surgery on files: what comes out computes what the original's own values, and what was put around them, say."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from files.faults import deep
from files.file_models import net, write
from torch import nn

from torch_onnx_compat import CompatError, Detections, Normalize
from torch_onnx_compat.errors import UnsupportedError, VerificationError
from torch_onnx_compat.files import convert, oracle, stages, surgery
from torch_onnx_compat.files.runner import Runner

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own exporter

BRANCH = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4] x, bool training) => (float[n, 4] y) {
    h = If (training) <then_branch = t () => (float[n, 4] a) { a = Neg(x) },
                       else_branch = e () => (float[n, 4] b) { b = Relu(x) }>
    y = Add(h, x)
}"""


@pytest.fixture(scope="module")
def runner():
    """One process that runs files for many tests."""
    with Runner() as runner:
        yield runner


@pytest.fixture
def image():
    return np.random.default_rng(1).standard_normal((4, 3, 8, 8)).astype(np.float32)


def values(path, names, **feeds):
    """Values inside a file, by onnxruntime alone."""
    model = onnx.load(path)
    model.graph.output.extend(
        onnx.ValueInfoProto(name=n) for n in names if n not in {o.name for o in model.graph.output}
    )
    return onnxruntime.InferenceSession(model.SerializeToString()).run(list(names), feeds)


def names_of(proto):
    return [v.name for v in proto.graph.input], [v.name for v in proto.graph.output]


# Cutting and names


def test_outputs_inside_and_a_part_between_two_names(tmp_path, image, runner):
    path = net(tmp_path / "a.onnx")
    wanted = values(path, ["relu", "pool", "logits"], image=image)
    more = convert(path, outputs=["logits", "relu"], runner=runner)
    found = more.session().run(None, {"image": image})
    np.testing.assert_allclose(found[0], wanted[2], 1e-5, 1e-6)
    np.testing.assert_allclose(found[1], wanted[0], 1e-5, 1e-6)
    part = convert(path, tmp_path / "b.onnx", start=["relu"], outputs=["pool"], opset=13, runner=runner)
    assert names_of(part.model_proto) == (["relu"], ["pool"])
    np.testing.assert_allclose(part.session().run(None, {"relu": wanted[0]})[0], wanted[1], 1e-5, 1e-6)
    assert part.nodes == {"GlobalAveragePool": 1}
    assert not part.model_proto.graph.initializer
    assert {"random values, after surgery", "given 0"} <= {row.case for row in part.table}


def test_a_part_with_a_connection_around_it(tmp_path, image, runner):
    deep(tmp_path / "a.onnx")
    wanted = values(tmp_path / "a.onnx", ["act2", "sum1", "scores"], image=image)
    part = convert(tmp_path / "a.onnx", start=["act2", "sum1"], outputs=["scores"], runner=runner)
    np.testing.assert_allclose(part.session().run(None, {"act2": wanted[0], "sum1": wanted[1]})[0], wanted[2], 1e-4)
    with pytest.raises(CompatError, match=r"do not follow from act2 alone, but from image, too; name that"):
        convert(tmp_path / "a.onnx", start=["act2"], outputs=["scores"], runner=runner)


def test_a_branch_that_is_cut_off_takes_what_it_captured_along(tmp_path, runner):
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[n, 4] x, bool c) => (float[n, 4] y) {
        k = Exp(x)
        h = If (c) <then_branch = t () => (float[n, 4] a) { a = Neg(k) },
                    else_branch = e () => (float[n, 4] b) { b = Relu(k) }>
        y = Abs(h) }"""
    part = convert(write(tmp_path / "a.onnx", text), start=["h"], runner=runner)
    assert part.nodes == {"Abs": 1}
    assert names_of(part.model_proto) == (["h"], ["y"])


def test_names(tmp_path, image, runner):
    path = net(tmp_path / "a.onnx")
    result = convert(path, rename={"image": "logits", "logits": "image", "conv": "hidden"}, runner=runner)
    assert names_of(result.model_proto) == (["logits"], ["image"])
    assert "hidden" in {name for node in result.model_proto.graph.node for name in node.output}
    np.testing.assert_allclose(
        result.session().run(None, {"logits": image})[0], values(path, ["logits"], image=image)[0], 1e-5, 1e-6
    )


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"outputs": ["rely"]}, "unknown value 'rely'; did you mean 'relu'"),
        ({"outputs": "relu"}, r"outputs='relu' is a str; wanted a list"),
        ({"outputs": []}, "outputs is empty"),
        ({"outputs": ["image"]}, "'image' is an input"),
        ({"outputs": ["relu", "relu"]}, "named twice"),
        ({"start": ["logits"]}, "start and outputs both name 'logits'"),
        ({"start": ["relu", "conv"]}, "do not depend on 'conv'"),
        ({"rename": {"conv": "relu"}}, "'conv' cannot be 'relu'"),
        ({"rename": {"conf": "x"}}, "unknown value 'conf'"),
        ({"rename": {"conv": "x", "relu": "x"}}, "one name"),
        ({"attributes": {"conf": {"pads": [0]}}}, "unknown node 'conf'"),
        ({"attributes": {"conv": {"pad": [0]}}}, "did you mean 'pads'"),
        ({"attributes": {"conv": {"pads": 1.5}}}, "FLOAT; wanted INTS"),
        ({"attributes": {"conv": {"pads": [[1]]}}}, "attributes: pads of 'conv'"),
        ({"constants": {"picture": 1}}, "unknown input 'picture'"),
        ({"constants": {"image": 1}}, r"of shape \(\); the file takes"),
        ({"keep_initializers_as_inputs": ["w"]}, "unknown weight 'w'"),
        ({"start": ["relu"], "preprocess": Normalize()}, "both say what the file takes"),
        ({"preprocess": "cut"}, "unknown preprocess 'cut'"),
        ({"postprocess": Detections("efficient-nms"), "target": "openvino"}, "TensorRT, which openvino lacks"),
        ({"postprocess": Detections(boxes="logit")}, "did you mean 'logits'"),
        ({"preprocess": Normalize(size=(4, 4))}, r"Normalize\(size=\(4, 4\)\), but input 'image'"),
        ({"preprocess": Normalize(fit="letterbox", size=(8, 8))}, "a letterbox needs a picture"),
    ],
)
def test_what_cannot_be_is_one_message(tmp_path, runner, keywords, message):
    with pytest.raises(CompatError, match=message):
        convert(net(tmp_path / "a.onnx"), tmp_path / "b.onnx", runner=runner, **keywords)
    assert {p.name for p in tmp_path.iterdir()} == {"a.onnx"}


def test_values_of_which_one_follows_from_the_other_and_is_not_needed(tmp_path, runner):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[4, 6] x) => (float[2, 6] y) { a, b = Split<axis = 0>(x, s)  c = Neg(a)  y = Add(c, b) }"""
    path = write(tmp_path / "a.onnx", text, s=np.array([2, 2], np.int64))
    with pytest.raises(CompatError, match="do not depend on 'a'"):
        convert(path, start=["a", "b", "c"], runner=runner)
    part = convert(path, start=["b", "c"], runner=runner)
    assert part.nodes == {"Add": 1}


# Attributes, inputs and weights


def test_an_attribute(tmp_path, image, runner):
    path = net(tmp_path / "a.onnx")
    result = convert(path, attributes={"conv": {"pads": [0, 0, 0, 0]}}, opset=21, runner=runner)
    model = onnx.load(path)
    model.graph.node[0].attribute[1].CopyFrom(onnx.helper.make_attribute("pads", [0, 0, 0, 0]))
    assert onnx.helper.get_attribute_value(model.graph.node[0].attribute[1]) == [0, 0, 0, 0]
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"image": image})[0]
    np.testing.assert_allclose(result.session().run(None, {"image": image})[0], wanted, 1e-5, 1e-6)
    assert "pads of conv is [0, 0, 0, 0]" in result.done
    gone = convert(path, attributes={"conv": {"pads": None}}, runner=runner)
    np.testing.assert_allclose(gone.session().run(None, {"image": image})[0], wanted, 1e-5, 1e-6)


def test_weights_as_inputs_and_back(tmp_path, image, runner):
    path = net(tmp_path / "a.onnx")
    result = convert(path, tmp_path / "b.onnx", keep_initializers_as_inputs=["bias"], opset=19, runner=runner)
    assert names_of(result.model_proto)[0] == ["image", "bias"]
    assert "other default inputs" in {row.case for row in result.table}
    bias = np.arange(4, dtype=np.float32)
    model = onnx.load(path)
    next(t for t in model.graph.initializer if t.name == "bias").CopyFrom(onnx.numpy_helper.from_array(bias, "bias"))
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"image": image})[0]
    np.testing.assert_allclose(result.session().run(None, {"image": image, "bias": bias})[0], wanted, 1e-5, 1e-6)
    back = convert(tmp_path / "b.onnx", keep_initializers_as_inputs=False, runner=runner)
    assert names_of(back.model_proto)[0] == ["image"]


def test_an_input_that_becomes_a_weight_resolves_a_branch(tmp_path, runner):
    path = write(tmp_path / "a.onnx", BRANCH)
    result = convert(path, constants={"training": False}, simplify=True, runner=runner)
    assert result.nodes == {"Relu": 1, "Add": 1}
    x = np.array([[-1, 2, -3, 4]], np.float32)
    np.testing.assert_array_equal(result.session().run(None, {"x": x})[0], x + np.maximum(x, 0))
    other = convert(path, constants={"training": True}, simplify=True, runner=runner)
    np.testing.assert_array_equal(other.session().run(None, {"x": x})[0], np.zeros_like(x))


# Pre- and postprocessing


def test_a_normalize_before_a_file(tmp_path, runner):
    path = net(tmp_path / "a.onnx")
    normalize = Normalize([0.4, 0.5, 0.6], 0.2, scale=1 / 255, layout="NHWC", size=(8, 8), bgr=True)
    result = convert(path, preprocess=normalize, opset=13, runner=runner)
    pictures = np.random.default_rng(0).integers(0, 256, (3, 11, 13, 3)).astype(np.uint8)
    prepared = normalize.apply(torch.from_numpy(pictures)).numpy()
    (found,) = result.session().run(None, {"image": pictures})
    np.testing.assert_allclose(found, values(path, ["logits"], image=prepared)[0], 1e-4, 1e-4)
    assert {axis.name for axis in result.axes} == {"n", "height", "width"}


def test_a_letterbox_of_the_size_of_the_given_picture(tmp_path, runner):
    path = net(tmp_path / "a.onnx")
    normalize = Normalize(0.5, 0.2, scale=1 / 255, layout="HWC", size=(8, 8), fit="letterbox")
    picture = np.random.default_rng(0).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    result = convert(path, preprocess=normalize, inputs={"image": picture}, runner=runner)
    prepared = normalize.apply(torch.from_numpy(picture)).numpy()
    (found,) = result.session().run(None, {"image": picture})
    np.testing.assert_allclose(found, values(path, ["logits"], image=prepared)[0], 1e-4, 1e-4)


def test_a_wrong_stage_is_found(tmp_path, monkeypatch, runner):
    """The oracle is eager torch, so a stage that computes otherwise is wrong, whoever made it."""
    real = stages.export_compat
    monkeypatch.setattr(
        stages,
        "export_compat",
        lambda *a, preprocess, **k: real(*a, preprocess=Normalize(0.51, layout=preprocess.layout), **k),
    )
    with pytest.raises(VerificationError, match=r"does not compute what a\.onnx computes"):
        convert(net(tmp_path / "a.onnx"), tmp_path / "b.onnx", preprocess=Normalize(0.5, layout="NHWC"), runner=runner)
    assert not (tmp_path / "b.onnx").exists()


def test_a_cut_at_the_wrong_value_is_found(tmp_path, monkeypatch, runner):
    real = surgery._value
    monkeypatch.setattr(surgery, "_separate", lambda model, found: [real(model, "conv")] if len(found) == 1 else found)
    with pytest.raises(VerificationError):
        convert(net(tmp_path / "a.onnx"), outputs=["relu"], runner=runner)


class Head(nn.Module):
    """Boxes and scores of 64 cells: (N, 4 + 5, 64)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.boxes, self.scores = nn.Conv2d(3, 4, 8, 8), nn.Conv2d(3, 5, 8, 8)

    def forward(self, image):
        boxes = self.boxes(image).flatten(2)
        xy, wh = boxes.split(2, 1)
        corner = torch.arange(boxes.shape[2]) % 8 * 8.0
        return torch.cat([xy + corner, wh.exp() * 16, self.scores(image).flatten(2).sigmoid()], 1)


def export_head(path, batch=True):
    torch.onnx.export(
        Head().eval(),
        (torch.rand(1, 3, 64, 64),),
        str(path),
        dynamo=False,
        opset_version=13,
        input_names=["image"],
        output_names=["found"],
        dynamic_axes={"image": {0: "batch"}} if batch else {},
    )
    return path


@pytest.mark.parametrize("form", ["nms", "nms-dense"])
def test_detections_behind_a_file(tmp_path, form, runner):
    path = export_head(tmp_path / "a.onnx")
    detections = Detections(form, channels_first=True, box_format="cxcywh", score_threshold=0.5, candidates=20)
    result = convert(path, postprocess=detections, runner=runner)
    image = np.random.default_rng(3).random((3, 3, 64, 64)).astype(np.float32)
    (raw,) = values(path, ["found"], image=image)
    wanted, _ = detections.detect(torch.from_numpy(raw))
    assert names_of(result.model_proto)[1] == list(wanted)
    for name, found in zip(wanted, result.session().run(None, {"image": image}), strict=True):
        np.testing.assert_allclose(found, wanted[name].numpy(), 1e-4, 1e-4, err_msg=name)
    assert wanted["count"].min() > 0


@pytest.mark.parametrize("separate", [False, True])
def test_the_operator_of_tensorrt_behind_a_file(tmp_path, separate, runner):
    if separate:
        text = """<ir_version: 8, opset_import: ["": 17]>
        g (float[n, 12, 6] image) => (boxes, scores) { boxes, t = Split<axis = -1>(image, s)  scores = Sigmoid(t) }"""
        path = write(tmp_path / "a.onnx", text, s=np.array([4, 2], np.int64))
        detections = Detections("efficient-nms", scores="scores", max_detections=7, score_threshold=0.4)
        image = np.random.default_rng(0).random((3, 12, 6)).astype(np.float32)
        raw = dict(zip(("boxes", "scores"), values(path, ["boxes", "scores"], image=image), strict=True))
    else:
        path = export_head(tmp_path / "a.onnx")
        detections = Detections("efficient-nms", channels_first=True, box_format="cxcywh", class_aware=False)
        image = np.random.default_rng(3).random((3, 3, 64, 64)).astype(np.float32)
        raw = {"found": values(path, ["found"], image=image)[0]}
    result = convert(path, tmp_path / "b.onnx", postprocess=detections, target="tensorrt-10", runner=runner)
    proto = onnx.load(tmp_path / "b.onnx")
    (node,) = [n for n in proto.graph.node if n.domain == "TRT"]
    names = ["num_detections", "detection_boxes", "detection_scores", "detection_classes"]
    assert (node.op_type, list(node.output), names_of(proto)[1]) == ("EfficientNMS_TRT", names, names)
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert attributes["max_output_boxes"] == detections.max_detections
    assert attributes["class_agnostic"] == int(separate is False)
    shapes = [[d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim] for v in proto.graph.output]
    batch, most = shapes[0][0], detections.max_detections
    assert shapes == [[batch, 1], [batch, most, 4], [batch, most], [batch, most]]
    assert isinstance(batch, str)
    proto.graph.node.remove(node)
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.input)
    found = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"image": image})
    wanted = detections.candidates_of({name: torch.from_numpy(value) for name, value in raw.items()})
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other.numpy(), 1e-4, 1e-4)
    assert "TRT::EfficientNMS_TRT itself was not run" in result.notes[-1]


def test_a_wrong_input_of_the_operator_of_tensorrt_is_found(tmp_path, monkeypatch, runner):
    monkeypatch.setattr(stages._Candidates, "forward", lambda _, value: {"boxes": value[0], "scores": value[1]})
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 12, 6] x) => (boxes, scores) { boxes, t = Split<axis = -1>(x, s)  scores = Sigmoid(t) }"""
    path = write(tmp_path / "a.onnx", text, s=np.array([4, 2], np.int64))
    detections = Detections("efficient-nms", scores="scores", box_format="cxcywh")
    with pytest.raises(VerificationError, match="output 'boxes'"):
        convert(path, tmp_path / "b.onnx", postprocess=detections, runner=runner)
    assert not (tmp_path / "b.onnx").exists()


def test_detections_behind_values_inside_a_file(tmp_path, runner):
    path = export_head(tmp_path / "a.onnx", batch=False)
    model = onnx.load(path)
    raw = next(node.input[0] for node in model.graph.node if "found" in node.output)
    detections = Detections("nms-dense", channels_first=True, box_format="cxcywh", candidates=10)
    with pytest.raises(CompatError, match="boxes of shape"):
        convert(path, outputs=[raw], postprocess=detections, runner=runner)
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2, 12, 6] x) => (float[2, 6] last) {
        boxes, scores = Split<axis = -1>(x, s)  t = Sigmoid(scores)  last = ReduceMax<axes = [1], keepdims = 0>(x)
    }"""
    path = write(tmp_path / "b.onnx", text, s=np.array([4, 2], np.int64))
    wanted = Detections("nms-dense", boxes="boxes", scores="t", score_threshold=0.1, candidates=12)
    result = convert(path, outputs=["boxes", "t"], postprocess=wanted, runner=runner)
    x = np.random.default_rng(0).random((2, 12, 6)).astype(np.float32)
    x[..., 2:4] += 1
    expected, _ = wanted.detect(
        {"boxes": torch.from_numpy(x[..., :4].copy()), "t": torch.from_numpy(x[..., 4:].copy()).sigmoid()}, False
    )
    for name, found in zip(expected, result.session().run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(found, expected[name].numpy(), 1e-4, 1e-4, err_msg=name)


class Prepared(nn.Module):
    """A network with its preprocessing inside, and a normalisation behind its first layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 1))
        self.body[1].running_mean.uniform_()
        self.body[1].running_var.uniform_(0.5, 2)

    def forward(self, image):
        return self.body((image - 0.4) / 0.2)


def export_prepared(path):
    torch.onnx.export(
        Prepared().eval(),
        (torch.rand(1, 3, 8, 8),),
        str(path),
        dynamo=False,
        opset_version=13,
        input_names=["image"],
        dynamic_axes={"image": {0: "batch"}},
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
    )
    return path


def test_preprocessing_and_a_normalisation_are_folded(tmp_path, image, runner):
    path = export_prepared(tmp_path / "a.onnx")
    result = convert(path, preprocess="fold", simplify=True, runner=runner)
    assert result.nodes == {"Pad": 1, "Conv": 2, "Relu": 1}
    assert result.source_nodes["BatchNormalization"] == 1
    wanted = onnxruntime.InferenceSession(str(path)).run(None, {"image": image})[0]
    np.testing.assert_allclose(result.session().run(None, {"image": image})[0], wanted, 1e-4, 1e-5)


def test_stages_that_are_cut_off(tmp_path, image, runner):
    path = export_prepared(tmp_path / "a.onnx")
    result = convert(path, tmp_path / "b.onnx", preprocess="extract", opset=17, runner=runner)
    wanted = onnxruntime.InferenceSession(str(path)).run(None, {"image": image})[0]
    prepared = result.preprocess(image)
    np.testing.assert_allclose(result.session().run(None, {"image": prepared})[0], wanted, 1e-4, 1e-5)
    assert (tmp_path / "b.preprocess.onnx").exists()
    head = convert(export_head(tmp_path / "c.onnx"), tmp_path / "d.onnx", postprocess="strip", runner=runner)
    assert head.nodes == {"Conv": 2}
    image = np.random.default_rng(0).random((2, 3, 64, 64)).astype(np.float32)
    outputs = head.session().run(list(head.postprocess.inputs), {"image": image})
    wanted = onnxruntime.InferenceSession(str(tmp_path / "c.onnx")).run(None, {"image": image})[0]
    np.testing.assert_allclose(head.postprocess(*outputs), wanted, 1e-4, 1e-4)
    assert head.to_dict()["postprocess"]["outputs"] == ["found"]


# Free axes


def test_height_and_width_are_freed(tmp_path, runner):
    path = net(tmp_path / "a.onnx", batch=2)
    result = convert(path, dynamic={"image": {2: "height", 3: "width"}}, runner=runner)
    axes = {axis.name: axis.tried for axis in result.axes}
    assert axes == {"height": (8, 16, 40), "width": (8, 16, 40)}
    larger = np.random.default_rng(0).standard_normal((2, 3, 12, 9)).astype(np.float32)
    model = onnx.load(path)
    del model.graph.input[0].type.tensor_type.shape.dim[2:]
    model.graph.input[0].type.tensor_type.shape.dim.add()
    model.graph.input[0].type.tensor_type.shape.dim.add()
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"image": larger})[0]
    np.testing.assert_allclose(result.session().run(None, {"image": larger})[0], wanted, 1e-5, 1e-6)


RESHAPED = """<ir_version: 8, opset_import: ["": 17]>
g (float[2, 3, 4, 5] x) => (y) { h = Reshape(x, s)  y = Transpose<perm = [0, 2, 1]>(h) }"""


def test_a_reshape_that_holds_the_size_is_written_otherwise(tmp_path, runner):
    path = write(tmp_path / "a.onnx", RESHAPED, s=np.array([2, 3, 20], np.int64))
    result = convert(path, dynamic={"x": {3: "width"}}, runner=runner)
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 7)).astype(np.float32)
    np.testing.assert_array_equal(result.session().run(None, {"x": x})[0], x.reshape(2, 3, 28).transpose(0, 2, 1))


ONE = '<ir_version: 8, opset_import: ["": 17]>\ng (float[2, 3, 4, 6] x) => (y) '


@pytest.mark.parametrize(
    ("text", "weights", "message"),
    [
        ("{ y = Reshape(x, s) }", {"s": [2, 3, 2, 12]}, r"Reshape 'y' makes \[2, 3, 4, 6\] \[2, 3, 2, 12\]"),
        ("{ y = Slice(x, s, e, a) }", {"s": [0], "e": [3], "a": [3]}, "Slice 'y' takes 0 to 3 of it"),
        ("{ y = Gather<axis = 3>(x, s) }", {"s": [0, 5]}, r"Gather 'y' takes \[0, 5\] of it"),
        ("{ y = Resize(x, , , s) }", {"s": [2, 3, 8, 12]}, r"Resize 'y' makes it"),
        ("{ y, z = Split<axis = 3>(x, s) }", {"s": [3, 3]}, "Split 'y' splits the axis"),
        ("{ y = AveragePool<kernel_shape = [1, 6]>(x) }", {}, "a window of the whole axis, 6"),
        ("{ h = Neg(x)  y = Add(h, s) }", {"s": np.zeros((1, 1, 1, 6), np.float32)}, "still runs at 6 alone"),
        ("{ y = Conv(x, s) }", {"s": np.ones((1, 3, 1, 6), np.float32)}, "Conv 'y' has a window of the whole axis, 6"),
        ("{ y, i = TopK(x, s) }", {"s": [6]}, "TopK 'y' holds 6, which is the size of 'width'"),
        (
            "{ h = MaxPool<kernel_shape = [1, 2], strides = [1, 2]>(x)  y, i = TopK(h, s) }",
            {"s": [3]},
            "the whole axis",
        ),
        ("{ h = ReduceMean<axes = [3]>(x)  y = Tile(h, s) }", {"s": [1, 1, 1, 6]}, "Tile 'y' holds 6"),
        ("{ h = ReduceMean<axes = [3]>(x)  y = Expand(h, s) }", {"s": [1, 6]}, "Expand 'y' holds 6"),
        (
            "{ r = Range(s, e, a)  y = Gather<axis = 3>(x, r) }",
            {"s": np.array(0), "e": np.array(6), "a": np.array(1)},
            "Range 'r' holds 6",
        ),
        (
            "{ h = Transpose(x)  y = ScatterND(h, s, e) }",
            {"s": [[5]], "e": np.zeros((1, 4, 3, 2), "f")},
            "places .5. of it",
        ),
        (
            "{ y = ScatterElements<axis = 3>(x, s, e) }",
            {"s": [[[[5]]]], "e": np.zeros((1, 1, 1, 1), "f")},
            "places .5.",
        ),
        (
            "{ h = Squeeze(x, s)  y = ReverseSequence<batch_axis = 0, time_axis = 1>(h, e) }",
            {"s": [0, 1], "e": [6, 6, 6, 6]},
            "ReverseSequence 'y' holds 6",
        ),
        (
            """{ h = Transpose<perm = [3, 0, 1, 2]>(x)
                y = Loop (s, , e) <b = g (int64 i, bool c, float[2, 3, 4] a) => (bool d, float[2, 3, 4] z) {
                    k = Gather(h, i)  z = Add(a, k)  d = Identity(c) }> }""",
            {"s": np.array(6), "e": np.zeros((2, 3, 4), np.float32)},
            "Loop 'y' holds 6",
        ),
    ],
)
def test_numbers_that_follow_from_the_size_are_named(tmp_path, runner, text, weights, message):
    arrays = {name: np.asarray(value, getattr(value, "dtype", np.int64)) for name, value in weights.items()}
    one = ONE.replace("2, 3, 4", "1, 1, 4") if "Squeeze" in text else ONE
    path = write(tmp_path / "a.onnx", one + text, **arrays)
    with pytest.raises(UnsupportedError, match=message):
        convert(path, tmp_path / "b.onnx", dynamic={"x": {3: "width"}}, runner=runner)
    assert not (tmp_path / "b.onnx").exists()


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("{ y = Reshape(x, s) }", {"s": [2, 12, -1]}),
        ("{ y = Reshape(x, s) }", {"s": [0, 3, 0, 0]}),
        ("{ y = Slice(x, s, e, a) }", {"s": [1], "e": [2**31], "a": [3]}),
        ("{ y = Gather<axis = 3>(x, s) }", {"s": [-1]}),
        ("{ y = Expand(x, s) }", {"s": [2, 3, 4, 1]}),
        ("{ y = AveragePool<kernel_shape = [1, 2]>(x) }", {}),
        ("{ y = Gather<axis = 1>(x, s) }", {"s": [2]}),
    ],
)
def test_numbers_that_do_not_follow_from_it_are_left(tmp_path, runner, text, weights):
    arrays = {name: np.asarray(value, np.int64) for name, value in weights.items()}
    result = convert(write(tmp_path / "a.onnx", ONE + text, **arrays), dynamic={"x": {3: "width"}}, runner=runner)
    assert result.axes[0].tried == (6, 12, 38)


@pytest.mark.parametrize(
    ("text", "weights", "told"),
    [
        ("{ y = Pad(x, s) }", {"s": [0, 0, 0, 0, 0, 0, 0, 2]}, "Pad 'y' pads it by a different number at its two ends"),
        ("{ h = ReduceSum<keepdims = 1>(x, s)  y = Div(h, e) }", {"s": [3], "e": np.float32(6)}, "Div 'y' holds 6"),
        ("{ h = ReduceMean<axes = [3]>(x)  y = Tile(h, s) }", {"s": [1, 1, 1, 5]}, "Tile 'y' holds 5"),
        ("{ y = Pad(x, s) }", {"s": [0, 0, 0, 1, 0, 0, 0, 1]}, ""),
        ("{ y, i = TopK(x, s) }", {"s": [2]}, ""),
    ],
)
def test_numbers_that_may_follow_from_it_are_told(tmp_path, runner, text, weights, told):
    arrays = {name: np.asarray(value, getattr(value, "dtype", np.int64)) for name, value in weights.items()}
    result = convert(write(tmp_path / "a.onnx", ONE + text, **arrays), dynamic={"x": {3: "width"}}, runner=runner)
    found = [note for note in result.notes if note.startswith("these numbers may follow from the size")]
    assert [told in note for note in found] == [True] * bool(told)
    assert any("whole numbers of the file that are a freed size" in note for note in result.notes)


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [
        ({"picture": {2: "height"}}, "unknown input 'picture'"),
        ({"image": {4: "height"}}, "has no axis 4"),
        ({"image": {2: "side", 1: "side"}}, "are both called 'side'"),
    ],
)
def test_axes_that_are_not_there(tmp_path, runner, dynamic, message):
    with pytest.raises(CompatError, match=message):
        convert(net(tmp_path / "a.onnx", batch=2), dynamic=dynamic, runner=runner)


def test_an_axis_that_is_free_already(tmp_path, runner):
    with pytest.raises(CompatError, match="is dynamic already, n"):
        convert(net(tmp_path / "a.onnx"), dynamic={"image": {0: "batch"}}, runner=runner)


def test_the_oracle_of_a_file_without_surgery_is_the_file(tmp_path):
    from torch_onnx_compat.files.reading import read

    file = read(net(tmp_path / "a.onnx"))
    assert oracle.Oracle.of(file).expect([1]) == {"logits": 1}
