"""What the source around a statement tells, read from a part of its file."""

import ast
import linecache
import random
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from torch_onnx_compat.backends import checks
from torch_onnx_compat.backends.checks import Place

FILES = (
    torch.nn.functional.__file__,
    torch.nn.modules.activation.__file__,
    torch.nn.modules.transformer.__file__,
    torch.nn.modules.rnn.__file__,
    nn.modules.module.__file__,
    linecache.__file__,
    random.__file__,
    *map(str, sorted(Path(checks.__file__).parent.glob("*.py"))),
)


@pytest.mark.parametrize("path", FILES, ids=[Path(path).name for path in FILES])
def test_a_part_of_a_file_tells_what_the_file_tells(path):
    whole = ast.parse(Path(path).read_text())
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    statements = [node for node in ast.walk(whole) if isinstance(node, ast.stmt) and not isinstance(node, scopes)]
    for node in random.Random(0).sample(statements, min(80, len(statements))):
        place = Place(path, node.lineno, node.col_offset)
        around = [ast.dump(s, include_attributes=True) for s in statements if checks.contains(s, place)]
        assert sorted(ast.dump(s, include_attributes=True) for s in checks.innermost_statements(place)) == sorted(
            around
        )


MISLEADING = '''
class Net:
    """The outermost lines of this text are no statements:

import torch
def forward(x):
    if x: raise
'a', "b"
    """

    def forward(self, x):
        assert x > 0
        text = """
first
""" + str(x)
        try:
            return x.f(
)
        except ValueError:
            pass


if Net:
    pass
else:
    value = Net()
'''


def test_lines_of_a_text_are_no_statements(tmp_path):
    path = tmp_path / "misleading.py"
    path.write_text(MISLEADING)
    lines = MISLEADING.splitlines()

    def place(text: str) -> Place:
        number = next(i for i, line in enumerate(lines) if text in line)
        return Place(str(path), number + 1, lines[number].index(text))

    assert checks.is_guard(place("assert x > 0"))
    assert checks.is_caught(place("return x.f("))
    assert not checks.is_caught(place("text = "))
    assert [type(s) for s in checks.innermost_statements(place("value = Net()"))] == [ast.Assign, ast.If]
    assert not list(checks.innermost_statements(Place(str(path), len(lines) + 10, 0)))


def test_code_without_handlers_is_not_looked_up(monkeypatch):
    def plain():
        return checks.is_caught_on_stack([sys._getframe()])

    def handled():
        try:
            return checks.is_caught_on_stack([sys._getframe()])
        except ValueError:
            return None

    assert handled()
    if sys.version_info >= (3, 11):
        monkeypatch.setattr(checks, "is_caught", lambda place: pytest.fail("read the source"))
    assert not plain()
