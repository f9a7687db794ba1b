"""A project's exports in torch_onnx_compat.toml or pyproject.toml."""

import json
import os
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from torch_onnx_compat.cli import app

NET = """
import torch
from torch import nn

def make():
    return nn.Conv2d(3, 2, 1).eval(), torch.rand(2, 3, 4, 4)

def broken():
    raise ValueError("no weights")
"""

PROJECT = """
[defaults]
opset = 17

[export.first]
model = "net.py:make"
output = "first.onnx"
dynamic = "input:0=batch"
no-verify = true

[export.second]
model = "net.py:make"
output = "second.onnx"
opset = 18
outputs = [""]
dynamic = ["input:0=batch", "input:2=height"]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "torch_onnx_compat.toml").write_text(PROJECT)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def run(*args):
    return CliRunner().invoke(app, ["export", *args])


def opset(path):
    return onnx.load(path).opset_import[0].version


def axes(path):
    return [dim.dim_param or dim.dim_value for dim in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]


def test_an_export_is_made_by_its_name_from_anywhere_in_the_project(project):
    done = run("first")
    assert done.exit_code == 0, done.stderr
    assert "NOT verified" in done.stdout
    assert opset(project / "first.onnx") == 17
    assert axes(project / "first.onnx")[0] == "batch"
    assert Path.cwd() == project / "below"


def test_the_command_line_goes_before_the_file(project):
    assert run("--opset", "16", "first", "-o", "other.onnx").exit_code == 0
    assert opset(project / "other.onnx") == 16
    assert not (project / "first.onnx").exists()


def test_an_option_with_the_value_of_a_name_is_no_name(project):
    assert run("-o", "first", "first").exit_code == 0
    assert opset(project / "first") == 17


def test_all_exports(project):
    done = run("--all", "--json")
    assert done.exit_code == 0, done.stderr
    assert "2 of 2 exports made." in done.stderr
    assert (opset(project / "first.onnx"), opset(project / "second.onnx")) == (17, 18)
    assert axes(project / "second.onnx")[:3] == ["batch", 3, "height"]
    first, end = json.JSONDecoder().raw_decode(done.stdout)
    assert first["path"] == "first.onnx"
    assert json.loads(done.stdout[end:])["path"] == "second.onnx"


def test_all_exports_go_on_after_one_that_failed(project):
    text = PROJECT.replace("net.py:make", "net.py:broken", 1)
    (project / "torch_onnx_compat.toml").write_text(text)
    done = run("--all")
    assert done.exit_code == 2
    assert "1 of 2 exports made; not first." in done.stderr
    assert (project / "second.onnx").exists()


def test_pyproject_holds_exports_too(project):
    (project / "torch_onnx_compat.toml").unlink()
    assert "no exports are named" in run("--all").stderr.replace("\n", " ")
    lines = PROJECT.replace("[defaults]", "[tool.torch_onnx_compat.defaults]").replace(
        "[export.", "[tool.torch_onnx_compat.export."
    )
    (project / "pyproject.toml").write_text(lines)
    assert run("first").exit_code == 0
    assert opset(project / "first.onnx") == 17


@pytest.mark.parametrize(
    ("text", "argument", "message"),
    [
        (PROJECT, "frist", "unknown export 'frist'; did you mean 'first'?"),
        (PROJECT.replace("opset = 17", "opzet = 17"), "first", "unknown option 'opzet'; did you mean 'opset'?"),
        (PROJECT.replace("opset = 17", "opset = 'new'"), "first", "Invalid value for '--opset'"),
        (PROJECT.replace("[defaults]", "[default]"), "first", "unknown section 'default'; did you mean 'defaults'?"),
        (PROJECT.replace('model = "net.py:make"', ""), "first", "export 'first' has no 'model'"),
        (PROJECT.replace('output = "first.onnx"', ""), "first", "Missing option '--output'"),
        ("[defaults", "first", "is no TOML"),
        ("export = 3", "first", "wanted one for each export: [export.NAME]"),
    ],
)
def test_a_wrong_file_is_told(project, text, argument, message, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    (project / "torch_onnx_compat.toml").write_text(text)
    done = run(argument)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (project / "first.onnx").exists()


def test_without_a_project_a_name_is_a_spec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "spec 'first': wanted 'zoo:model'" in run("first", "-o", os.devnull + ".onnx").stderr
    alone = run("first")
    assert alone.exit_code == 2
    assert "there is no torch_onnx_compat.toml" in " ".join(alone.stderr.replace("│", " ").split())


def test_an_export_without_a_model_stops_no_other(project):
    (project / "torch_onnx_compat.toml").write_text(PROJECT.replace('model = "net.py:make"', "", 1))
    assert run("second").exit_code == 0
    done = run("--all")
    assert done.exit_code == 2
    assert "export 'first' has no 'model'" in " ".join(done.stderr.split())
    assert "1 of 2 exports made; not first." in done.stderr
