"""The README's picture and figures are those of the scoreboard's rows."""

import importlib.util
import re
from pathlib import Path

import pytest

from torch_onnx_compat.sweep.chart import count_shared

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("picture", ROOT / "scripts" / "picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_fresh(script):
    fresh = script.PICTURE.read_text(encoding="utf-8") == script.picture()
    assert fresh, "docs/scoreboard.svg is stale; run python scripts/picture.py"


def test_the_readme_has_the_scoreboards_figures(script):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ours = [row for row in script.scoreboard.rows() if row.by == "ours"]
    verified = sum(row.verdict == "verified" for row in ours)
    assert f"{verified} of {len(ours)} of torchvision" in readme
    assert not any(row.verdict == "wrong" for row in ours)
    counts = count_shared(script.scoreboard.rows())["export_compat"]
    assert f"of {counts.total()} models: export_compat {counts['verified']} verified" in readme


def test_the_readme_has_the_matrix_figures():
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace(",", "")
    matrix = (ROOT / "docs" / "operator_matrix.md").read_text(encoding="utf-8")
    for line in ("torchscript 17 stock", "torchscript 17 ours", "dynamo 18 stock", "dynamo 18 ours"):
        (ok,) = re.findall(rf"^{line}: (\d+) ok", matrix, re.MULTILINE)
        assert ok in re.findall(r"\d+", readme), line
