"""Texts of sizes that a model gives to its own functions: in a message they decide nothing."""

import importlib.util
import inspect
import sys
import types

import pytest
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends.checks import Place
from torch_onnx_compat.backends.messages import is_message
from torch_onnx_compat.errors import CompatError

SOURCE = """
LAST = ""

def check(condition, message):
    if not condition:
        raise ValueError(message)
    return True

def check_in_steps(condition, message=None, raises=True):
    if not condition:
        if raises:
            message = resolve(message)
            text = "failed" if message is None else message
            raise ValueError(text)
        return False
    return True

def resolve(message):
    return message

def check_through(condition, message):
    check(condition, "wrong: " + message)

def keeps(condition, message):
    global LAST
    LAST = message
    if not condition:
        raise ValueError(message)

def returns(condition, message):
    if not condition:
        raise ValueError(message)
    return message

def decides(message):
    if "2" in message:
        return 2
    return 3

def catches(condition, message):
    try:
        if not condition:
            raise ValueError(message)
    except ValueError as error:
        return str(error)
    return ""

class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True

def kept_in_quiet(condition, message):
    global LAST
    with Quiet():
        if not condition:
            LAST = message
            raise ValueError(message)

class Checker:
    def check(self, message, note):
        if not message:
            raise ValueError(message)
        return note

CHECKER = Checker()

def told_of_a_shape(x):
    check(x.dim() > 1, f"got {x.shape}")
    return x * 2

def told_of_a_size(x):
    check(x.shape[1] > x.shape[0] - 100, "got {}".format(x.shape[0]))
    return x * 2

def told_of_values(x):
    check(x.dim() > 1, f"got {x.sum()}")
    return x * 2

def told_by_name(x):
    check_in_steps(x.dim() > 1, message=f"got {list(x.shape)}")
    return x * 2

def told_by_two(x):
    check_through(x.dim() > 1, "got " + str(x.size()))
    return x * 2

def told_of_a_variable(x):
    message = "got %s" % (tuple(x.shape),)
    return x * (2 if check(x.dim() > 1, message) else 3)

def kept(x):
    keeps(x.dim() > 1, f"got {x.shape[0] * 50}")
    return x * len(LAST)

def returned(x):
    return x * len(returns(x.dim() > 1, f"got {x.shape[0] * 50}"))

def decided(x):
    return x * decides(f"got {x.shape[0]}")

def caught(x):
    return x * len(catches(x.shape[0] > 2, f"{x.shape[0] * 50}"))

def swallowed(x):
    kept_in_quiet(x.shape[1] > 100, f"{x.shape[0] * 50}")
    return x * len(LAST)

def of_an_object(x):
    return x * len(CHECKER.check("kept", f"{x.shape[0] * 50}"))

def own(x):
    check = lambda condition, message: len(message)
    return x * check(True, f"{x.shape[0] * 50}")
"""

TOLD = ("told_of_a_shape", "told_of_a_size", "told_of_values", "told_by_name", "told_by_two", "told_of_a_variable")
USED = ("kept", "returned", "decided", "caught", "swallowed", "of_an_object", "own")


class ImportedLater(types.ModuleType):
    """Stands for a module that is imported when it is used, and is not installed."""

    def __getattr__(self, name):
        is_asked_by_python = sys._getframe(1).f_code.co_filename == inspect.__file__
        raise AttributeError(name) if is_asked_by_python else ImportError("it is not installed")


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """The module of a file: whose function a name is, is looked up there."""
    path = tmp_path_factory.mktemp("messages") / "told_functions.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("told_functions", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["told_functions"] = module
    sys.modules["told_later"] = ImportedLater("told_later")
    spec.loader.exec_module(module)
    yield module
    del sys.modules["told_functions"], sys.modules["told_later"]


@pytest.mark.parametrize("name", TOLD)
def test_what_is_only_told_decides_nothing(functions, name, exporter):
    x = torch.randn(3, 8, 4)
    result = export_compat(getattr(functions, name), (x,), exporter=exporter, dynamic={"x": {0: "batch"}})
    longer = torch.randn(12, 8, 4)
    torch.testing.assert_close(result(longer)[0], longer * 2)


@pytest.mark.parametrize("name", USED)
def test_what_is_used_decides(functions, name, exporter):
    with pytest.raises(CompatError):
        export_compat(getattr(functions, name), (torch.randn(3, 8, 4),), exporter=exporter, dynamic={"x": {0: "batch"}})


@pytest.mark.parametrize("name", [*TOLD, *USED])
def test_only_what_is_told_is_a_message(functions, name):
    """The proof finds some of these texts in another way; this asks the source alone."""
    lines = SOURCE.splitlines()
    first = lines.index(f"def {name}(x):")
    number = next(i for i in range(first, len(lines)) if "x.shape[0]" in lines[i] or "got " in lines[i])
    column = max(lines[number].find(text) for text in ('f"', "tuple(", "str(x", ".format"))
    assert is_message(Place(functions.__file__, number + 1, column)) is (name in TOLD)


def test_a_name_gets_another_function(functions, exporter, monkeypatch):
    """Between two exports: what was known of the first function says nothing of the second."""
    example, dynamic = (torch.randn(3, 8, 4),), {"x": {0: "batch"}}
    export_compat(functions.told_of_a_variable, example, exporter=exporter, dynamic=dynamic)
    monkeypatch.setattr(functions, "check", lambda condition, message: len(message) > 12)
    with pytest.raises(CompatError):
        export_compat(functions.told_of_a_variable, example, exporter=exporter, dynamic=dynamic)
