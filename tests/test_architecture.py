"""The fences between the rooms: no circle of imports, torch's private names in one place."""

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "torch_onnx_compat"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
PRIVATE = re.compile(r"torch\._C\b|torch\.onnx\._internal|_get_trace_graph|torch\.onnx\._\w+")
FENCED = ("torch_onnx_compat.backends.internals", "torch_onnx_compat.tracing")
CIRCLES = {
    # ExportResult.report() writes a page, which is made of an ExportResult.
    frozenset({"result", "report", "report.facts", "report.stock", "report.write"}),
}
"""Circles that are known, and why they stay."""


def imported(path: Path) -> set[str]:
    """The modules of the package that a module imports, at the top, inside functions and for types."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        # `from package import module` means the module; the package's own __init__ is meant by other names.
        named = [name for name in names if name in MODULES]
        found.update(name for name in named if not any(other.startswith(f"{name}.") for other in named))
    return found


def circles(graph: dict[str, set[str]]) -> list[frozenset[str]]:
    """The strongly connected components of more than one module."""
    reach = {name: reachable(graph, name) for name in graph}
    return list({frozenset(o for o in reach[n] if n in reach[o]) for n in graph if n in reach[n]})


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """The modules that one imports, directly or not."""
    seen: set[str] = set()
    todo = list(graph[start])
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += graph[name]
    return seen


def test_no_circle_of_imports():
    graph = {name: imported(path) - {name} for name, path in MODULES.items()}
    short = "torch_onnx_compat."
    found = {frozenset(name.removeprefix(short) for name in circle) for circle in circles(graph)}
    assert found <= CIRCLES, "\n".join(" <-> ".join(sorted(circle)) for circle in found - CIRCLES)


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [frozenset("abc")]


@pytest.mark.parametrize("folder", ["torch_onnx_compat", "symbolics", "rewrites"])
def test_private_names_of_torch_stand_behind_the_fence(folder):
    outside = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not ".".join(path.relative_to(ROOT).with_suffix("").parts).startswith(FENCED)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PRIVATE.search(line)
    ]
    assert not outside, "move these to backends/internals:\n" + "\n".join(outside)


FIRST = """
import importlib, os, sys
import onnx_ir, onnxruntime, torch.export, torch.onnx, torchvision  # once, for all of the children
failed = []
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(f"{name}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    failed += [name] if os.waitpid(child, 0)[1] else []
sys.exit(bool(failed))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a fresh process for each module takes too long")
def test_every_module_may_be_the_first_that_is_imported():
    """The package imports nothing by itself, so that no order of imports is given."""
    names = [name for name in MODULES if name.count(".") == 1 or MODULES[name].name == "__init__.py"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST, *names], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_public_names_are_those_that_type_checkers_see():
    for path in (PACKAGE / "__init__.py", PACKAGE / "zoo" / "__init__.py", PACKAGE / "backends" / "__init__.py"):
        package = importlib.import_module(".".join(path.relative_to(ROOT).parent.parts))
        seen = {
            alias.asname: node.module
            for block in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for node in block.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.asname
        }
        assert seen == dict(package._lazy_homes), path
        assert all(getattr(package, name) is not None for name in seen)
