"""The shape of the catalogue: one entry, one file, one test file; a source; no entry leans on another."""

import ast
import sys
from pathlib import Path

import pytest

from torch_onnx_compat.catalogue import catalogue

ROOT = Path(__file__).parents[1]
FOLDERS = ("symbolics", "rewrites")
FILES = [p for folder in FOLDERS for p in sorted((ROOT / folder).glob("*.py")) if p.name != "__init__.py"]
MAX_LINES = 120
MAY_IMPORT = {"torch", "torch_onnx_compat", *sys.stdlib_module_names}
entry_files = pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")


def _imports(tree: ast.Module) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@entry_files
def test_registers_exactly_one_entry_of_its_name(path: Path) -> None:
    owner = f"torch_onnx_compat.{path.parent.name}.{path.stem}"
    (entry,) = (e for e in catalogue() if e.owner == owner)
    assert entry.name == path.stem == entry.body.__name__
    assert type(entry).__name__.lower() + "s" == path.parent.name


@entry_files
def test_has_a_test_file_of_its_name(path: Path) -> None:
    assert (ROOT / "tests" / path.parent.name / f"test_{path.stem}.py").is_file()


@entry_files
def test_states_its_source(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    _, found, source = docstring.partition("Source:")
    assert found, "the module's docstring needs a line that begins with 'Source:'"
    assert source.strip(), "the line 'Source:' is empty"


@entry_files
def test_imports_torch_the_standard_library_and_the_core_only(path: Path) -> None:
    for name in _imports(ast.parse(path.read_text(encoding="utf-8"))):
        assert name.partition(".")[0] in MAY_IMPORT, f"{path.name} imports {name}"
        assert not name.startswith(("torch_onnx_compat.symbolics", "torch_onnx_compat.rewrites")), (
            f"{path.name} imports {name}: entries do not lean on each other; move what they share to functional/"
        )


@entry_files
def test_is_short(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MAX_LINES, f"{lines} lines; move the mathematics to torch_onnx_compat/functional/"


@entry_files
def test_summary_is_one_sentence(path: Path) -> None:
    (entry,) = (e for e in catalogue() if e.owner.endswith(f".{path.parent.name}.{path.stem}"))
    assert entry.summary.endswith("."), f"the body's docstring begins {entry.summary!r}; one line, one sentence"


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_test_file_outlives_its_entry(folder: str) -> None:
    entries = {path.stem for path in FILES if path.parent.name == folder}
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / folder).glob("test_*.py")}
    assert tests <= entries
