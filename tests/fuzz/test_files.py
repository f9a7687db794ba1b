"""A small, fixed part of what scripts/fuzz_files.py does: random graphs, and broken files."""

import random
import warnings

import numpy as np
import onnx
import pytest

from fuzz import file_judge, hostile
from fuzz.file_judge import break_file, judge_broken, judge_seed
from fuzz.graphs import draw_graph
from fuzz.hostile import NEVER_RIGHT, SECRET, WAYS
from torch_onnx_compat.files.runner import Runner
from torch_onnx_compat.graph.opset import lowering


@pytest.fixture(scope="module")
def runner():
    with Runner(limit=60) as runner:
        yield runner


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, of overflows in what the graphs compute
        yield


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_graphs(runner, tmp_path, first):
    rows = [judge_seed(seed, runner, tmp_path) for seed in range(first, first + 10)]
    assert {row["verdict"] for row in rows} <= {"converted", "refused", "none"}, rows
    assert sum(row["verdict"] == "converted" for row in rows) >= 5


def test_broken_files(runner, tmp_path):
    rows = [judge_broken(seed, runner, tmp_path) for seed in range(30)]
    assert {row["verdict"] for row in rows} <= {"converted", "refused", "none"}, rows
    assert sum(row["verdict"] == "refused" for row in rows) >= 8


def test_hostile_files(runner, tmp_path):
    rows = [judge_broken(seed, runner, tmp_path, "hostile") for seed in range(2 * len(WAYS))]
    assert {row["verdict"] for row in rows} <= {"converted", "refused", "none"}, rows
    assert {row["how"] for row in rows if row["verdict"] == "refused"} >= NEVER_RIGHT
    assert (tmp_path / SECRET).read_bytes() == bytes(4096)


def test_a_thousand_nested_branches_are_what_they_say():
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    data = hostile.WAYS["a thousand nested branches"](onnx.parser.parse_model(text), None, random.Random(0))
    assert data.count(b"then_branch") >= 1000
    shallow = hostile._if(b"deep", b"", b"")
    assert onnx.GraphProto.FromString(shallow).node[0].attribute[0].type == onnx.AttributeProto.GRAPH


def test_a_graph_is_the_same_for_the_same_seed(runner):
    one, other = (draw_graph(3, runner).SerializeToString() for _ in range(2))
    assert one == other
    assert break_file(one, 5) == break_file(one, 5) != one


def test_graphs_are_of_many_kinds(runner):
    models = [draw_graph(seed, runner, size=3) for seed in range(40)]
    nodes = [node.op_type for model in models if model for node in model.graph.node]
    assert len(set(nodes)) >= 40
    assert len({model.opset_import[0].version for model in models if model}) >= 10
    assert {"If", "Loop"} <= set(nodes)


def test_a_wrong_conversion_would_be_seen(runner, tmp_path, monkeypatch):
    """The judge runs both files itself, on numbers that the proof has not seen."""
    text = """<ir_version: 9, opset_import: ["": 20]> g (float[2, 3] x) => (float[2, 3] y) { y = Gelu(x) }"""
    monkeypatch.setattr(file_judge, "draw_graph", lambda *_: onnx.parser.parse_model(text))
    monkeypatch.setattr(file_judge, "choose_options", lambda _: {"opset": 17})
    assert judge_seed(0, runner, tmp_path)["verdict"] == "converted"
    wrong = {**lowering.RULES["Gelu"], 20: lambda op, node: op.Mul(node.inputs[0], 0.5)}
    monkeypatch.setitem(lowering.RULES, "Gelu", wrong)
    assert judge_seed(0, runner, tmp_path)["verdict"] == "refused"
    monkeypatch.setattr("torch_onnx_compat.files.proof.Proof.compare_outputs", lambda *_: [])
    assert judge_seed(0, runner, tmp_path)["verdict"] == "wrong"
    assert np.isfinite(float(judge_seed(0, runner, tmp_path)["why"].removeprefix("off by ")))


CAST = """<ir_version: 9, opset_import: ["": 19]> g (int64[1] in_1, bool in_2) => (float[M] y) {
    a = Cast<saturate = 3, to = 1>(in_1)
    y = If(in_2) <else_branch = e () => (float[M] p) { p = Relu(a) },
                  then_branch = t () => (float[M] q) { q = Relu(a) }> }"""


@pytest.mark.parametrize(("operator", "is_right"), [("Relu", True), ("Exp", False)])
def test_the_definition_decides_where_onnxruntime_reads_freed_memory(runner, tmp_path, monkeypatch, operator, is_right):
    """onnxruntime 1.32 gives this If the memory of a value that it has freed, and 0 for any number."""
    path, new = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(onnx.parser.parse_model(CAST), path)
    text = f"""<ir_version: 8, opset_import: ["": 18]> g (int64[1] in_1, bool in_2) => (float[M] y) {{
        a = Cast<to = 1>(in_1)  y = {operator}(a) }}"""
    onnx.save(onnx.parser.parse_model(text), new)
    monkeypatch.setattr(file_judge, "_feeds", lambda path, seed: {"in_1": np.array([4]), "in_2": np.array(seed > 0)})
    for seed in (0, 1):
        assert (file_judge._difference(path, new, seed, runner, {}) == "") == is_right
