"""A project's exports in torch_onnx_compat.toml or pyproject.toml."""

import json
import os
import sys
from pathlib import Path

import onnx
import pytest
import torch
from torch import nn
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
    assert opset(project / "below" / "other.onnx") == 16
    assert not (project / "first.onnx").exists()


def test_an_option_with_the_value_of_a_name_is_no_name(project):
    assert run("-o", "first", "first").exit_code == 0
    assert opset(project / "below" / "first") == 17


def test_all_exports(project):
    done = run("--all", "--json")
    assert done.exit_code == 0, done.stderr
    assert "2 of 2 exports made." in done.stderr
    assert (opset(project / "first.onnx"), opset(project / "second.onnx")) == (17, 18)
    assert axes(project / "second.onnx")[:3] == ["batch", 3, "height"]
    paths = {name: document["path"] for name, document in json.loads(done.stdout).items()}
    assert paths == {"first": os.path.join("..", "first.onnx"), "second": os.path.join("..", "second.onnx")}


def test_all_exports_go_on_after_one_that_failed(project):
    text = PROJECT.replace("net.py:make", "net.py:broken", 1)
    (project / "torch_onnx_compat.toml").write_text(text)
    done = run("--all")
    assert done.exit_code == 2
    assert "1 of 2 exports made; not first." in done.stderr
    assert (project / "second.onnx").exists()


def test_the_json_of_all_exports_has_failed_ones_by_name_too(project):
    text = PROJECT.replace("net.py:make", "net.py:broken", 1).replace("opset = 18", "opzet = 18")
    (project / "torch_onnx_compat.toml").write_text(text + '[export.third]\nmodel = "net.py:make"\noutput = "3.onnx"\n')
    done = run("--all", "--json")
    documents = json.loads(done.stdout)
    assert list(documents) == ["first", "second", "third"]
    assert "no weights" in documents["first"]["error"]
    assert "unknown option 'opzet'" in documents["second"]["error"]
    assert documents["third"]["path"] == os.path.join("..", "3.onnx")


def test_a_wrong_command_line_is_told_as_json_too(project):
    done = run("first", "--json", "--opset", "new")
    assert done.exit_code == 2
    document = json.loads(done.stdout)
    assert (document["kind"], document["exit_code"]) == ("UsageError", 2)
    assert "--opset" in document["error"]
    assert "--opset" in done.stderr


def test_paths_are_taken_from_where_they_are_written(project):
    (project / "weights").mkdir()
    torch.save(nn.Conv2d(3, 2, 1).state_dict(), project / "weights" / "of_file.pt")
    torch.save(nn.Conv2d(3, 2, 1).state_dict(), project / "below" / "of_line.pt")
    lines = 'model = "net.py:make"\nweights = "weights/of_file.pt"\nreport = "page.md"\n'
    (project / "torch_onnx_compat.toml").write_text(f'[export.first]\noutput = "first.onnx"\n{lines}')
    done = run("first")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(os.path.join("..", "first.onnx"))
    assert (project / "page.md").is_file()
    done = run("first", "-o", "here.onnx", "--weights", "of_line.pt", "--report", "here.md")
    assert done.exit_code == 0, done.stderr
    assert (project / "below" / "here.onnx").is_file()
    assert (project / "below" / "here.md").is_file()


def test_a_module_of_the_project_is_found_from_below(project):
    (project / "net_of_project.py").write_text(NET)
    text = PROJECT.replace("net.py:make", "net_of_project:make")
    (project / "torch_onnx_compat.toml").write_text(text)
    before = list(sys.path)
    assert run("first").exit_code == 0
    assert sys.path == before


def test_a_name_may_hold_a_dot(project):
    (project / "torch_onnx_compat.toml").write_text(PROJECT.replace("export.first", 'export."v1.2"'))
    assert run("v1.2").exit_code == 0
    assert "2 of 2 exports made." in run("--all").stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--all", "first"), "--all makes every export and takes no name; leave out one of --all and 'first'."),
        (("--all", "-o", "one.onnx"), "--output one.onnx would be written by every export"),
    ],
)
def test_all_refuses_what_is_of_one_export(project, words, message, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    done = run(*words)
    assert done.exit_code == 2
    assert done.stderr.count(message) == 1
    assert not (project / "first.onnx").exists()


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
        (PROJECT.replace("export.second", 'export."a:b"'), "first", "a name with ':' or a slash is that of a model"),
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
