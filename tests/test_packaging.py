"""What pip installs is what the repository holds: sdist to wheel, file by file."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from torch_onnx_compat.engines import ENGINES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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


def test_the_sdist_can_be_tested(tmp_path: Path) -> None:
    """It holds all that the tests read: themselves, the pages, the examples and the scripts."""
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if kept.returncode:
        pytest.skip("no checkout: the files are not known")
    copy = tmp_path / "copy"
    folders = ("tests", "docs", "examples", "scripts", *SOURCES)
    for name in (n for n in kept.stdout.splitlines() if n.split("/")[0] in (*folders, "MANIFEST.in", "CHANGELOG.md")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    with tarfile.open(_build("sdist", copy, tmp_path / "sdist")) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {p.relative_to(copy).as_posix() for folder in folders for p in (copy / folder).rglob("*") if p.is_file()}
    assert wanted - held == set()


def test_every_engine_that_pip_installs_beside_the_package_has_an_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    present = {re.split(r"[<>=!; ]", requirement)[0] for requirement in project["dependencies"]}
    for engine in ENGINES.values():
        # rknn-toolkit2 asks for an older torch than this package; who takes TensorRT takes NVIDIA's licence, knowingly.
        if engine.npm or engine.name in ("rknn", "tensorrt-rtx"):
            continue
        wanted = {re.split(r"[<>=!; ]", package)[0] for package in (*engine.packages, *engine.alone)} - present
        held = {re.split(r"[<>=!; ]", package)[0] for package in extras.get(engine.environment or engine.name, ())}
        assert wanted <= held, engine.name
