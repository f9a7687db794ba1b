"""The shape of the catalogue: every family listed, a source for each entry, no family that leans on another."""

import ast
import sys
from pathlib import Path

import pytest
import torch
import torch_onnx_compat.rewrites
import torch_onnx_compat.symbolics

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_same_outputs

ROOT = Path(__file__).parents[1]
PACKAGES = {"symbolics": torch_onnx_compat.symbolics, "rewrites": torch_onnx_compat.rewrites}
FILES = [p for folder in PACKAGES for p in sorted((ROOT / folder).glob("*.py")) if p.name != "__init__.py"]
MAY_IMPORT = {"numpy", "torch", "torch_onnx_compat", *sys.stdlib_module_names}
MOST_LINES = 540
families = pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")


def imports(path, top=False):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if top else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield f"{node.module}"


@pytest.mark.parametrize("folder", PACKAGES)
def test_every_family_is_listed_once(folder):
    listed = PACKAGES[folder].FAMILIES
    assert sorted(listed) == [path.stem for path in FILES if path.parent.name == folder]


def test_every_entry_is_named_as_its_function():
    assert all(entry.name == entry.body.__name__ for entry in catalogue())


def test_every_entry_states_its_source():
    assert [entry.name for entry in catalogue() if not entry.source] == []


def test_every_summary_is_one_sentence():
    assert [entry.name for entry in catalogue() if not entry.summary.endswith(".")] == []


@families
def test_imports_torch_numpy_the_standard_library_and_the_core_only(path):
    for name in imports(path, top=True):
        assert name.partition(".")[0] in MAY_IMPORT, f"{path.name} imports {name}; do so where it is used"
    for name in imports(path):
        assert not name.startswith(("torch_onnx_compat.symbolics", "torch_onnx_compat.rewrites")), (
            f"{path.name} imports {name}: families do not lean on each other; move what they share to functional/"
        )


@families
def test_can_be_read_at_once(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MOST_LINES, f"{lines} lines; split the family"


@pytest.mark.parametrize("folder", PACKAGES)
def test_no_family_is_imported_by_its_path_in_the_checkout(folder):
    source = (ROOT / folder / "__init__.py").read_text(encoding="utf-8")
    with pytest.raises(ImportError, match=f"import torch_onnx_compat.{folder} instead"):
        exec(compile(source, folder, "exec"), {"__name__": folder})


def test_no_entry_writes_into_a_tensor_of_the_callers():
    """The frame declines `out=` for every function."""

    def model(x):
        return torch.hypot(x, x + 1, out=torch.empty(3, 4))

    with pytest.raises(CompatError, match="out must be None, got a tensor"):
        assert_same_outputs(model, torch.rand(3, 4), "torchscript")
