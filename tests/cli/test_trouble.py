"""The commands for when something goes wrong: explain, doctor, and export's report."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from torch_onnx_compat.cli import app

MODEL = """
import torch
from torch import nn

class Good(nn.Module):
    def forward(self, x):
        return torch.relu(x)

class Bad(nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(x)

def good():
    return Good().eval(), torch.ones(2, 3)

def bad():
    return Bad().eval(), torch.ones(2, 3)
"""

ERROR = "RuntimeError: adapter_lookup: Assertion `false` failed: No Adapter To Version $17 for Pad"


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(MODEL)
    return f"{tmp_path}/net.py"


def run(*args, **options):
    return CliRunner().invoke(app, [str(arg) for arg in args], **options)


def test_explain_takes_a_text_a_file_or_standard_input(tmp_path):
    (tmp_path / "log.txt").write_text(f"line\n{ERROR}\nline\n")
    results = [run("explain", ERROR), run("explain", tmp_path / "log.txt"), run("explain", input=ERROR)]
    for result in results:
        assert result.exit_code == 0
        assert result.stdout.startswith("cause     onnx's converter cannot write this operator at the lower opset\n")
        assert "\naction    " in result.stdout


def test_explain_as_json():
    (found,) = json.loads(run("explain", ERROR, "--json").stdout)
    assert found["name"] == "converter_adapter"


def test_explain_says_when_it_knows_nothing():
    result = run("explain", "something else")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "nothing known is said here." in result.stderr


def test_explain_tells_that_a_file_is_missing(tmp_path):
    result = run("explain", tmp_path / "absent.txt")
    assert result.exit_code == 2
    assert "absent.txt: no such file." in result.stderr


def test_doctor_is_silent_on_a_healthy_model(model):
    result = run("doctor", f"{model}:good")
    assert result.exit_code == 0
    assert result.stdout == "nothing stands in the way.\n"


def test_doctor_exits_with_1_where_something_stands_in_the_way(model):
    result = run("doctor", f"{model}:bad", "--json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)["findings"]
    assert finding["severity"] == "error"
    assert "bessel_j0" in finding["what"]
    assert "bessel_j0" in run("doctor", f"{model}:bad").stdout


def test_export_writes_a_report(model, tmp_path):
    result = run("export", f"{model}:good", "-o", tmp_path / "net.onnx", "--report", tmp_path / "net.md")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "net.md").read_text().startswith("# net.onnx: Verified on")


def test_a_failed_export_writes_a_report_too(model, tmp_path):
    result = run("export", f"{model}:bad", "-o", tmp_path / "net.onnx", "--report", tmp_path / "net.html")
    assert result.exit_code == 1
    assert "diagnosis: " in result.stderr
    assert "No file was made" in (tmp_path / "net.html").read_text()
    assert not (tmp_path / "net.onnx").exists()
