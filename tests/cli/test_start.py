"""How fast the command line answers: without torch, until there is a model to load."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import torch_onnx_compat

SLOW = ("torch", "torchvision", "onnx", "onnx_ir", "onnxruntime", "onnxscript", "numpy")
"""Packages that take a tenth of a second and more to import."""

WATCHED = """
import json, sys
from torch_onnx_compat.cli import main
try:
    main(sys.argv[2:])
except SystemExit as exit:
    code = exit.code
open(sys.argv[1], "w").write(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


@pytest.fixture
def run(tmp_path):
    """Runs a command line in a fresh process; its exit code, the slow packages that it imported, and what it said."""
    (tmp_path / "net.py").write_text("raise SystemExit('the model was loaded')\n")

    def run(*argv):
        done = subprocess.run(
            [sys.executable, "-c", WATCHED, tmp_path / "seen.json", *argv],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(torch_onnx_compat.__file__).parents[1]), "COLUMNS": "300"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        code, imported = json.loads((tmp_path / "seen.json").read_text())
        return code or 0, sorted(set(imported) & set(SLOW)), done.stdout + done.stderr

    return run


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("--help",), 0, "Exports PyTorch models to ONNX"),
        (("export", "-h"), 0, "How it is proven"),
        (("--version",), 0, f"torch-onnx-compat {torch_onnx_compat.__version__} (Python "),
        (("targets",), 0, "tensorrt"),
        (("zoo",), 0, "timm"),
        (("exprot",), 2, "did you mean 'export'?"),
        (("export", "timms:resnet18", "-o", "m.onnx"), 2, "did you mean 'timm'?"),
        (("export", "absent.py:make", "-o", "m.onnx"), 2, "absent.py: no such file."),
        (("export", "absent.pt2", "-o", "m.onnx"), 2, "absent.pt2: no such file."),
        (("export", "net.py:make", "-o", "m.onnx", "--target", "tensrrt"), 2, "did you mean 'tensorrt-"),
        (("export", "net.py:make", "-o", "m.onnx", "--target", "onnx"), 2, "did you mean 'onnxruntime'?"),
        (("export", "net.py:make", "-o", "m.onnx", "--opset", "99"), 2, "takes 11..23; choose one of these."),
        (("export", "net.py:make", "-o", "m.onnx", "--exporter", "dynmo"), 2, "did you mean 'dynamo'?"),
        (("export", "net.py:make", "-o", "m.onnx", "--dynamic", "height"), 2, "which axis is that?"),
        (("export", "net.py:make", "-o", "m.onnx", "--size", "0"), 2, "or 224 for a square."),
        (("export", "net.py:make", "-o", "none/m.onnx"), 2, "there is no folder 'none'; make it."),
        (("export", "net.py:make", "-o", "m.onnx", "--report", "r.txt"), 2, "wanted .html, .md or .json."),
        (("export", "net.py:make", "-o", "m.onnx", "--report", "none/r.md"), 2, "there is no folder 'none'; make it."),
        (("export", "net.py:make", "-o", "m.onnx", "--pretrained", "--weights", "w"), 2, "give one of them."),
        (("export", "net.py:make", "-o", "m.onnx", "--preprocess", "flod"), 2, "did you mean 'fold'?"),
        (("export", "net.py:make", "-o", "m.onnx", "--postprocess", "nsm"), 2, "did you mean 'nms'?"),
        (("explain", "No Adapter To Version $17 for Pad"), 0, "onnx's converter cannot write this operator"),
        (("localise", "net.py:make", "absent.onnx"), 2, "absent.onnx: no such file."),
        (("report", "absent.onnx", "-o", "r.md"), 2, "absent.onnx: no such file."),
        (("check", "absent.onnx", "--target", "tensrrt"), 2, "did you mean 'tensorrt-"),
        (("measure", "opencw"), 2, "unknown engine 'opencw'; did you mean 'opencv'?"),
    ],
)
def test_help_and_typos_import_nothing_slow(run, argv, code, said):
    found, imported, text = run(*argv)
    assert said in " ".join(text.split())
    assert found == code
    # find_engine's package holds numpy's arrays
    assert imported == (["numpy"] if argv[0] == "measure" else [])


def test_a_command_that_needs_torch_is_seen_to_import_it(run):
    assert run("catalogue", "remaindr")[1] == ["numpy", "onnx", "torch"]  # and neither onnx_ir nor SymPy


def test_the_shell_completes(run, monkeypatch):
    monkeypatch.setenv("_TORCH_ONNX_COMPAT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "torch-onnx-compat export net.py:make --target tensorrt-1")
    monkeypatch.setenv("COMP_CWORD", "4")
    _, imported, text = run()
    assert {"tensorrt-10", "tensorrt-11"} <= set(text.split())
    assert imported == []


def test_the_package_imports_its_names_at_their_first_use():
    code = (
        "import sys, torch_onnx_compat as package\n"
        "assert 'torch' not in sys.modules and set(package.__all__) <= set(dir(package))\n"
        "import torch_onnx_compat.plan, torch_onnx_compat.rewrite\n"
        "assert callable(package.plan) and callable(package.rewrite)\n"
        "from torch_onnx_compat import plan, rewrite, export_compat\n"
        "from torch_onnx_compat.plan import Plan\n"
        "assert plan.__module__ == export_compat.__module__ == 'torch_onnx_compat.export'\n"
        "from torch_onnx_compat import *\n"
        "assert all(name in globals() for name in package.__all__)\n"
        "try:\n"
        "    package.exprot_compat\n"
        "except AttributeError as error:\n"
        "    assert 'exprot_compat' in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    folder = Path(torch_onnx_compat.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, timeout=120)


def test_an_export_through_torchscript_imports_neither_onnxscript_nor_quantisers():
    """Their imports take a fifth of a second; dynamo's folding and narrower files need them."""
    code = """
import sys, torch
from torch_onnx_compat import export_compat
export_compat(torch.nn.Linear(2, 2).eval(), torch.rand(1, 2), dynamic="batch", exporter="torchscript")
print([name for name in ("onnxscript", "onnxruntime.quantization") if name in sys.modules])
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(torch_onnx_compat.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip().endswith("[]"), done.stdout + done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is always full")
def test_the_package_is_a_program_and_a_full_disk_is_told_in_one_line():
    done = subprocess.run(
        f"{sys.executable} -m torch_onnx_compat targets >/dev/full",
        shell=True,
        cwd=Path(torch_onnx_compat.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "error: standard output cannot be written: No space left on device.\n"
