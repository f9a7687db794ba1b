import pytest

from torch_onnx_compat import CompatError
from torch_onnx_compat.backends.backend import ExportFailed, refuse
from torch_onnx_compat.errors import causes


def ring():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def test_causes_are_told_once():
    first = ring()
    assert list(causes(first)) == [first, first.__cause__]


def test_contexts_are_asked_for():
    error = ValueError("shown")
    error.__context__ = KeyError("handled")
    assert list(causes(error)) == [error]
    assert list(causes(error, contexts=True)) == [error, error.__context__]


@pytest.mark.parametrize("stated", [True, False])
def test_the_error_of_an_entry_comes_through_and_keeps_its_cause(stated):
    reason = ZeroDivisionError("of all things")
    own = CompatError("entry 'broken' raised")
    own.__cause__ = reason
    outer = RuntimeError("the exporter's words")
    setattr(outer, "__cause__" if stated else "__context__", own)
    with pytest.raises(CompatError, match="entry 'broken' raised") as caught:
        refuse(outer, "step")
    assert list(causes(caught.value)) == [own, reason]


def test_the_error_of_an_exporter_becomes_one_line():
    with pytest.raises(ExportFailed, match=r"^step: no such operator$") as caught:
        refuse(RuntimeError("no such operator\ngraph(%x): ..."), "step")
    assert isinstance(caught.value.__cause__, RuntimeError)
