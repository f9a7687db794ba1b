"""What the documents say is so: the generated page is fresh, every Python block runs, every link within leads on."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import torch_onnx_compat
from torch_onnx_compat import cli

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(
    r"^(?:<!-- (?P<mark>not run[^\n]*?) -->\n+)?```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
"""A block of code, perhaps with the reason why it is not run in a comment before it."""
NEEDS = re.compile(r"^<!-- needs: (.*?) -->$", re.MULTILINE)
"""The modules that a page's code imports besides what the tests have."""
LINK = re.compile(r"\[[^\]]*\]\(([^)#:\s]+)(?:#[^)]*)?\)")
TOLD = {"python", "sh", "bash", "toml", "yaml", "json", "js", "text", "pbtxt"}
"""Languages of blocks: Python is run, commands and TOML are parsed, text is what programs print."""


def _id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _blocks(page: Path, *languages: str) -> list[re.Match[str]]:
    """The page's blocks in these languages that are not marked as not run."""
    found = FENCE.finditer(page.read_text(encoding="utf-8"))
    return [block for block in found if block["language"] in languages and not block["mark"]]


def _script(page: Path) -> str:
    """The page's Python blocks at the line numbers they have in it, so that a traceback points there."""
    text = page.read_text(encoding="utf-8")
    script = ""
    for block in _blocks(page, "python"):
        line = text.count("\n", 0, block.start("code"))
        script += "\n" * (line - script.count("\n")) + block["code"]
    return script


def _is_one_of_many(page: Path) -> bool:
    """Whether a page is one of those that do the same for another engine, or for another zoo."""
    return page.parent.name in ("howto", "models") and page.stem not in ("onnxruntime", "timm")


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow if _is_one_of_many(p) else ()) for p in PAGES if _script(p)],
    ids=_id,
)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    """All blocks of a page as one program, from the top, in an empty folder; by pytest where they define tests."""
    for needed in NEEDS.findall(page.read_text(encoding="utf-8")):
        for module in needed.split(", "):
            if importlib.util.find_spec(module) is None:
                pytest.skip(f"{module} is not installed")
    script = tmp_path / f"{page.stem}_page.py"  # not the name of a package that the page imports
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
def test_every_block_is_told_apart(page: Path) -> None:
    """A block in an unknown language would be neither run nor marked, and nobody would see that."""
    text = page.read_text(encoding="utf-8")
    assert len(FENCE.findall(text)) * 2 == len(re.findall(r"^\s*```", text, re.MULTILINE))
    assert {block["language"] for block in FENCE.finditer(text)} <= TOLD | {"diff", ""}
    assert not [block["code"] for block in _blocks(page, "js")]  # nothing here runs it


def _commands(page: Path) -> list[str]:
    text = "\n".join(block["code"] for block in _blocks(page, "sh", "bash")).replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.strip().startswith("torch-onnx-compat ")]


@pytest.mark.parametrize("page", [page for page in PAGES if _commands(page)], ids=_id)
def test_commands_have_the_options_that_pages_name(page: Path) -> None:
    """The words are looked up, not run: commands download, take minutes, or need an engine."""
    app = typer.main.get_command(cli.app)
    for line in _commands(page):
        name, *words = shlex.split(line, comments=True)[1:]
        known = {option for one in (app, app.commands.get(name, app)) for p in one.params for option in p.opts}
        assert name in app.commands or name in known | {"--install-completion"}, f"{_id(page)}: {line}"
        unknown = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known | {"--help"}]
        assert not unknown, f"{_id(page)}: {line}: {unknown}"


@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page, "toml")], ids=_id)
def test_tables_parse(page: Path) -> None:
    for block in _blocks(page, "toml"):
        assert tomllib.loads(block["code"])


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_links_lead_to_files(page: Path) -> None:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(prose):
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
