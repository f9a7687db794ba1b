"""Errors that a model catches: only those of eager torch may send the file another way."""

import contextlib
import importlib
import types
from fractions import Fraction

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.caller.reach import find_reach
from torch_onnx_compat.handlers import CaughtErrors
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import prepare
from torch_onnx_compat.questions.run import SymbolicRuns

EXPORTERS = ["torchscript", "dynamo"]


class Fractions(nn.Module):
    """A fraction is made of no exporter's size; the handler does what is done for small sizes."""

    def forward(self, x: Tensor) -> Tensor:
        try:
            return x * 2 if Fraction(x.shape[0]) > 40 else x * 3
        except TypeError:
            return x * 3


class Bare(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        try:
            y = x * 2 if Fraction(x.shape[0]) > 40 else x * 3
        except:  # noqa: E722
            y = x * 3
        return y


class Suppressed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 3
        with contextlib.suppress(TypeError):
            y = x * 2 if Fraction(x.shape[0]) > 40 else x * 3
        return y


class ByName(nn.Module):
    """Nothing but the beginning of the method's name stands in the code."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if getattr(self, f"is_large_{x.dim()}")(x) else x * 3

    def is_large_2(self, x: Tensor) -> bool:
        try:
            return Fraction(x.shape[0]) > 40
        except TypeError:
            return False


class ByAttribute(nn.Module):
    """An attribute holds the method's name."""

    def __init__(self) -> None:
        super().__init__()
        self.mode = "exact"

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if getattr(self, self.mode)(x) else x * 3

    def exact(self, x: Tensor) -> bool:
        try:
            return Fraction(x.shape[0]) > 40
        except TypeError:
            return False


class InGenerator(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return sum(x * one for one in self.factors(x))

    def factors(self, x: Tensor):
        try:
            yield 2 if Fraction(x.shape[0]) > 40 else 3
        except TypeError:
            yield 3


def _retry(function):
    def call(*args):
        try:
            return function(*args)
        except (TypeError, AttributeError):
            return False

    return call


class Decorated(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if self.is_large(x) else x * 3

    @_retry
    def is_large(self, x: Tensor) -> bool:
        return Fraction(x.shape[0]) > 40


class Swallows:
    def __enter__(self):
        return self

    def __exit__(self, *error: object) -> bool:
        return True


class OwnContext(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 3
        with Swallows():
            y = x * 2 if Fraction(x.shape[0]) > 40 else x * 3
        return y


class ReturnsFinally(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 3
        try:
            y = x * 2 if Fraction(x.shape[0]) > 40 else x * 3
        finally:
            return y  # noqa: B012


WRONG = [Fractions, Bare, Suppressed, ByName, ByAttribute, InGenerator, Decorated, OwnContext, ReturnsFinally]


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("model", WRONG)
def test_an_error_that_only_the_capture_has_is_refused(model, verify, exporter, tmp_path):
    path = tmp_path / "model.onnx"
    with pytest.raises(CompatError, match=r"test_handlers.py:\d+: TypeError: .*Rational"):
        export_compat(model(), (torch.randn(3, 8),), path, dynamic={"x": {0: "n"}}, exporter=exporter, verify=verify)


class Both(nn.Module):
    """Eager torch has these errors, too."""

    def forward(self, x: Tensor) -> Tensor:
        try:
            y = x.undefined
        except AttributeError:
            y = x * 2
        with contextlib.suppress(IndexError):
            y = [y][1]
        try:
            return y.view(5, 5)
        except RuntimeError as error:
            return y * len(str(error)[:3])


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_an_error_that_eager_torch_has_is_none(exporter, tmp_path):
    path = tmp_path / "model.onnx"
    export_compat(Both(), (torch.randn(3, 8),), path, dynamic={"x": {0: "n"}}, exporter=exporter)
    x = torch.randn(7, 8)
    (found,) = onnxruntime.InferenceSession(path).run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), Both()(x))


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_what_is_allowed_stays_as_after_the_error(exporter, tmp_path):
    path, places = tmp_path / "model.onnx", []
    for _ in range(2):
        try:
            export_compat(
                *(Fractions(), (torch.randn(3, 8),), path),
                dynamic={"x": {0: "n"}},
                exporter=exporter,
                verify=False,
                allow_baked=places,
            )
        except CompatError as error:
            places = [str(error).partition("allow_baked=['")[2].partition("'")[0]]
    x = torch.randn(50, 8)
    (found,) = onnxruntime.InferenceSession(path).run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), x * 3)


def test_a_run_without_numbers_that_goes_another_way_says_so():
    prepared = prepare(Fractions(), (torch.randn(3, 8),), dynamic={"x": {0: "n"}})
    run = SymbolicRuns(Observation(prepared)).at({})
    assert not run.is_complete
    assert "Rational" in run.obstacle


def test_functions_are_as_before():
    functions = find_reach(Decorated()).handlers
    before = [function.__code__ for function in functions]
    leave = contextlib.suppress.__exit__
    assert functions
    assert all(isinstance(function, types.FunctionType) for function in functions)
    with pytest.raises(KeyboardInterrupt), CaughtErrors(functions):
        raise KeyboardInterrupt
    assert [function.__code__ for function in functions] == before
    assert contextlib.suppress.__exit__ is leave


def test_what_was_caught_is_told():
    model = Decorated()
    with CaughtErrors(find_reach(model).handlers) as errors:
        assert not model.is_large(None)
    (found,) = errors.found
    assert found.kind == "AttributeError"
    assert found.place.startswith("tests/test_handlers.py:")
    assert str(found) == f"{found.place}: AttributeError: 'NoneType' object has no attribute 'shape'"


EDITED = """
def retry(x):
    try:
        return x.undefined
    except AttributeError:
        return {result}
"""


def test_a_function_whose_file_was_edited_is_left_as_it_is(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text(EDITED.format(result=1))
    scope: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    before = scope["retry"].__code__
    path.write_text(EDITED.format(result=2))
    with CaughtErrors([scope["retry"]]) as errors:
        assert scope["retry"].__code__ is before
        assert scope["retry"](0) == 1
    assert not errors.found


def test_what_a_module_catches_as_it_is_imported_is_none_of_the_models(tmp_path, monkeypatch):
    """torch imports some of its parts, and what they need, in the first export that uses them."""
    text = "import contextlib\ndef find():\n    with contextlib.suppress(ValueError):\n        [].index(1)\nfind()\n"
    (tmp_path / "imported_late.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with CaughtErrors() as errors:
        module = importlib.import_module("imported_late")
        assert not errors.found
        module.find()
    assert len(errors.found) == 1
