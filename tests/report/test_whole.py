"""The whole graph of a report: its data, and the layout that the page's script makes of it."""

import base64
import json
import re
import shutil
import subprocess
import zlib
from importlib import resources
from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.report import module_paths
from torch_onnx_compat.report.whole import pack, whole_graph

LAYOUT = resources.files("torch_onnx_compat.report").joinpath("layout.js")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 3, padding=1), nn.GroupNorm(2, 4)

    def forward(self, x):
        return x + self.norm(self.conv(x)).relu()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 1)
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, image):
        return self.blocks(self.stem(image)).amax((2, 3))


@pytest.fixture(scope="module", params=["torchscript", "dynamo"])
def made(request):
    model, image = Net().eval(), torch.rand(1, 3, 8, 6)
    result = export_compat(model, (image,), dynamic="batch", exporter=request.param)
    return result, module_paths(model, (image,))


def test_nodes_stand_in_their_modules(made):
    result, modules = made
    data = whole_graph(result.model_proto, result.target, modules, changed=["blocks.1"], wrong=["stem"])
    nodes = data["graph"]["nodes"]
    assert len(nodes) == sum(n for op, n in result.nodes.items() if op != "Constant")
    where = {data["modules"][node[2]] for node in nodes if node[0] == "Conv"}
    assert where == {"stem", "blocks.0.conv", "blocks.1.conv"}
    classes = dict(zip(data["modules"], data["classes"], strict=True))
    assert classes["blocks.0.conv"] == "Conv2d"
    assert [data["modules"][i] for i in data["wrong"]] == ["stem"]
    (image,) = data["graph"]["inputs"]
    name, kind, _ = data["values"][image]
    assert (name, data["types"][kind]) == ("image", "float batch \u00d7 3 \u00d7 8 \u00d7 6")
    first = next(node for node in nodes if image in node[3])
    assert first[0] == "Conv"
    assert "kernel_shape=[1, 1]" in first[5]
    assert [data["values"][v][2] for v in first[3]] == [1, 2, 2]  # the image, then weights


def test_modules_are_told_by_the_file_alone(made):
    result, modules = made
    known, alone = (whole_graph(result.model_proto, result.target, m) for m in (modules, ()))
    paths = [
        [data["modules"][node[2]] for node in data["graph"]["nodes"] if node[0] == "Conv"] for data in (known, alone)
    ]
    assert paths[0] == paths[1]


def test_what_a_target_does_not_run_is_told():
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 3))
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ())
    graph = helper.make_graph([helper.make_node("Det", ["x"], ["y"], name="n")], "g", [info], [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    told = {name: whole_graph(model, name)["graph"]["nodes"][0][6] for name in ("onnxruntime", "ncnn", "some/p.toml")}
    assert told["ncnn"]
    assert told["onnxruntime"] == told["some/p.toml"] == ""


def test_the_data_of_a_page_is_packed(made, tmp_path):
    result, modules = made
    data = whole_graph(result.model_proto, result.target, modules)
    assert json.loads(zlib.decompress(base64.b64decode(pack(data)))) == json.loads(json.dumps(data))
    text = result.report(tmp_path / "r.html", Net().eval(), (torch.rand(1, 3, 8, 6),)).read_text(encoding="utf-8")
    (held,) = re.findall(r'id="whole-data">([A-Za-z0-9+/=]+)<', text)
    assert len(json.loads(zlib.decompress(base64.b64decode(held)))["graph"]["nodes"]) == len(data["graph"]["nodes"])
    facts = json.loads(result.report(tmp_path / "r.json").read_text(encoding="utf-8"))
    assert "whole" not in facts


PROGRAM = """
const { buildTree, layout, openTo, openGroup } = require(process.argv[1]);
const data = JSON.parse(require("fs").readFileSync(0, "utf8"));
const tree = buildTree(data);
openGroup(tree.root);
const measure = (text) => 7 * text.length;
const told = (drawn) => ({
  w: drawn.w,
  back: drawn.lines.filter((line) => line.back).length,
  boxes: drawn.boxes.map(({ item, ...b }) => ({ key: item.key, label: item.label, parent: item.parent.key, ...b })),
  points: drawn.lines.flatMap((l) => l.points).flat().every(Number.isFinite),
});
const closed = told(layout(tree, measure));
for (const leaf of tree.leaves) openTo(leaf);
const open = told(layout(tree, measure));
const edges = tree.edges.map((edge) => [edge.from.label, edge.to.label]);
console.log(JSON.stringify({ closed, open, leaves: tree.leaves.length, edges }));
"""


def drawn(data):
    """What the page's script makes of a graph, closed and with every module open."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    run = subprocess.run(
        [node, "-e", PROGRAM, str(LAYOUT)], input=json.dumps(data), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def overlap(boxes):
    """Boxes of one parent that cover each other."""
    return [
        (a["key"], b["key"])
        for i, a in enumerate(boxes)
        for b in boxes[:i]
        if a["parent"] == b["parent"]
        and min(a["x"] + a["w"], b["x"] + b["w"]) - max(a["x"], b["x"]) > 0.01
        and min(a["y"] + a["h"], b["y"] + b["h"]) - max(a["y"], b["y"]) > 0.01
    ]


def check_boxes(told):
    assert told["points"]
    assert overlap(told["boxes"]) == []
    frames = {box["key"]: box for box in told["boxes"] if box["open"]}
    for box in told["boxes"]:
        frame = frames.get(box["parent"])
        if frame:
            assert frame["x"] <= box["x"]
            assert box["x"] + box["w"] <= frame["x"] + frame["w"] + 0.01
            assert frame["y"] <= box["y"]
            assert box["y"] + box["h"] <= frame["y"] + frame["h"] + 0.01
        assert box["x"] >= 0
        assert box["x"] + box["w"] <= told["w"] + 0.01


def test_modules_are_boxes_that_open(made):
    result, modules = made
    data = whole_graph(result.model_proto, result.target, modules)
    told = drawn(data)
    labels = [box["label"] for box in told["closed"]["boxes"]]
    assert {"image", "Conv", "blocks", "output"} <= set(labels)
    assert len(labels) <= 6
    opened = [box["label"] for box in told["open"]["boxes"]]
    assert {"blocks", "0", "1"} <= set(opened)
    assert opened.count("Conv") == 3
    assert told["leaves"] == len(data["graph"]["nodes"]) + 2
    places = {box["label"]: box["y"] for box in told["closed"]["boxes"]}
    assert places["image"] < places["Conv"] < places["blocks"] < places["output"]
    for side in ("closed", "open"):
        check_boxes(told[side])


class Twice(nn.Module):
    """A module that runs before and after another one: the edges between the two go both ways."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())
        self.b = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x):
        return self.a(self.b(self.a(x)))


class Decides(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            for _ in range(int(x[0, 0])):
                x = x * 2
            return x
        return x - torch.ones_like(x).cumsum(1)


@pytest.mark.parametrize(
    ("model", "args", "options"),
    [
        (Twice(), (torch.rand(2, 4),), {}),
        (Decides(), (torch.full((2, 4), 3.0),), {"samples": [(torch.full((2, 4), -3.0),)]}),
        (Net(), (torch.rand(1, 3, 8, 6),), {"keep_as_function": ["Block"]}),
    ],
    ids=["twice", "bodies", "functions"],
)
def test_cycles_bodies_and_functions(model, args, options):
    result = export_compat(model.eval(), args, exporter="torchscript", **options)
    told = drawn(whole_graph(result.model_proto, result.target, module_paths(model, args)))
    check_boxes(told["closed"])
    check_boxes(told["open"])
    assert len(told["open"]["boxes"]) >= sum(n for op, n in result.nodes.items() if op != "Constant")
    if isinstance(model, Twice):
        assert told["closed"]["back"] == 1
    if isinstance(model, Net):  # the calls of one function are told apart: no edge leads from one into the other
        assert sum(pair[0] == "Conv" for pair in told["edges"]) == 3


def test_a_flat_graph_is_shown_in_parts():
    """3,000 nodes without modules, as other tools write them."""
    count = 3000
    nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(count)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,)) for name in ("t0", f"t{count}")]
    model = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 18)]
    )
    onnx.checker.check_model(model)
    data = whole_graph(model, "onnxruntime")
    told = drawn(data)
    assert 2 < len(told["closed"]["boxes"]) <= 100
    assert told["leaves"] == count + 2
    check_boxes(told["closed"])
    assert len(pack(data)) < 60_000


def test_the_scripts_stand_beside_the_page():
    folder = Path(str(LAYOUT)).parent
    assert {path.name for path in folder.glob("*.js")} == {"layout.js", "tables.js", "view.js"}
