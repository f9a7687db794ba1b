"""A report tells what happened, in one file that needs nothing else, readable by everyone."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.check.localisation import Layer, Localisation
from torch_onnx_compat.report import plot as plots
from torch_onnx_compat.report import write_report
from torch_onnx_compat.report.page import page
from torch_onnx_compat.report.picture import draw
from torch_onnx_compat.report.plot import plot
from torch_onnx_compat.report.snippets import language, snippet
from torch_onnx_compat.targets import known_targets

VOID = {"meta", "wbr"}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.pool = nn.AdaptiveAvgPool2d((3, 5))

    def forward(self, x):
        return self.pool(self.body(x))


class Remainder(nn.Module):
    def forward(self, x):
        return x.relu() % 3


class Decides(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


class Impossible(nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(x)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model, image = Model().eval(), torch.randn(2, 3, 8, 4)
    path = tmp_path_factory.mktemp("report") / "model.onnx"
    return export_compat(model, (image,), path, exporter="torchscript", dynamic="batch"), model, image


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "action", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(path):
    text = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return text, tags


def test_html(exported, tmp_path):
    result, model, image = exported
    text, tags = read(result.report(tmp_path / "report.html", model, (image,)))
    assert tags.seen.count("h1") == 1
    file, netron = tags.links
    assert ((tmp_path / file).resolve(), netron) == (result.path.resolve(), "https://netron.app")
    assert not re.search(r"@import|url\(['\"]?http|src=", text)  # nothing is loaded; the link to Netron is a link
    assert text.index("Verified on") < text.index("What was changed") < text.index("Verification</h2>")
    for told in ("Code of adaptive_avg_pool2d_to_matmul", "<svg", "batch=", "InferenceSession", "MatMul", ">pool<"):
        assert told in text, told
    assert "np.zeros((2, 3, 8, 4), np.float32)" in text  # the example's batch


def test_markdown_and_json_tell_the_same(exported, tmp_path):
    result, model, image = exported
    text = result.report(tmp_path / "report.md", model, (image,)).read_text(encoding="utf-8")
    facts = json.loads(result.report(tmp_path / "report.json", model, (image,)).read_text(encoding="utf-8"))
    assert text.startswith("# model.onnx: Verified on")
    assert facts["ok"]
    assert [e["entry"] for e in facts["applied"]] == ["adaptive_avg_pool2d_to_matmul"]
    assert facts["applied"][0]["places"] == ["pool"]
    assert {layer["module"] for layer in facts["layers"]} >= {"body", "pool"}
    assert all(f"| {o['operator']} | {o['count']} |" in text for o in facts["operators"])


def test_a_failure_is_told_with_what_to_do(tmp_path):
    with pytest.raises(CompatError) as caught:
        export_compat(Impossible(), torch.ones(2, 3))
    text, _ = read(write_report(tmp_path / "report.html", caught.value))
    assert "No file was made" in text
    assert "What to do" in text
    assert "give a symbolic for it" in text


def test_what_a_model_is_called_is_no_markup():
    facts = {
        "title": "<script>", "ok": False, "verdict": "no", "summary": {"target": "a&b"}, "message": "<b>",
        "diagnoses": [], "difference": "", "inputs": [], "outputs": [], "applied": [], "declined": [],
        "rejected": {"<i>": "<u>"}, "notes": ["<em>"], "table": [], "operators": [], "seconds": {}, "snippet": "",
        "kept": [("<q>", "Sin", "<small>", "", "")], "errors": [], "trials": [], "quantized": [],
        "stock": "<s>", "source": "-<del>\n+<ins>", "whole": None, "file": "",
        "changes": [{"entry": "<a>", "place": "<b>", "code": "<code2>", "before": None, "after": {
            "nodes": [{"operator": "<rect2>", "changed": True}], "edges": [], "more": 0, "there": 1}}],
        "layers": [{"module": "<svg>", "error": 1.0, "tolerance": 1e-5}],
    }  # fmt: skip
    text = page(facts)
    assert not re.search(r"<(script|b|i|u|em|s|a|q|small|del|ins|code2|rect2)>", text)


@pytest.fixture(scope="module")
def facts(exported, tmp_path_factory):
    result, model, image = exported
    path, steps = tmp_path_factory.mktemp("facts") / "report.json", []
    result.report(path, model, (image,), stock=True, progress=steps.append)
    assert steps == ["layers", "stock", "report"]
    return json.loads(path.read_text(encoding="utf-8"))


def test_before_and_after(facts):
    """TorchScript makes an error of a pool whose output sizes do not divide the input's."""
    (change,) = facts["changes"]
    assert facts["stock"].startswith("torch.onnx.export refuses the model: ")
    assert change["before"] is None
    assert change["place"] == "pool"
    assert "def adaptive_avg_pool2d_to_matmul" in change["code"]
    assert "MatMul" in [n["operator"] for n in change["after"]["nodes"] if n["changed"]]
    assert all(row["before"] is None for row in facts["operators"])


def test_operators_before_and_after(tmp_path):
    x = torch.arange(6.0).reshape(2, 3)
    result = export_compat(Remainder(), (x,), exporter="torchscript", dynamic="batch")
    path = result.report(tmp_path / "report.json", Remainder(), (x,), stock=True)
    report = json.loads(path.read_text(encoding="utf-8"))
    (change,) = report["changes"]
    before, after = change["before"], change["after"]
    assert {n["operator"] for n in before["nodes"] if n["changed"]} >= {"Div", "Floor", "Mul", "Sub"}
    assert {n["operator"] for n in after["nodes"] if n["changed"]} >= {"Mod"}
    assert [n["operator"] for n in after["nodes"] if not n["changed"]] == ["Relu"]
    counts = {row["operator"]: (row["before"], row["count"]) for row in report["operators"]}
    assert counts["Floor"] == (1, 0)
    assert counts["Mod"] == (0, 1)
    text, _ = read(result.report(tmp_path / "report.html", Remainder(), (x,), stock=True))
    assert text.count('<figure class="graph">') == 2


class Nested(nn.Module):
    """A remainder inside children of children, whose scopes in a trace repeat their parents' names."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(nn.Sequential(nn.Linear(3, 3), Remainder()), nn.Sequential(Remainder()))

    def forward(self, x):
        return self.blocks(x)


def test_pictures_show_the_change_where_it_is(tmp_path):
    model, x = Nested().eval(), torch.rand(2, 3) * 9
    result = export_compat(model, (x,), exporter="torchscript", dynamic="batch")
    (note,) = result.applied
    assert note.places == ("blocks.0.1", "blocks.1.0")
    report = json.loads(result.report(tmp_path / "r.json", model, (x,), stock=True).read_text(encoding="utf-8"))
    (change,) = report["changes"]
    assert change["place"] == "blocks.0.1"
    assert "Mod" in [node["operator"] for node in change["after"]["nodes"] if node["changed"]]
    assert "Floor" in [node["operator"] for node in change["before"]["nodes"] if node["changed"]]
    text, _ = read(result.report(tmp_path / "r.html", model, (x,), stock=True))
    assert not re.search(r'viewBox="[^"]*-', text)


def test_stock_is_exported_only_where_that_is_asked_for(exported, tmp_path, monkeypatch):
    result, model, image = exported
    monkeypatch.setattr(torch.onnx, "export", None)
    facts = json.loads(result.report(tmp_path / "r.json", model, (image,)).read_text(encoding="utf-8"))
    assert facts["stock"] == ""
    (change,) = facts["changes"]
    assert change["before"] is None
    assert change["after"]["nodes"]
    with pytest.raises(CompatError, match="pass model and args"):
        result.report(tmp_path / "r.json", stock=True)


def test_a_side_without_nodes_is_told():
    drawn = draw({"nodes": [], "edges": [], "more": 0, "there": 0}, "x")
    assert "No nodes" in drawn
    assert "<svg" not in drawn


def test_a_rewritten_decision_is_shown_as_a_diff(tmp_path):
    x = torch.ones(2, 3)
    result = export_compat(Decides(), (x,), exporter="torchscript", samples=[(-x,)])
    text, _ = read(result.report(tmp_path / "report.html"))
    assert "A decision that Python took" in text
    assert re.search(r'<span class="removed">-\s+if x.sum\(\) &gt; 0:', text)


def test_a_drawing_puts_nodes_below_what_they_read():
    part = {
        "nodes": [{"operator": op, "changed": op != "Relu"} for op in ("Relu", "Abs", "Neg", "Add")],
        "edges": [(0, 1), (0, 2), (1, 3), (2, 3)],
        "more": 4,
    }
    drawn = draw(part, "x")
    heights = [float(y) for y in re.findall(r'<text x="[\d.]+" y="([\d.]+)"', drawn)]
    assert heights[0] < heights[1] == heights[2] < heights[3]
    assert drawn.count('class="changed"') == 3
    assert "and 4 more" in drawn
    assert 'aria-label="x: Abs, Neg, Add"' in drawn


def test_the_plot_tells_wrong_layers_by_shape_and_in_words():
    layers = [
        vars(Layer("first", 0.0, 1e-5)),
        vars(Layer("second", 0.5, 1e-5)),
        vars(Layer("third", float("inf"), 1e-5)),
    ]
    drawn = plot(layers)
    assert drawn.count('class="wrong"') == 2
    assert "2 of 3 layers are off by more than rounding, the first at second." in drawn


def test_the_plot_stands_alone_too():
    drawn = plots.draw([vars(Layer("first", 0.0, 1e-5)), vars(Layer("<second>", 0.5, 1e-5))])
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root[0].text == "1 of 2 layers are off by more than rounding, the first at <second>."
    assert "no value inside was compared" in "".join(ElementTree.fromstring(plots.draw([])).itertext())


@pytest.mark.parametrize("target", known_targets())
def test_every_target_has_code_of_its_own(exported, target):
    text = snippet(target, "model.onnx", exported[0].model_proto)
    assert "model.onnx" in text
    if language(target) == "python":
        compile(text, "snippet", "exec")
        assert "(2, 3, 8, 4)" in text
    others = {name: snippet(name, "model.onnx", exported[0].model_proto) for name in known_targets()}
    same = [name for name in others if others[name] == text and name.partition("-")[0] != target.partition("-")[0]]
    assert same == []


class Small(nn.Module):
    """What every engine runs."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.conv(x).relu().mean((2, 3)))


ENGINES_HERE = [
    ("onnxruntime", "onnxruntime"),
    ("openvino", "openvino"),
    ("opencv", "cv2"),
    ("opencv-classic", "cv2"),
    ("tract", "tract"),
    ("mnn", "MNN"),
    ("ncnn", "ncnn"),
    ("tvm", "tvm"),
    ("tflite", "onnx2tf"),
]


@pytest.mark.parametrize(("target", "module"), ENGINES_HERE)
def test_the_code_runs(tmp_path, target, module):
    """In each engine that is installed here; a program of its own, as some of them print and crash."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    model = Small().eval()
    result = export_compat(model, torch.rand(2, 3, 8, 6), tmp_path / "m.onnx", target=target)
    code = (
        snippet(target, "m.onnx", result.model_proto).replace("np.zeros(", "np.full(").replace("), np.", "), 0.5, np.")
    )
    code += (
        "\nfound = outputs[0] if not isinstance(outputs, dict) else outputs['output']\nnp.save('found.npy', found)\n"
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    expected = model(torch.full((2, 3, 8, 6), 0.5)).detach()
    torch.testing.assert_close(torch.from_numpy(np.load(tmp_path / "found.npy")), expected, rtol=1e-3, atol=1e-3)


def test_the_code_of_a_report_runs(exported, tmp_path, monkeypatch):
    result = exported[0]
    monkeypatch.chdir(result.path.parent)
    scope = {}
    exec(snippet("onnxruntime", result.path.name, result.model_proto), scope)
    assert scope["outputs"][0].shape == (2, 3, 3, 5)


def test_the_code_of_a_file_in_eight_bits_adds_up_exactly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = export_compat(nn.Linear(64, 8), torch.ones(1, 64), "narrow.onnx", precision="int8-dynamic")
    scope = {}
    exec(snippet("onnxruntime", "narrow.onnx", result.model_proto), scope)
    assert scope["options"].get_session_config_entry("session.x64quantprecision") == "1"
    assert scope["session"].get_session_options().get_session_config_entry("session.x64quantprecision") == "1"


def test_openvino_s_code_runs_and_holds_the_bounds(tmp_path, monkeypatch):
    pytest.importorskip("openvino")
    path, image = tmp_path / "model.onnx", torch.rand(2, 3, 8, 4)
    result = export_compat(Model().eval(), (image,), path, target="openvino", dynamic={"x": {0: ("batch", 1, 16)}})
    monkeypatch.chdir(tmp_path)
    text, scope = snippet("openvino", path.name, result.model_proto, result.shapes), {}
    assert 'network.reshape({"x": [(1, 16), 3, 8, 4]})' in text
    exec(text, scope)
    assert next(iter(scope["outputs"].values())).shape == (2, 3, 3, 5)


@pytest.mark.parametrize(("target", "program"), [("tensorrt-11", "trtexec"), ("tensorrt-rtx", "tensorrt_rtx")])
def test_the_command_line_of_tensorrt_has_the_shapes(exported, target, program):
    result = exported[0]
    text = snippet(target, result.path.name, result.model_proto, result.shapes)
    assert text.split() == [
        program,
        "--onnx=model.onnx",
        "--saveEngine=model.engine",
        "--minShapes=x:1x3x8x4",
        "--optShapes=x:2x3x8x4",
        f"--maxShapes=x:{max(result.axes[0].tried)}x3x8x4",
    ]


def test_code_has_sizes_that_the_model_takes(tmp_path, monkeypatch):
    """Zeros of size 1 on dynamic axes would be refused here."""

    class AtLeastThree(nn.Module):
        def forward(self, x):
            return nn.functional.conv2d(x, torch.ones(1, 3, 3, 3))

    axes = {"x": {2: "height", 3: "width"}}
    result = export_compat(AtLeastThree().eval(), torch.rand(1, 3, 6, 7), tmp_path / "m.onnx", dynamic=axes)
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(snippet("onnxruntime", "m.onnx", result.model_proto, result.shapes), scope)
    assert scope["outputs"][0].shape == (1, 1, 4, 5)


def test_an_unknown_ending_is_refused(exported, tmp_path):
    with pytest.raises(CompatError, match=r"the ending is '\.pdf'; wanted \.html, \.md, \.json"):
        exported[0].report(tmp_path / "report.pdf")


def test_a_place_nobody_can_write_to_is_named(exported, tmp_path):
    with pytest.raises(CompatError, match="cannot be written"):
        exported[0].report(tmp_path / "nowhere" / "report.md")


def test_the_difference_is_told(exported, tmp_path):
    found = Localisation(True, "pool", "AdaptiveAvgPool2d", "MatMul", "n", "t", "m.py:3", "aten.mean", 1.0, 2.0)
    text, _ = read(write_report(tmp_path / "report.html", exported[0], found))
    assert "first difference at pool (AdaptiveAvgPool2d), m.py:3" in text
    assert "differs from the model that this report was given" in text
    assert '<p class="verdict bad">' in text


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("front", "back"),
    [("text", "back"), ("soft", "back"), ("text", "panel"), ("good", "good-back"), ("bad", "bad-back")],
)
def test_contrast(exported, tmp_path, scheme, front, back):
    text = exported[0].report(tmp_path / "report.html").read_text(encoding="utf-8")
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", text.split(":root")[scheme + 1]))
    low, high = sorted((_luminance(colours[front]), _luminance(colours[back])))
    assert (high + 0.05) / (low + 0.05) >= 4.5
