"""Counting rows, comparing two sweeps, and the page."""

import re

import pytest

from torch_onnx_compat import CompatError
from torch_onnx_compat.sweep import Row
from torch_onnx_compat.sweep.against import changes
from torch_onnx_compat.sweep.page import count_verdicts, page, write_page
from torch_onnx_compat.sweep.summary import best_of_stock, cause, causes_of_failure, count

ROWS = [
    Row("z:a", "ours", "verified", "f", export_s=1.0, nodes=10, memory=100, date="2026-01-02", versions="torch 2"),
    Row("z:b", "ours", "verified", "f", export_s=3.0, nodes=30, memory=300, date="2026-01-01"),
    Row("z:c", "ours", "refused", "g", reason="no symbolic for 'x' (at a.py:3)"),
    Row("z:a", "torch", "wrong", "f", reason="2 of 7 values differ <b>"),
    Row("z:b", "torch", "refused", "f", reason="no symbolic for 'y' (at b.py:4)"),
    Row("z:a", "torchscript", "refused", "f", reason="no symbolic for 'x' (at a.py:3)"),
    Row("z:b", "torchscript", "verified", "f", export_s=2.0, nodes=40, memory=150),
]


def test_counts():
    ours, torch, torchscript = count(ROWS)
    assert (ours.by, ours.verdicts, ours.total) == ("ours", {"verified": 2, "refused": 1}, 3)
    assert (ours.export_s, ours.nodes, ours.memory) == (2.0, 20, 200)
    assert (torch.verdicts, torch.export_s) == ({"wrong": 1, "refused": 1}, 0.0)
    assert torchscript.nodes == 40


def test_the_better_of_torchs_two():
    assert best_of_stock(ROWS) == {"z:a": "wrong", "z:b": "verified"}


def test_causes():
    found = [(verdict, reason, [row.spec for row in held]) for verdict, reason, held in causes_of_failure(ROWS)]
    assert found[0] == ("refused", "no symbolic for 'x' (at a.py:3)", ["z:c", "z:b", "z:a"])
    assert found[1][0] == "wrong"
    assert cause("3 of 70 values of 'a'") == cause("12 of 9 values of 'b'")


def test_changes():
    new = [
        Row("z:a", "ours", "refused", reason="now"),
        Row("z:b", "ours", "verified", export_s=9.0, nodes=31),
        Row("z:c", "ours", "verified"),
        Row("z:d", "ours", "refused"),
    ]
    assert [(c.kind, c.spec, c.text) for c in changes(ROWS, new)] == [
        ("newly failing", "z:a", "refused: now"),
        ("newly passing", "z:c", "was refused: no symbolic for 'x' (at a.py:3)"),
        ("slower", "z:b", "3.0 s -> 9.0 s"),
        ("larger", "z:b", "30 nodes -> 31"),
    ]
    assert changes(ROWS, ROWS) == []


def test_the_page(tmp_path):
    text = page(ROWS, changes(ROWS[3:4], [Row("z:a", "torch", "verified")]))
    assert "Measured 2026-01-01 to 2026-01-02 for onnxruntime, with torch 2." in text
    assert "2 of 7 values differ &lt;b&gt;" in text
    assert "newly passing" in text
    assert "<title>Sweep</title>" in text
    assert '<a href="#models" data-zoo="z" data-by="export_compat" data-verdict="verified">2</a>' in text
    assert text.count('<tr data-zoo="') == len(ROWS)
    assert "<h1>The scoreboard</h1>" in page(ROWS, title="The scoreboard")
    assert "http" not in text
    assert "<img" not in page(ROWS[:3])  # one exporter is no comparison
    assert 'alt="export_compat: 2 verified; torch.onnx.export: 1 wrong, 1 refused;' in text
    lines = [line for line in count_verdicts(ROWS, lambda row: row.family) if line[1].endswith("better of both")]
    assert [line[:5] for line in lines] == [("f", "torch.onnx.export, better of both", "2", "1", "1")]
    assert write_page(tmp_path / "a.html", ROWS).read_text(encoding="utf-8") == page(ROWS)
    with pytest.raises(CompatError, match="cannot be written: No such file"):
        write_page(tmp_path / "nowhere" / "a.html", ROWS)


def test_targets_are_columns():
    other = [
        Row("z:a", "ours", "verified", "f", target="openvino"),
        Row("z:b", "ours", "wrong", "f", target="openvino"),
        Row("z:d", "ours", "verified", "g", target="openvino"),
    ]
    text = page([*ROWS, *other])
    assert "<h2>Engines</h2>" in text
    (head,) = re.findall(r'aria-label="Engines" style="[^"]*"><thead><tr>(.*?)</tr>', text)
    assert re.findall(r">([^<]+)</th>", head) == ["model", "onnxruntime", "openvino"]
    (body,) = re.findall(r'aria-label="Engines".*?<tbody>(.*?)</tbody>', text)
    lines = [re.sub("<[^>]*>", "|", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]
    cells = [[cell for cell in line.split("|") if cell] for line in lines]
    assert cells[0][-2:] == ["2 of 2", "1 of 2"]  # z:d was exported for one target alone
    assert [line[-2:] for line in cells[1:]] == [["verified", "verified"], ["verified", "wrong"]]
    assert 'data-model="z:b" data-target="openvino">wrong</a>' in text
    zoos = text[text.index("<h2>Zoos") : text.index("<h2>Engines")]
    assert 'data-by="export_compat" data-target="onnxruntime">3</a>' in zoos  # the counts are of one target
    assert "Engines" not in page(ROWS)
    assert "data-target" not in page(ROWS)
