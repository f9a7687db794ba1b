"""What pip installs is what the repository holds: sdist to wheel, file by file."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "torch_onnx_compat", "symbolics", "rewrites")
BUILD = "from setuptools import build_meta; import sys; getattr(build_meta, 'build_' + sys.argv[1])(sys.argv[2])"


def _build(kind: str, source: Path, out: Path) -> Path:
    out.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", BUILD, kind, str(out)], cwd=source, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel built from the sdist of a clean copy, as `python -m build` does; no stale build/ can get in."""
    folder = tmp_path_factory.mktemp("packaging")
    copy = folder / "copy"
    copy.mkdir()
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    with tarfile.open(_build("sdist", copy, folder / "sdist")) as sdist:
        sdist.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.3 and earlier have none
        sdist.extractall(folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    return zipfile.ZipFile(_build("wheel", unpacked, folder / "wheel"))


def test_the_wheel_holds_what_the_directories_hold(wheel: zipfile.ZipFile) -> None:
    def files(folder: str) -> set[str]:
        root = ROOT / folder
        paths = (p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        package = "torch_onnx_compat" if folder == "torch_onnx_compat" else f"torch_onnx_compat/{folder}"
        return {f"{package}/{p.relative_to(root).as_posix()}" for p in paths}

    expected = files("torch_onnx_compat") | files("symbolics") | files("rewrites")
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected


def test_metadata(wheel: zipfile.ZipFile) -> None:
    info = {Path(name).name: name for name in wheel.namelist() if ".dist-info/" in name}
    metadata = wheel.read(info["METADATA"]).decode()
    assert re.search(r"^License-Expression: Apache-2\.0$", metadata, re.MULTILINE)
    assert "Apache License" in wheel.read(info["LICENSE"]).decode()
    entry_points = wheel.read(info["entry_points.txt"]).decode()
    assert "torch-onnx-compat = torch_onnx_compat.cli:main" in entry_points


def test_the_catalogue_directories_are_flat() -> None:
    """The list of packages names them one by one: a folder inside would not ship."""
    for folder in ("symbolics", "rewrites"):
        assert [p.name for p in (ROOT / folder).iterdir() if p.is_dir() and p.name != "__pycache__"] == []
