"""docs/files.md: every command on the page runs, on the files that the page makes."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import torch_onnx_compat
from torch_onnx_compat.cli import app

ROOT = Path(torch_onnx_compat.__file__).parents[1]
PAGE = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
COMMANDS = [
    line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the files that the page's first program makes."""
    folder = tmp_path_factory.mktemp("page")
    program = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", program], cwd=folder, env=env, check=True, timeout=300)
    return folder


@pytest.fixture
def folder(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


@pytest.mark.slow
def test_every_command_runs_in_the_order_of_the_page(folder):
    assert len(COMMANDS) >= 20
    for command in COMMANDS:
        words = shlex.split(command)
        assert words[0] == "torch-onnx-compat"
        done = run(*words[1:])
        assert done.exit_code == 0, f"{command}\n{done.output}"
    assert onnx.load("old.onnx").opset_import[0].version == 11
    assert [d.dim_value for d in onnx.load("board.onnx").graph.input[0].type.tensor_type.shape.dim] == [1, 3, 16, 16]


def test_json_is_json_alone(folder):
    done = run("convert", "model.onnx", "-o", "j.onnx", "--opset", "13", "--json")
    told = json.loads(done.stdout)
    assert (told["opset"], told["judges"], done.exit_code) == (13, ["onnxruntime"], 0)
    assert json.loads(run("compare", "model.onnx", "j.onnx", "--json").stdout)["equal"] is True
    rows = json.loads(run("run", "model.onnx", "--json", "--sizes", "batch=5").stdout)
    assert rows[0]["shape"].startswith("5x3x")
    few = ("--rounds", "1", "--runs", "1", "--json")
    rows = json.loads(run("bench", "fixed.onnx", "--target", "ort, onnxruntime", *few).stdout)
    assert [row["engine"].split()[0] for row in rows] == ["onnxruntime", "onnxruntime"]
    assert rows[0]["median_ms"] > 0


def test_a_difference_exits_with_3(folder):
    model = onnx.load("model.onnx")
    gemm = next(node for node in model.graph.node if node.op_type == "Gemm")
    kept = [attribute for attribute in gemm.attribute if attribute.name != "alpha"]
    del gemm.attribute[:]
    gemm.attribute.extend([*kept, onnx.helper.make_attribute("alpha", 1.5)])
    onnx.save(model, "planted.onnx")
    done = run("compare", "model.onnx", "planted.onnx", "--layers", "--plot", "errors.svg")
    assert done.exit_code == 3
    assert "layers are off by more than rounding, the first at Gemm" in Path("errors.svg").read_text()
    assert "first difference at Gemm" in done.stdout
    assert "WRONG" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["convert", "nothing.onnx", "-o", "x.onnx"], 2, "nothing.onnx: no such file."),
        (["convert", "model.onnx", "-o", "x.onnx", "--target", "opencvv"], 2, "did you mean 'opencv'?"),
        (["convert", "model.onnx", "-o", "x.onnx", "--static", "batch"], 2, "--static 'batch': wanted the name"),
        (["convert", "model.onnx", "-o", "x.onnx", "--static", "batch=1,2"], 2, "one size, e.g. batch=1"),
        (["convert", "model.onnx", "-o", "nowhere/x.onnx"], 2, "there is no folder"),
        (["convert", "model.onnx", "-o", "model.onnx", "--opset", "11"], 2, "is the original itself"),
        (["convert", "model.onnx", "-o", "x.onnx", "--input", "model.onnx"], 2, "cannot be read as an .npz"),
        (["convert", "pictures.npz", "-o", "x.onnx"], 2, "no ONNX file"),
        (["convert", "model.onnx", "-o", "x.onnx", "--target", "rknn"], 1, "takes fixed shapes only"),
        (["convert", "model.onnx", "-o", "x.onnx", "--set", "pads=1"], 2, "--set 'pads=1': wanted a node"),
        (["convert", "model.onnx", "-o", "x.onnx", "--rename", "output"], 2, "--rename 'output': wanted an old"),
        (["convert", "model.onnx", "-o", "x.onnx", "--constant", "input=zeros"], 2, "wanted a number, a list"),
        (["convert", "model.onnx", "-o", "x.onnx", "--constant", "input=nothing.npy"], 2, "cannot be read"),
        (["convert", "model.onnx", "-o", "x.onnx", "--preprocess", "mea=1"], 2, "did you mean 'mean'?"),
        (["convert", "model.onnx", "-o", "x.onnx", "--preprocess", "layout=HW"], 2, "unknown layout of Normalize 'HW'"),
        (["convert", "model.onnx", "-o", "x.onnx", "--postprocess", "form=nsm"], 2, "unknown form of Detections 'nsm'"),
        (["convert", "model.onnx", "-o", "x.onnx", "--outputs", "outptu"], 2, "did you mean 'output'?"),
        (["convert", "model.onnx", "-o", "x.onnx", "--dynamic", "auto"], 2, "of a file, wanted batch"),
        (["convert", "model.onnx", "-o", "x.onnx", "--dynamic", "input:1=c:1..5"], 2, "of a file, wanted batch"),
        (["convert", "model.onnx", "-o", "x.onnx", "--precision", "float15"], 2, "unknown precision 'float15'"),
        (["convert", "model.onnx", "-o", "x.onnx", "--calibration", "pictures.npz"], 2, "belongs to --precision int8"),
        (["bench", "model.onnx", "--batch", "one"], 2, "--batch 'one': wanted sizes of axis 0"),
        (["bench", "fixed.onnx", "--batch", "1,2"], 1, "axis 0 of its inputs is fixed"),
        (["bench", "model.onnx", "--plot", "nowhere/x.svg"], 2, "there is no folder"),
        (["compare", "model.onnx", "fixed.onnx", "--plot", "x.svg"], 2, "add --layers"),
        (["compare", "model.onnx", "fixed.onnx", "--layers", "--plot", "nowhere/x.svg"], 2, "there is no folder"),
        (["compare", "model.onnx"], 2, "give another file or a model, or --target"),
        (["compare", "model.onnx", "--target", "nothing"], 2, "unknown engine 'nothing'"),
        (["run", "model.onnx", "--sizes", "batch"], 2, "--sizes 'batch': wanted the name of a dynamic axis"),
        (["run", "model.onnx", "--target", "opnvino"], 2, "did you mean 'openvino'?"),
        (["bench", "model.onnx", "--target", "onnxruntime,opnvino"], 2, "did you mean 'openvino'?"),
        (["bench", "model.onnx", "--rounds", "0"], 2, "--rounds 0"),
    ],
)
def test_what_is_wrong_is_one_message_and_an_exit_code(folder, words, code, message):
    done = run(*words)
    assert done.exit_code == code, done.output
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert not Path("x.onnx").exists()


def test_one_array_without_a_name(folder):
    np.save("one.npy", np.zeros(3, np.float32))
    done = run("run", "model.onnx", "--input", "one.npy")
    assert done.exit_code == 2
    assert "one array without a name" in done.stderr
