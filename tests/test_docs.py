"""What the documents say is so: the generated page is fresh, every Python block runs, every link within leads on."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torch_onnx_compat

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def _id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _script(page: Path) -> str:
    """The page's Python blocks at the line numbers they have in it, so that a traceback points there."""
    text = page.read_text(encoding="utf-8")
    script = ""
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        script += "\n" * (line - script.count("\n")) + block[1]
    return script


@pytest.mark.parametrize("page", [page for page in PAGES if _script(page)], ids=_id)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    """All blocks of a page as one program, from the top, in an empty folder; by pytest where they define tests."""
    script = tmp_path / f"{page.stem}.py"
    script.write_text(_script(page), encoding="utf-8")
    runner = ["-m", "pytest", "-q"] if "\ndef test_" in _script(page) else []
    run = subprocess.run(
        [sys.executable, *runner, script.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(torch_onnx_compat.__file__).parents[1]), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, f"{_id(page)}:\n{run.stdout}\n{run.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_links_lead_to_files(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{_id(page)} links to {target}, which is not there"


def test_the_catalogue_page_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location("scripts_catalogue", ROOT / "scripts" / "catalogue.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    fresh = script.PAGE.read_text(encoding="utf-8") == script.page()
    assert fresh, "docs/catalogue.md is stale; run python scripts/catalogue.py"


def test_a_script_keeps_line_numbers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\na = 1\n```\ntext\n```bash\nls\n```\n```python\nb = a\n```\n")
    assert _script(page).splitlines() == ["", "", "", "a = 1", "", "", "", "", "", "", "b = a"]
