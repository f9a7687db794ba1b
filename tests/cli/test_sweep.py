"""`torch-onnx-compat sweep`: what is swept, what is shown, what it exits with."""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from torch_onnx_compat import cli
from torch_onnx_compat.sweep import Row, read_rows
from torch_onnx_compat.sweep.sweep import Progress

MODELS = Path(__file__).parents[1] / "sweep" / "models.py"


@pytest.fixture
def swept(monkeypatch):
    """What sweep() was asked for; its rows are made up."""
    asked = {}

    def made_up(specs, output, *, by, progress, **options):
        asked.update(specs=list(specs), output=output, by=tuple(by), **options)
        rows = [Row(spec, one, "verified", nodes=3, export_s=1.0) for spec, _ in specs for one in by]
        rows = [Row(r.spec, r.by, "wrong", reason="off") if "bad" in r.spec else r for r in rows]
        progress(Progress(len(rows), 0))
        for row in rows:
            progress(Progress(len(rows), 0, row))
        return rows

    monkeypatch.setattr(import_module("torch_onnx_compat.sweep.sweep"), "sweep", made_up)
    return asked


def _run(*arguments):
    return CliRunner().invoke(cli.app, ["sweep", *map(str, arguments)])


def test_a_zoo_is_filtered(swept):
    assert (
        _run("timm", "--filter", "vit_tiny_*_224", "--jobs", 2, "--time-limit", 9, "--memory-limit", 700).exit_code == 0
    )
    assert ("timm:vit_tiny_patch16_224", None) in swept["specs"]
    assert all(spec.startswith("timm:vit_tiny_") for spec, _ in swept["specs"])
    assert (swept["jobs"], swept["seconds"], swept["memory"], swept["by"]) == (2, 9.0, 700, ("ours",))
    assert swept["output"] == Path("sweep.jsonl")


def test_a_random_choice_has_a_seed(swept):
    def drawn(seed):
        assert _run("timm", "--random", 5, "--seed", seed).exit_code == 0
        return swept["specs"]

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(drawn(1)) == 5


def test_a_list_gives_sizes(swept, tmp_path):
    path = tmp_path / "models.txt"
    path.write_text("# chosen\ntimm:resnet18 64x96\n\ntorchvision:alexnet\n")
    assert _run(f"@{path}", "--stock", "--size", "32x32").exit_code == 0
    assert swept["specs"] == [("timm:resnet18", (64, 96)), ("torchvision:alexnet", None)]
    assert swept["by"] == ("ours", "torch", "torchscript")
    assert swept["size"] == (32, 32)


def test_what_changed_is_told(swept, tmp_path):
    old = tmp_path / "old.jsonl"
    old.write_bytes(Row("a:b", "ours", "refused", reason="no").to_line())
    run = _run("a:b", "--against", old, "--report", tmp_path / "zoo.html")
    assert run.exit_code == 0
    assert "newly passing" in run.stdout
    assert "1 verified" in run.stdout
    assert "newly passing" in (tmp_path / "zoo.html").read_text(encoding="utf-8")
    found = json.loads(_run("a:b", "--against", old, "--json").stdout)
    assert found["counts"][0]["verdicts"] == {"verified": 1}
    assert found["changes"][0]["kind"] == "newly passing"


def test_a_wrong_file_is_exit_code_3(swept):
    run = _run("a:bad", "a:good")
    assert run.exit_code == 3
    assert "a:bad ours: wrong: off" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nozoo"], "unknown zoo 'nozoo'"),
        (["timm", "--filter", "no*such"], r"no model of timm matches 'no\*such'"),
        (["@nowhere.txt"], "nowhere.txt: cannot be read"),
        (["a:b", "--target", "nowhere"], "unknown target 'nowhere'"),
        (["a:b", "--against", "nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
    ],
)
def test_misuse_is_exit_code_2(swept, arguments, message):
    run = _run(*arguments)
    assert run.exit_code == 2
    assert re.search(message, run.stderr)
    assert not swept


def test_an_engine_that_is_not_there_is_told(swept, monkeypatch):
    monkeypatch.setattr("torch_onnx_compat.engines.ENGINES", {})
    assert "tract is not installed here: files are run in onnxruntime only" in _run("a:b", "--target", "tract").stderr
    assert "not installed" not in _run("a:b").stderr


@pytest.mark.slow
def test_for_real(tmp_path):
    output = tmp_path / "rows.jsonl"
    run = _run(f"{MODELS}:double", f"{MODELS}:raises", "--output", output)
    assert run.exit_code == 0, run.output
    assert "1 verified, 1 not built" in run.stdout
    assert {row.verdict for row in read_rows(output)} == {"verified", "not built"}
