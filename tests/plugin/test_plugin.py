"""Plugins of other distributions, found by a bare dist-info folder on sys.path: no pip, no installation."""

import os
import subprocess
import sys
from pathlib import Path

import torch_onnx_compat

PACKAGE = Path(torch_onnx_compat.__file__).parents[1]


def _run(plugin: str, code: str) -> str:
    """What a fresh interpreter prints that has the plugin on its path; a CompatError is printed with its class."""
    program = (
        "from torch_onnx_compat import CompatError\n"
        "from torch_onnx_compat.catalogue.catalogue import catalogue\n"
        f"try:\n    {code}\n"
        "except CompatError as error:\n    print(type(error).__name__, error)\n"
    )
    path = os.pathsep.join([str(PACKAGE), str(Path(__file__).parent / plugin)])
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_entries_and_models_of_a_plugin() -> None:
    code = (
        "from torch_onnx_compat import export_compat, zoo; sample = zoo.load('acme:gated'); "
        "print(export_compat(sample.model, sample.args, exporter='torchscript').applied); "
        "print(catalogue()['acme_gate_to_identity'].owner)"
    )
    out = _run("good", code)
    assert "acme_gate_to_identity" in out.splitlines()[0]
    assert out.splitlines()[1] == "acme_good"


def test_a_broken_plugin_names_its_distribution() -> None:
    out = _run("broken", "catalogue()")
    assert out == (
        "CompatError plugin 'acme' of acme-broken: importing 'acme_broken' failed with RuntimeError: needs a licence "
        "key; uninstall or repair it.\n"
    )


def test_a_clash_names_both_owners() -> None:
    out = _run("clash", "catalogue()")
    assert out.startswith("ClashError symbolic 'aten::remainder' for opset ")
    assert "torch_onnx_compat.symbolics.mod_and_division ('remainder') and acme_clash ('acme_remainder')" in out
