"""export_compat(postprocess=...): stripped, or non-maximum suppression put after a head."""

import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch
import torchvision
from torch import nn
from torchvision import ops

from torch_onnx_compat import CompatError, Detections, Target, export_compat
from torch_onnx_compat.engines import ENGINES, Engine
from torch_onnx_compat.errors import UnsupportedError, VerificationError
from torch_onnx_compat.functional import non_maximum
from torch_onnx_compat.surgery.on_graph import strip
from torch_onnx_compat.targets.target import Row


class Head(nn.Module):
    """A detector of YOLO's kind: box distributions and class scores from two branches, decoded on a grid."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 4, 1), nn.BatchNorm2d(8), nn.SiLU())
        self.box = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1), nn.ReLU(), nn.Conv2d(8, 16, 1))
        self.cls = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1), nn.SiLU(), nn.Conv2d(8, 3, 1))
        self.expectation = nn.Conv2d(4, 1, 1, bias=False)
        self.expectation.weight.data = torch.arange(4.0).view(1, 4, 1, 1)

    def forward(self, x):
        features = self.stem(x)
        both = torch.cat([self.box(features), self.cls(features)], 1).flatten(2)
        box, cls = both.split((16, 3), 1)
        distances = box.view(box.shape[0], 4, 4, -1).transpose(1, 2).softmax(1)
        distances = self.expectation(distances).view(box.shape[0], 4, -1)
        rows, columns = torch.meshgrid(torch.arange(x.shape[2] // 4), torch.arange(x.shape[3] // 4), indexing="ij")
        centres = torch.stack([columns.reshape(-1), rows.reshape(-1)]) + 0.5
        first, last = centres - distances[:, :2], centres + distances[:, 2:]
        return torch.cat([(first + last) * 2, (last - first) * 4, cls.sigmoid()], 1)


BOTH = ["torchscript", pytest.param("dynamo", marks=pytest.mark.slow)]
PICTURE = torch.rand(1, 3, 32, 24)


@pytest.mark.parametrize("exporter", BOTH)
@pytest.mark.parametrize("dynamic", [None, "batch"])
def test_strip(exporter, dynamic, tmp_path):
    model = Head().eval()
    result = export_compat(model, PICTURE, tmp_path / "m.onnx", postprocess="strip", exporter=exporter, dynamic=dynamic)
    assert [o.name for o in result.session().get_outputs()] == ["box_2", "cls_2"]
    assert set(result.nodes) <= {"Conv", "Sigmoid", "Mul", "Relu"}
    assert result.postprocess.outputs == ("output",)
    picture = torch.rand(3 if dynamic else 1, 3, 32, 24)
    boxes, classes = result.session().run(None, {"x": picture.numpy()})
    found = result.postprocess(**{"box_2": boxes, "cls_2": classes})
    np.testing.assert_allclose(found, model(picture).detach().numpy(), rtol=1e-3, atol=1e-5)
    onnx.checker.check_model(str(tmp_path / "m.postprocess.onnx"), full_check=True)


@pytest.mark.parametrize(
    ("make", "last", "outputs"),
    [
        (lambda: nn.Sequential(nn.Linear(4, 3), nn.Softmax(-1)), "Gemm", ["0"]),
        (lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Softmax(-1)), "Relu", ["1"]),
        (lambda: nn.Sequential(nn.Linear(4, 3), nn.Hardswish(), nn.Flatten()), "HardSwish", ["1"]),
    ],
)
def test_where_it_is_cut(make, last, outputs):
    model = make().eval()
    result = export_compat(model, torch.rand(2, 4), postprocess="strip", exporter="torchscript")
    assert result.model_proto.graph.node[-1].op_type == last
    assert len(result.session().get_outputs()) == len(outputs)


@pytest.mark.parametrize("exporter", BOTH)
def test_outputs_of_the_network_itself_stay(exporter):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 2, 1)

        def forward(self, x):
            features = self.a(x)
            return {"features": features, "size": self.b(features).sigmoid() * x.shape[2], "plain": self.b(features)}

    model, x = Model().eval(), torch.rand(1, 3, 5, 6)
    result = export_compat(model, x, postprocess="strip", exporter=exporter, dynamic={"x": {2: "h"}})
    names = [o.name for o in result.session().get_outputs()]
    assert set(names) == {"features", "plain"}
    values = {**dict(zip(names, result(x), strict=True)), "x": x}
    found = result.postprocess(**{name: values[name].numpy() for name in result.postprocess.inputs})
    np.testing.assert_allclose(found, model(x)["size"].detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", [nn.Linear(4, 3), nn.ReLU()], ids=["a layer", "no layer"])
def test_nothing_to_strip(model):
    result = export_compat(model.eval(), torch.rand(2, 4), postprocess="strip")
    assert result.postprocess is None
    assert any(note.startswith("postprocess:") and "the file is as it was" in note for note in result.notes)


def test_a_wrong_cut_is_seen(monkeypatch):
    real = strip.excerpt

    def broken(model, inputs, outputs, name):
        part = real(model, inputs, outputs, name)
        for node in part.graph:
            if name == "postprocess" and node.op_type == "Sigmoid":
                node.op_type = "Tanh"
        return part

    monkeypatch.setattr(strip, "excerpt", broken)
    with pytest.raises(VerificationError):
        export_compat(Head().eval(), PICTURE, postprocess="strip", exporter="torchscript")


def test_both_ends(exporter):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(3, 2, 3)

        def forward(self, x):
            return self.layer(x / 255 - 0.5).softmax(1)

    model, x = Model().eval(), torch.rand(1, 3, 8, 8) * 255
    result = export_compat(model, x, preprocess="extract", postprocess="strip", exporter=exporter)
    assert dict(result.nodes) == {"Conv": 1}
    network = result.session().run(None, {"x": result.preprocess(x.numpy())})[0]
    np.testing.assert_allclose(result.postprocess(network), model(x).detach().numpy(), rtol=1e-4, atol=1e-6)
    with pytest.raises(CompatError, match="both cut the graph; pass one of them"):
        export_compat(model, x, postprocess="strip", split=["layer"])


# Non-maximum suppression


class Given(nn.Module):
    def forward(self, b, s):
        return b, s


def sets(generator):
    """1000 sets: on a grid so that many are equal or empty, at random, all the same, in a chain, inside out."""
    for number in range(1000):
        count = int(torch.randint(0, 24, (), generator=generator))
        kind = number % 5
        if kind == 0:
            boxes = torch.randint(0, 7, (count, 4), generator=generator).float()
            boxes[:, 2:] += boxes[:, :2]
        elif kind == 1:
            boxes = torch.rand(count, 4, generator=generator) * 30
            boxes[:, 2:] += boxes[:, :2]
        elif kind == 2:
            boxes = torch.tensor([[3.0, 3, 9, 9]]).repeat(count, 1)
        elif kind == 3:
            left = torch.rand(count, generator=generator) * 5
            boxes = torch.stack([left, left * 0, left + 10, left * 0 + 10], 1)
        else:
            boxes = torch.randint(0, 3, (count, 4), generator=generator).float()
        ties = torch.randint(0, 5, (count,), generator=generator) / 4
        scores = ties if number % 2 else torch.rand(count, generator=generator)
        yield boxes, scores, torch.randint(0, 3, (count,), generator=generator)


def suppressed(form, exporter, threshold):
    declared = Detections(
        form, scores=1, max_detections=24, candidates=24, iou_threshold=threshold, score_threshold=0.1
    )
    example = (torch.rand(1, 9, 4), torch.rand(1, 9, 3))
    dynamic = {"b": {1: "count"}, "s": {1: "count"}}
    return export_compat(Given(), example, postprocess=declared, exporter=exporter, dynamic=dynamic)


def wrong_sets(session, threshold):
    wrong = 0
    for boxes, scores, classes in sets(torch.Generator().manual_seed(1)):
        table = torch.full((1, len(scores), 3), -1.0)
        table[0, torch.arange(len(scores)), classes] = scores
        found = session.run(["boxes", "scores", "classes", "count"], {"b": boxes[None].numpy(), "s": table.numpy()})
        allowed = (scores > 0.1).nonzero().squeeze(1)
        kept = allowed[ops.batched_nms(boxes[allowed], scores[allowed], classes[allowed], threshold)]
        wanted = (boxes[kept], scores[kept], classes[kept])
        count = int(found[3][0])
        same = count == len(kept) and all(
            np.array_equal(a[0, :count], b.numpy()) for a, b in zip(found[:3], wanted, strict=True)
        )
        wrong += not same or found[0][0, count:].any() or found[1][0, count:].any() or (found[2][0, count:] != -1).any()
    return wrong


@pytest.mark.parametrize("form", ["nms", "nms-dense"])
@pytest.mark.parametrize("threshold", [0.3, pytest.param(0.0, marks=pytest.mark.slow)])
def test_keeps_what_torchvision_keeps(form, threshold):
    assert wrong_sets(suppressed(form, "torchscript", threshold).session(), threshold) == 0


@pytest.mark.slow
@pytest.mark.parametrize("form", ["nms", "nms-dense"])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 1.0])
def test_keeps_what_torchvision_keeps_by_dynamo(form, threshold):
    assert wrong_sets(suppressed(form, "dynamo", threshold).session(), threshold) == 0


def test_one_step_too_few_is_wrong(monkeypatch):
    """A chain in which each box suppresses the next takes all the steps."""
    boxes = torch.stack([torch.tensor([float(i), 0, i + 2.5, 1]) for i in range(6)])[None]
    found = non_maximum.Candidates(boxes, torch.linspace(1, 0.5, 6)[None], torch.zeros(1, 6, dtype=torch.int64))
    kept = non_maximum.keep_mask_dense(found, torch.ones(1, 6, dtype=torch.bool), 0.4, True)
    assert kept.tolist() == [[True, False, True, False, True, False]]
    real = torch.nn.functional.relu
    calls = []

    def counted(x):
        calls.append(x)
        return real(x)

    monkeypatch.setattr(non_maximum.functional, "relu", counted)
    non_maximum.keep_mask_dense(found, torch.ones(1, 6, dtype=torch.bool), 0.4, True)
    assert len(calls) == 1 + 5


@pytest.mark.parametrize("exporter", BOTH)
@pytest.mark.parametrize("form", ["nms", "nms-dense"])
@pytest.mark.parametrize("most", [None, 5])
def test_several_pictures(form, most, exporter):
    boxes = torch.rand(3, 40, 4) * 20
    boxes[..., 2:] += boxes[..., :2]
    scores = torch.rand(3, 40, 2)
    declared = Detections(form, scores=1, max_detections=most, candidates=20, iou_threshold=0.3, score_threshold=0.2)
    result = export_compat(Given(), (boxes, scores), postprocess=declared, exporter=exporter, dynamic="batch")
    found = dict(zip([o.name for o in result.session().get_outputs()], result(boxes, scores), strict=True))
    for image in range(3):
        best, classes = scores[image].max(-1)
        order = best.argsort(descending=True)[:20]
        order = order[best[order] > 0.2]
        kept = order[ops.batched_nms(boxes[image][order], best[order], classes[order], 0.3)][: most or 99]
        rows = found["images"] == image if most is None else slice(0, int(found["count"][image]))
        own = {n: v if most is None else v[image] for n, v in found.items() if n in ("boxes", "scores", "classes")}
        assert torch.equal(own["boxes"][rows], boxes[image][kept])
        assert torch.equal(own["scores"][rows], best[kept])
        assert torch.equal(own["classes"][rows], classes[kept])
    assert ("NonMaxSuppression" in result.nodes) == (form == "nms")


@pytest.mark.parametrize("exporter", BOTH)
def test_after_a_head(exporter):
    model = Head().eval()
    declared = Detections("nms-dense", channels_first=True, box_format="cxcywh", candidates=10, score_threshold=0.1)
    result = export_compat(model, PICTURE, postprocess=declared, exporter=exporter)
    boxes, scores, classes, count = result(PICTURE)
    raw = model(PICTURE)[0].detach()
    corners = ops.box_convert(raw[:4].T, "cxcywh", "xyxy")
    best, kinds = raw[4:].max(0)
    order = best.argsort(descending=True, stable=True)[:10]
    kept = order[ops.batched_nms(corners[order], best[order], kinds[order], 0.45)]
    assert int(count) == len(kept)
    torch.testing.assert_close(boxes[0, : len(kept)], corners[kept], rtol=1e-3, atol=1e-3)
    assert torch.equal(classes[0, : len(kept)], kinds[kept])
    torch.testing.assert_close(scores[0, : len(kept)], best[kept], rtol=1e-3, atol=1e-5)


def test_objectness_and_further_columns():
    rows = torch.cat([torch.rand(1, 6, 2) * 9, torch.rand(1, 6, 2) + 1, torch.rand(1, 6, 1 + 3 + 8)], -1)
    declared = Detections(objectness=True, classes=3, box_format="xywh", score_threshold=0.0, iou_threshold=0.9)
    result = export_compat(nn.Identity(), rows, postprocess=declared, exporter="torchscript")
    boxes, scores, _, count = result(rows)
    wanted = (rows[0, :, 5:8] * rows[0, :, 4:5]).max(-1)[0].sort(descending=True)[0]
    assert int(count) == 6
    torch.testing.assert_close(scores[0], wanted)
    assert (boxes[0, :, 2:] > boxes[0, :, :2]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "nsm"}, "unknown form of Detections 'nsm'; did you mean 'nms'"),
        ({"box_format": "yxyx"}, "unknown box_format of Detections 'yxyx'"),
        ({"boxes": 2}, "the boxes are output 2, but the model has 2"),
        ({"scores": "score"}, "unknown output for the scores 'score'"),
        ({"form": "efficient-nms", "max_detections": None}, "has a fixed number of outputs"),
        ({"max_detections": 0}, r"Detections\(max_detections=0\): wanted a whole number from 1"),
        ({"candidates": 0}, r"Detections\(candidates=0\): wanted a whole number from 1"),
        ({"classes": 0}, r"Detections\(classes=0\): wanted a whole number from 1"),
        ({"scores": 1, "classes": 4}, r"Detections\(classes=4\): the model's output has scores of 3 classes only"),
        ({"iou_threshold": 1.5}, r"Detections\(iou_threshold=1.5\): wanted a number from 0 to 1"),
        ({"score_threshold": "high"}, r"Detections\(score_threshold='high'\): wanted a number"),
        ({"boxes": 1}, r"boxes of shape \(1, 9, 3\)"),
    ],
)
def test_wrong_declarations(options, message):
    with pytest.raises(CompatError, match=message):
        export_compat(Given(), (torch.rand(1, 9, 4), torch.rand(1, 9, 3)), postprocess=Detections(**options))


def test_detections_and_outputs_contradict_each_other():
    with pytest.raises(CompatError, match="both say what the file gives; pass one of them"):
        export_compat(Head().eval(), PICTURE, postprocess=Detections(channels_first=True), outputs=["box"])


# Forms by name, and the engine's own


class Known(Head):
    """Says what it is, as ultralytics' heads do."""

    nc, reg_max = 3, 4


class Queries(nn.Module):
    """As a detection transformer's decoder."""

    nc, num_queries = 2, 6

    def forward(self, x):
        return torch.cat([x[..., :4] / 10 + 0.2, x[..., 4:].sigmoid()], -1)


@pytest.mark.parametrize(
    ("model", "given", "declared"),
    [
        (Known(), PICTURE, Detections("nms-dense", classes=3, box_format="cxcywh", channels_first=True)),
        (Queries(), torch.rand(1, 6, 6), Detections("nms-dense", classes=2, box_format="cxcywh")),
    ],
)
def test_a_known_head_needs_no_declaration(model, given, declared):
    wanted = export_compat(model.eval(), given, postprocess=declared, exporter="torchscript")(given)
    found = export_compat(model.eval(), given, postprocess="nms-dense", exporter="torchscript")(given)
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Head(), "holds no detection head of a known kind; declare it: postprocess=Detections\\('nms'"),
        (type("Final", (Known,), {"end2end": True})(), "Final gives final detections"),
        (type("Rotated", (Known,), {"ne": 1})(), "Rotated gives rotated boxes"),
        (type("Whole", (Head,), {"nms_thresh": 0.5})(), "Whole suppresses overlapping boxes itself"),
    ],
)
def test_a_head_that_takes_no_suppression(model, message):
    with pytest.raises(CompatError, match=message):
        export_compat(model.eval(), PICTURE, postprocess="nms")


@pytest.mark.parametrize("exporter", BOTH)
def test_tensorrts_plugin(exporter):
    declared = Detections("efficient-nms", scores=1, iou_threshold=0.6, score_threshold=0.1, max_detections=7)
    args = (torch.rand(2, 9, 4).cumsum(-1), torch.rand(2, 9, 3))
    model = Given().eval()
    with pytest.raises(UnsupportedError, match=r"allow_custom_domains=\['TRT'\]"):
        export_compat(model, args, postprocess=declared, exporter=exporter)
    result = export_compat(
        model, args, postprocess=declared, exporter=exporter, dynamic="batch", allow_custom_domains=["TRT"]
    )
    file = result.model_proto
    assert not file.functions
    (node,) = [n for n in file.graph.node if n.domain == "TRT"]
    assert node.op_type == "EfficientNMS_TRT"
    assert list(node.output) == [o.name for o in file.graph.output] == PLUGIN
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert given.pop("plugin_version") == b"1"
    assert given == pytest.approx(
        {
            "iou_threshold": 0.6,
            "score_threshold": 0.1,
            "max_output_boxes": 7,
            "background_class": -1,
            "score_activation": 0,
            "class_agnostic": 0,
            "box_coding": 0,
        }
    )
    assert [len(o.type.tensor_type.shape.dim) for o in file.graph.output] == [2, 3, 2, 2]
    assert {row.case for row in result.table} >= {"batch=1"}
    kinds = [o.type.tensor_type.elem_type for o in file.graph.output]
    assert kinds == [onnx.TensorProto.INT32, onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT, onnx.TensorProto.INT32]


PLUGIN = ["num_detections", "detection_boxes", "detection_scores", "detection_classes"]


def test_what_the_plugin_stands_for_is_no_matter_of_the_target():
    declared = Detections("efficient-nms", scores=1, score_threshold=0.1, max_detections=7)
    args = (torch.rand(2, 9, 4).cumsum(-1), torch.rand(2, 9, 3))
    without = Target("tensorrt-board", opset=17, rows=(Row("NonMaxSuppression", "refused"), Row("NonZero", "refused")))
    result = export_compat(Given().eval(), args, postprocess=declared, target=without, allow_custom_domains=["TRT"])
    assert result.custom_nodes == ("TRT::EfficientNMS_TRT",)
    with pytest.raises(UnsupportedError, match="NonMaxSuppression refused"):
        export_compat(Given().eval(), args, postprocess=replace(declared, form="nms"), target=without)


def test_the_targets_engine_gets_the_plugin_and_not_what_it_stands_for(monkeypatch, tmp_path):
    adapter = tmp_path / "tells.py"
    adapter.write_text(
        "import onnx\n"
        "def version():\n    return '1'\n"
        "def load(path, feeds, outputs, variant):\n"
        "    model = onnx.load(path)\n"
        "    told = len(model.functions), [node.domain for node in model.graph.node if node.domain]\n"
        "    raise RuntimeError(f'functions, domains: {told}')\n"
    )
    fake = type("Fake", (Engine,), {"path": adapter})("tells", "numpy", ())
    monkeypatch.setenv(fake.variable, sys.executable)
    monkeypatch.setitem(ENGINES, "tells", fake)
    declared = Detections("efficient-nms", scores=1, score_threshold=0.1, max_detections=7)
    args = (torch.rand(2, 9, 4).cumsum(-1), torch.rand(2, 9, 3))
    with pytest.raises(CompatError, match=r"functions, domains: \(0, \['TRT'\]\)"):
        export_compat(
            Given().eval(),
            args,
            postprocess=declared,
            target=Target("tells", opset=17),
            allow_custom_domains=["TRT"],
            verify="target",
        )


def test_the_plugins_detections_are_batched_nms_of_every_class():
    boxes, scores = torch.rand(1, 30, 4).cumsum(-1), torch.rand(1, 30, 3)
    declared = Detections("efficient-nms", scores=1, iou_threshold=0.3, score_threshold=0.2, max_detections=100)
    made = declared.detect([boxes, scores], pad=False)[0]
    pairs = scores[0].flatten()
    box, kind = boxes[0].repeat_interleave(3, 0), torch.arange(3).repeat(30)
    over = pairs > 0.2
    kept = ops.batched_nms(box[over], pairs[over], kind[over], 0.3)
    number = int(made["num_detections"])
    assert number == len(kept) > 3
    torch.testing.assert_close(made["detection_scores"][0, :number], pairs[over][kept])
    torch.testing.assert_close(made["detection_boxes"][0, :number], box[over][kept])
    assert made["detection_classes"][0, :number].tolist() == kind[over][kept].tolist()


# Whole detectors


@pytest.mark.slow
@pytest.mark.parametrize("make", [torchvision.models.segmentation.lraspp_mobilenet_v3_large])
def test_segmentation(make, exporter):
    model, x = make(weights=None, weights_backbone=None).eval(), torch.rand(1, 3, 64, 64)
    result = export_compat(model, x, postprocess="strip", exporter=exporter)
    assert "Resize" in {n.op_type for n in result.postprocess.model_proto.graph.node}


YOLOS = {
    "v5 with Focus": ("DetectionModel", "yolov5n.yaml"),
    "v8": ("DetectionModel", "yolov8n.yaml"),
    "11": ("DetectionModel", "yolo11n.yaml"),
    "12": ("DetectionModel", "yolo12n.yaml"),
    "26": ("DetectionModel", "yolo26n.yaml"),
    "segmentation": ("SegmentationModel", "yolov8n-seg.yaml"),
    "pose": ("PoseModel", "yolov8n-pose.yaml"),
    "oriented boxes": ("OBBModel", "yolov8n-obb.yaml"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", YOLOS)
def test_yolo(name, exporter):
    tasks = pytest.importorskip("ultralytics.nn.tasks")
    kind, file = YOLOS[name]
    config = tasks.yaml_model_load(file)
    if name == "v5 with Focus":
        config["backbone"][0] = [-1, 1, "Focus", [64, 3]]
    model = getattr(tasks, kind)(config, verbose=False).eval()
    x = torch.rand(1, 3, 96, 128)
    result = export_compat(model, x, postprocess="strip", exporter=exporter)
    own = model(x)[0]
    own = (own[0] if isinstance(own, tuple) else own).detach().numpy()
    values = dict(zip([o.name for o in result.session().get_outputs()], result(x), strict=True))
    found = result.postprocess(**{name: values[name].numpy() for name in result.postprocess.inputs})
    np.testing.assert_allclose(found[0], own, rtol=1e-3, atol=1e-3)
    assert not {"Softmax", "TopK"} & set(result.nodes) or name == "12" or name == "11" or name == "26"
